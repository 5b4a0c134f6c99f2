/**
 * The commit log in PostgreSQL: a row for each frame. An append adds its row only while the row of
 * the owner has the epoch of this node, and holds that row until it is committed, so a takeover and
 * an append exclude each other: no frame of an older epoch comes after one of a newer.
 *
 * An append without an answer is never guessed at. The row at its position tells: it is ours, or
 * there is none and the append is sent again, which the primary key makes harmless. A row that was
 * found may so far be committed at this server alone (a wait for a synchronous standby that was cut
 * off), so a commit of our own after it has to succeed before it counts.
 */
import { type Clock, pause } from '../core/clock.ts'
import { type Fault, fault } from '../core/faults.ts'
import type { CommitLog, NewFrame } from '../store/commit-log/commit-log.ts'
import { type Frame, framesIn } from '../store/commit-log/frame.ts'
import { type Connection, sqlState } from './connection.ts'
import { renewOwnerRow } from './owner-row.ts'

export interface PostgresLogPort {
  readonly connection: Connection
  readonly clock: Clock
  readonly partition: number
  /** Of this node's ownership. */
  epoch(): number
  /** Before the ownership is given up; see `CommitLog.end`. */
  release(): Promise<void>
  onMerged(seq: number): void
  /** An append that was sent at this time has succeeded: the epoch was ours then. */
  onAppended(sent_ms: number): void
  /** An append has no answer and is looked up. */
  onAway(reason: unknown): void
}

const append_text = `INSERT INTO conveyor.log (partition, seq, epoch, frame)
  SELECT $1::int, $2::int8, $3::int8, $4::bytea FROM (
    SELECT 1 FROM conveyor.owner WHERE partition = $1 AND epoch = $3 FOR SHARE
  ) AS owned`

/** The disk or the memory of the database is full: the statement has done nothing. */
const full_states: readonly (string | undefined)[] = ['53100', '53200']
const retry_ms = { first: 20, longest: 500 }

export function postgresCommitLog(port: PostgresLogPort): CommitLog {
  const { connection, clock, partition } = port
  let is_closed = false
  let tellClosed = (): void => {}
  const closed = new Promise<void>((resolve) => {
    tellClosed = resolve
  })

  async function insert(seq: number, frame: Buffer): Promise<'durable' | 'fenced' | 'unknown'> {
    const values = [partition, seq, port.epoch(), frame]
    const { rowCount } = await connection.query({ name: 'append', text: append_text, values })
    if (rowCount === 0) return 'fenced'
    return connection.hasWarned() ? 'unknown' : 'durable'
  }

  /** What became of an append without an answer. */
  async function lookUp(seq: number, frame: Buffer): Promise<'durable' | 'fenced' | 'missing'> {
    const { rows } = await connection.query<{ epoch: string; crc: Buffer }>({
      text: `SELECT epoch::text, substring(frame from 5 for 4) AS crc FROM conveyor.log
        WHERE partition = $1 AND seq = $2`,
      values: [partition, seq],
    })
    const [row] = rows
    const owned = await renewOwnerRow(connection, partition, port.epoch())
    const is_ours = Number(row?.epoch) === port.epoch() && row?.crc.equals(frame.subarray(4, 8))
    if (is_ours === true) return connection.hasWarned() ? 'missing' : 'durable'
    return owned === false || row !== undefined ? 'fenced' : 'missing'
  }

  async function append({ arena, from, end, seq }: NewFrame): Promise<number> {
    const frame = arena.subarray(from, end)
    const began_ms = clock.now_ms()
    let is_in_doubt = false
    let wait_ms = retry_ms.first
    while (!is_closed) {
      const sent_ms = clock.now_ms()
      try {
        const found = is_in_doubt ? await lookUp(seq, frame) : 'missing'
        const outcome = found === 'missing' ? await insert(seq, frame) : found
        if (outcome === 'durable') {
          port.onAppended(sent_ms)
          return clock.now_ms() - began_ms
        }
        if (outcome === 'fenced') throw fenced()
        is_in_doubt = true
      } catch (error) {
        const state = sqlState(error)
        if (!is_in_doubt && full_states.includes(state)) {
          throw fault('no_space', 'the disk of the database is full', { cause: error })
        }
        if (state !== '23505' && (error as Fault).code === 'store_failed') throw error
        is_in_doubt = true
        if (state === '23505') continue
        port.onAway(error)
        await pause(clock, wait_ms, closed)
        wait_ms = Math.min(2 * wait_ms, retry_ms.longest)
      }
    }
    throw fault('store_failed', 'the commit log was closed while an append had no answer')
  }

  return {
    append,
    read: (after_seq) => readFrames(connection, partition, after_seq),
    rotate() {},
    merged: port.onMerged,
    preallocatedBytes: () => Number.POSITIVE_INFINITY,
    isSettled: () => true,
    async settle() {},
    end: port.release,
    async close() {
      is_closed = true
      tellClosed()
      await connection.close()
    },
  }
}

/** Bytes of frames that are asked for at a time; one at least. */
const batch_bytes = 4 * 1024 * 1024
const batch_frames_max = 512

/** The frames after this position, as far as they are there and without a gap between them. */
export async function readBatch(
  connection: Connection,
  partition: number,
  after_seq: number,
): Promise<Frame[]> {
  const { rows } = await connection.query<{ frame: Buffer }>({
    name: 'read',
    text: `SELECT frame FROM (
      SELECT seq, frame,
        sum(octet_length(frame)) OVER (ORDER BY seq) - octet_length(frame) AS before
      FROM (SELECT seq, frame FROM conveyor.log WHERE partition = $1 AND seq > $2
        ORDER BY seq LIMIT ${batch_frames_max}) AS next
    ) AS summed WHERE before < ${batch_bytes} ORDER BY seq`,
    values: [partition, after_seq],
  })
  return rows.map(({ frame }, at) => checked(frame, after_seq + 1 + at))
}

async function* readFrames(
  connection: Connection,
  partition: number,
  after_seq: number,
): AsyncGenerator<Frame> {
  let seq = after_seq
  for (;;) {
    const frames = await readBatch(connection, partition, seq)
    if (frames.length === 0) return
    yield* frames
    seq += frames.length
  }
}

function checked(bytes: Buffer, seq: number): Frame {
  const [frame] = framesIn(bytes)
  if (frame === undefined || frame.bytes.length !== bytes.length) {
    const says = `the commit log in the database is damaged at position ${seq}`
    throw fault('not_a_database', `${says}: restore the database, or remove what follows`)
  }
  return frame
}

function fenced(): Fault {
  return fault('store_failed', 'another node owns the data now')
}
