/**
 * The commit log in PostgreSQL, a row per frame. An append inserts only while the owner's row has
 * this node's epoch, and locks that row until its commit; so takeovers and appends exclude each
 * other, and no frame of an older epoch follows one of a newer.
 *
 * An unanswered append is looked up: either the row is ours, or the append is repeated, which the
 * primary key makes harmless. A row found may be on this server alone (the wait for a synchronous
 * standby was cut off), so it counts only after a later commit of ours has succeeded.
 */
import { type Clock, keepAlive, pause } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { CommitLog, NewFrame } from '../../store/commit-log/commit-log.ts'
import { type Frame, framesIn } from '../../store/commit-log/frame.ts'
import { type Connection, isAway, sqlState } from '../database/connection.ts'
import { ownershipLost } from './owner-row.ts'

export interface PostgresLogPort {
  readonly connection: Connection
  readonly clock: Clock
  readonly partition: number
  epoch(): number
  /** As `CommitLog.end`. */
  release(): Promise<void>
  onMerged(seq: number): void
  /** An append sent at this time has succeeded. */
  onAppended(sent_ms: number): void
  /** An append is unanswered and looked up. */
  onAway(reason: unknown): void
}

const append_text = `INSERT INTO conveyor.log (partition, seq, epoch, frame)
  SELECT $1::int, $2::int8, $3::int8, $4::bytea FROM (
    SELECT 1 FROM conveyor.owner WHERE partition = $1 AND epoch = $3 FOR SHARE
  ) AS owned`

const look_up_text = `WITH renewed AS (
    UPDATE conveyor.owner SET renewal = renewal + 1 WHERE partition = $1 AND epoch = $3 RETURNING 1
  )
  SELECT EXISTS (SELECT FROM renewed) AS is_owner, (
    SELECT substring(frame from 1 for 32) FROM conveyor.log WHERE partition = $1 AND seq = $2
  ) AS head`

/** Such an append is looked up like an unanswered one. */
const no_count = 'the database does not say whether a row was added: is a proxy in front of it?'

/** Unique violation: the position has a row. */
const taken = '23505'
const retry_ms = { first: 20, longest: 500 }

export function postgresCommitLog(port: PostgresLogPort): CommitLog {
  const { connection, clock, partition } = port
  let is_closed = false
  let emitClosed = (): void => {}
  const closed = new Promise<void>((resolve) => {
    emitClosed = resolve
  })

  async function insert(seq: number, frame: Buffer): Promise<'durable' | 'fenced'> {
    const values = [partition, seq, port.epoch(), frame]
    const { rowCount } = await connection.query({ name: 'append', text: append_text, values })
    if (rowCount !== 0 && rowCount !== 1) throw fault('overloaded', no_count)
    return rowCount === 0 ? 'fenced' : 'durable'
  }

  /**
   * The outcome of an unanswered append. A row found is durable, because this statement also renews
   * the owner's row and commits after it. A row that commits while the statement waits for the
   * owner's row is not found; the next insert meets it.
   */
  async function lookUp(seq: number, frame: Buffer): Promise<'durable' | 'fenced' | 'missing'> {
    const { rows } = await connection.query<{ is_owner: boolean; head: Buffer | null }>({
      name: 'look-up',
      text: look_up_text,
      values: [partition, seq, port.epoch()],
    })
    const { is_owner = false, head = null } = rows[0] ?? {}
    if (!is_owner) return 'fenced'
    if (head === null) return 'missing'
    return head.equals(frame.subarray(0, head.length)) ? 'durable' : 'fenced'
  }

  async function append({ arena, from, end, seq }: NewFrame): Promise<number> {
    const frame = arena.subarray(from, end)
    const began_ms = clock.now_ms()
    /** An insert was sent, or the position has a row. */
    let is_in_doubt = false
    let wait_ms = retry_ms.first
    while (!is_closed) {
      const sent_ms = clock.now_ms()
      try {
        const found = is_in_doubt ? await lookUp(seq, frame) : 'missing'
        const outcome = found === 'missing' ? await insert(seq, frame) : found
        if (outcome === 'fenced') throw ownershipLost()
        port.onAppended(sent_ms)
        return clock.now_ms() - began_ms
      } catch (error) {
        const state = sqlState(error)
        if (state === '53100' && !is_in_doubt) {
          throw fault('no_space', 'the disk of the database is full: free space on it', {
            cause: error,
          })
        }
        is_in_doubt = true
        if (state === taken) continue
        if (is_closed) break
        if (!isAway(error)) throw error
        port.onAway(error)
        await pause(clock, wait_ms, closed).finally(keepAlive())
        wait_ms = Math.min(2 * wait_ms, retry_ms.longest)
      }
    }
    throw fault('store_failed', 'the commit log was closed while an append had no answer')
  }

  return {
    append,
    rotate() {},
    merged: port.onMerged,
    preallocatedBytes: () => Number.POSITIVE_INFINITY,
    isSettled: () => true,
    async settle() {},
    end: port.release,
    async close() {
      is_closed = true
      emitClosed()
      await connection.close()
    },
  }
}

/** Bytes of one read; at least one frame. */
const batch_bytes = 4 * 1024 * 1024
const batch_frames_max = 512

/** The next frames after this position; the log may begin later. */
export async function readBatch(
  connection: Pick<Connection, 'query'>,
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
  const frames = rows.map(({ frame }) => checked(frame, after_seq))
  const first_seq = frames[0]?.seq ?? 0
  if (frames.some(({ seq }, at) => seq !== first_seq + at)) throw damaged(after_seq)
  return frames
}

/** Position of the last frame; 0 if none. */
export async function readHead(
  connection: Pick<Connection, 'query'>,
  partition: number,
): Promise<number> {
  const { rows } = await connection.query<{ seq: string }>({
    name: 'head',
    text: `SELECT coalesce(max(seq), 0)::text AS seq FROM conveyor.log WHERE partition = $1`,
    values: [partition],
  })
  return Number(rows[0]?.seq)
}

function checked(bytes: Buffer, after_seq: number): Frame {
  const [frame] = framesIn(bytes)
  if (frame === undefined || frame.bytes.length !== bytes.length) throw damaged(after_seq)
  return frame
}

export function damaged(after_seq: number): Fault {
  const says = `the commit log in the database is damaged after position ${after_seq}`
  return fault('not_a_database', `${says}: restore the database`)
}
