/**
 * The rows of snapshots. A snapshot's row precedes its chunks and gets `chunks` once all are there;
 * until then no node loads it. Each change checks the epoch, so a former owner neither completes
 * nor removes a snapshot.
 */
import { type Fault, fault } from '../../core/faults.ts'
import type { Ask, Connection } from '../database/connection.ts'

export interface SnapshotDraft {
  readonly partition: number
  readonly epoch: number
  readonly id: Buffer
  /** Of its last frame. */
  readonly seq: number
  readonly last_crc: number
}

export interface SnapshotSize {
  readonly chunks: number
  readonly bytes: number
}

export interface Snapshot extends SnapshotSize, Pick<SnapshotDraft, 'id' | 'seq' | 'last_crc'> {}

/** Locks the row of the owner in epoch $2 until the commit. */
export const owned = `(SELECT 1 FROM conveyor.owner
  WHERE partition = $1 AND epoch = $2 FOR SHARE) AS owned`

/** Throws `store_failed` in another epoch. */
export async function beginSnapshot(connection: Connection, draft: SnapshotDraft): Promise<void> {
  const { partition, epoch, id, seq, last_crc } = draft
  const { rowCount } = await connection.query({
    text: `INSERT INTO conveyor.snapshot (partition, epoch, id, seq, last_crc)
      SELECT $1::int, $2::int8, $3::bytea, $4::int8, $5::int8 FROM ${owned}`,
    values: [partition, epoch, id, seq, last_crc],
  })
  if (rowCount !== 1) throw fenced()
}

async function addChunk(
  connection: Connection,
  { partition, id }: SnapshotDraft,
  chunk: number,
  data: Buffer,
): Promise<void> {
  await connection.query({
    name: 'chunk',
    text: `INSERT INTO conveyor.snapshot_chunk (partition, snapshot, chunk, data)
      VALUES ($1, $2, $3, $4)`,
    values: [partition, id, chunk, data],
  })
}

/**
 * Writes chunk after chunk; the next truncation removes an unfinished snapshot. `step` runs after
 * each chunk, with the bytes so far, and rejects to end the work.
 */
export async function writeSnapshot(
  connection: Connection,
  draft: SnapshotDraft,
  chunks: Iterable<Buffer>,
  step?: (bytes: number) => Promise<void> | void,
): Promise<SnapshotSize> {
  await beginSnapshot(connection, draft)
  let [count, bytes] = [0, 0]
  for (const chunk of chunks) {
    count++
    bytes += chunk.length
    await addChunk(connection, draft, count, chunk)
    await step?.(bytes)
  }
  return { chunks: count, bytes }
}

/** Throws `store_failed` in another epoch, or if the row or a chunk is gone. */
export async function completeSnapshot(
  ask: Ask,
  { partition, epoch, id }: SnapshotDraft,
  { chunks, bytes }: SnapshotSize,
): Promise<void> {
  const { rowCount } = await ask({
    text: `UPDATE conveyor.snapshot SET chunks = $4, bytes = $5, at = now() FROM ${owned}
      WHERE partition = $1 AND id = $3 AND chunks IS NULL AND $4 = (
        SELECT count(*) FROM conveyor.snapshot_chunk WHERE partition = $1 AND snapshot = $3)`,
    values: [partition, epoch, id, chunks, bytes],
  })
  if (rowCount !== 1) throw fenced()
}

/** The complete snapshot with the last position. */
export async function newestSnapshot(
  connection: Connection,
  partition: number,
): Promise<Snapshot | undefined> {
  const { rows } = await connection.query<Record<keyof Omit<Snapshot, 'id'>, string> & SnapshotId>({
    text: `SELECT id, seq, last_crc, chunks, bytes FROM conveyor.snapshot
      WHERE partition = $1 AND chunks IS NOT NULL ORDER BY seq DESC, at DESC LIMIT 1`,
    values: [partition],
  })
  const [row] = rows
  if (row === undefined) return undefined
  const { id, seq, last_crc, chunks, bytes } = row
  return {
    ...{ id, seq: Number(seq), last_crc: Number(last_crc) },
    ...{ chunks: Number(chunks), bytes: Number(bytes) },
  }
}

type SnapshotId = Pick<Snapshot, 'id'>

export async function readChunk(
  connection: Connection,
  partition: number,
  { id }: SnapshotId,
  chunk: number,
): Promise<Buffer | undefined> {
  const { rows } = await connection.query<{ data: Buffer }>({
    name: 'read_chunk',
    text: `SELECT data FROM conveyor.snapshot_chunk
      WHERE partition = $1 AND snapshot = $2 AND chunk = $3`,
    values: [partition, id, chunk],
  })
  return rows[0]?.data
}

function fenced(): Fault {
  return fault('store_failed', 'another node owns the data now, or has removed the snapshot')
}
