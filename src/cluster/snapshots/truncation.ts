/**
 * Removes what a complete snapshot replaces: earlier and unfinished snapshots, and the log before
 * it. The row at its position stays, so that a node that has loaded it can check that the log
 * continues there. For a node seen in the last hour its unread log stays, unless that is larger
 * than a snapshot: then the node loads the snapshot. So the log is at most about twice the state.
 * The database's clock decides about space only. Statements remove little, so that commits do not
 * wait and vacuuming keeps up.
 */
import type { Connection } from '../database/connection.ts'
import { newestSnapshot, owned } from './rows.ts'

export interface TruncationOptions {
  readonly connection: Connection
  readonly partition: number
  readonly epoch: number
  /** Bytes of the log that stay for a node behind. */
  readonly behind_bytes_max: number
  /** Called after each statement; rejects to end the work. */
  step(): Promise<void>
}

/** Removed per statement; at least a frame. */
const step_bytes = 8 * 1024 * 1024
const step_frames_max = 2_000
const step_chunks = 8

/** Position of the first frame that stays; 0 without a snapshot. */
export async function truncate(options: TruncationOptions): Promise<number> {
  const { connection, partition, epoch, step } = options
  const newest = await newestSnapshot(connection, partition)
  await removeSnapshots(options, newest?.id)
  if (newest === undefined) return 0
  const kept_seq = await firstKept(options, newest.seq)
  for (;;) {
    const { rowCount } = await connection.query({
      text: `DELETE FROM conveyor.log USING ${owned} WHERE partition = $1 AND seq <= (
        SELECT max(seq) FROM (
          SELECT seq, sum(octet_length(frame)) OVER (ORDER BY seq) - octet_length(frame) AS before
          FROM (SELECT seq, frame FROM conveyor.log WHERE partition = $1 AND seq < $3
            ORDER BY seq LIMIT ${step_frames_max}) AS oldest
        ) AS summed WHERE before < ${step_bytes})`,
      values: [partition, epoch, kept_seq],
    })
    await step()
    if (rowCount === 0) return kept_seq
  }
}

/** Keeps the newest complete one and those that a node still loads. */
async function removeSnapshots(
  { connection, partition, epoch, step }: TruncationOptions,
  newest: Buffer | undefined,
): Promise<void> {
  await connection.query({
    text: `DELETE FROM conveyor.snapshot AS old USING ${owned}
      WHERE old.partition = $1 AND ($3::bytea IS NULL OR id <> $3) AND (chunks IS NULL
        OR NOT EXISTS (SELECT 1 FROM conveyor.replica AS node WHERE ${isSeen}
          AND node.partition = $1 AND node.seq = old.seq))`,
    values: [partition, epoch, newest],
  })
  for (;;) {
    const { rowCount } = await connection.query({
      text: `DELETE FROM conveyor.snapshot_chunk USING ${owned}
        WHERE partition = $1 AND (snapshot, chunk) IN (
          SELECT snapshot, chunk FROM conveyor.snapshot_chunk AS old WHERE partition = $1
            AND NOT EXISTS (SELECT 1 FROM conveyor.snapshot AS whose
              WHERE whose.partition = $1 AND whose.id = old.snapshot)
          LIMIT ${step_chunks})`,
      values: [partition, epoch],
    })
    await step()
    if (rowCount === 0) return
  }
}

const isSeen = `node.seen_at > now() - interval '1 hour'`

async function firstKept(
  { connection, partition, behind_bytes_max }: TruncationOptions,
  seq: number,
): Promise<number> {
  const { rows } = await connection.query<{ seq: string | null }>({
    text: `SELECT min(seq) AS seq FROM conveyor.replica AS node
      WHERE partition = $1 AND seq > 0 AND seq < $2 AND ${isSeen} AND $3 >= (
        SELECT coalesce(sum(octet_length(frame)), 0) FROM conveyor.log AS ahead
        WHERE ahead.partition = $1 AND ahead.seq > node.seq AND ahead.seq <= $2)`,
    values: [partition, seq, behind_bytes_max],
  })
  return Number(rows[0]?.seq ?? seq)
}
