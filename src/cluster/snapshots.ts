/**
 * Decides when an owner writes a snapshot: when the log after the last one is longer than the
 * state, and worth the work. So snapshots cost no more than was written anyway, and the log and a
 * join are bounded by the state. One at a time; one that fails is tried again later.
 */
import { type Clock, pause } from '../core/clock.ts'
import type { Tell } from '../core/events.ts'
import type { CommitLogTree } from '../store/commit-log/tree.ts'
import type { Connection } from './connection.ts'
import { chunk_default_bytes } from './snapshot-chunk.ts'
import { type SnapshotThread, startSnapshot } from './snapshot-thread.ts'
import type { SnapshotJob } from './snapshot-worker.ts'

export interface SnapshotOptions {
  /** A shorter log is worth no snapshot; default 256 MiB. */
  readonly log_bytes_min?: number
  /** Default 1 MiB. */
  readonly chunk_bytes?: number
  /** How fast one is written; default 16 MiB. */
  readonly bytes_per_s_max?: number
  /** Between two looks at the length of the log; default 1,000. */
  readonly check_ms?: number
  /** After a failure; default 60,000. */
  readonly retry_ms?: number
}

export const snapshot_defaults: Required<SnapshotOptions> = {
  log_bytes_min: 256 * 1024 * 1024,
  chunk_bytes: chunk_default_bytes,
  bytes_per_s_max: 16 * 1024 * 1024,
  check_ms: 1_000,
  retry_ms: 60_000,
}

export interface Snapshots {
  /** Ends one that is being written. */
  close(): Promise<void>
}

export interface SnapshotsPort {
  readonly tree: CommitLogTree
  readonly clock: Clock
  readonly tell: Tell
  readonly options: SnapshotOptions
  readonly job: Omit<SnapshotJob, 'behind_bytes_max' | 'bytes_per_s_max' | 'chunk_bytes'>
  /** A connection that nothing else waits for. */
  connect(): Connection
}

/** For the tenure of an owner. */
export function newSnapshots(port: SnapshotsPort): Snapshots {
  const { tree, clock, tell, job } = port
  const options = { ...snapshot_defaults, ...port.options }
  const { node } = job
  let running: SnapshotThread | undefined
  let is_closed = false
  let close = (): void => {}
  const closed = new Promise<void>((resolve) => {
    close = resolve
  })
  const writtenBytes = (): number => tree.numbers?.().written_bytes ?? 0
  /** A snapshot is due once the log after the last one is longer. */
  const dueBytes = (): number => Math.max(options.log_bytes_min, tree.numbers?.().used_bytes ?? 0)

  async function write(): Promise<number> {
    const began_ms = clock.now_ms()
    let pinned_bytes = 0
    const { bytes_per_s_max, chunk_bytes } = options
    const thread = startSnapshot(
      { ...job, bytes_per_s_max, chunk_bytes, behind_bytes_max: dueBytes() },
      (work) =>
        tree.atRest(() => {
          pinned_bytes = writtenBytes()
          return work()
        }),
    )
    running = thread
    try {
      const { seq, bytes, chunks } = await thread.written
      tell('snapshot', { node, seq, bytes, chunks, ms: Math.round(clock.now_ms() - began_ms) })
      await thread.ended
      return pinned_bytes
    } finally {
      await thread.stop()
      running = undefined
    }
  }

  async function run(): Promise<void> {
    let covered_bytes: number | undefined
    while (!is_closed) {
      let wait_ms = options.check_ms
      try {
        // A close does not wait for a database that is away.
        covered_bytes ??= writtenBytes() - ((await Promise.race([logBytes(port), closed])) ?? 0)
        if (!is_closed && writtenBytes() - covered_bytes > dueBytes()) covered_bytes = await write()
      } catch (error) {
        wait_ms = options.retry_ms
        const reason = error instanceof Error ? error.message : String(error)
        if (!is_closed) tell('snapshot_failed', { node, reason })
      }
      if (!is_closed) await pause(clock, wait_ms, closed)
    }
  }
  const ended = run()

  return {
    async close() {
      is_closed = true
      close()
      await running?.stop()
      await ended
    },
  }
}

/** Bytes of the log after the newest snapshot. */
async function logBytes({ connect, job }: SnapshotsPort): Promise<number> {
  const connection = connect()
  try {
    const { rows } = await connection.query<{ bytes: string }>({
      text: `SELECT coalesce(sum(octet_length(frame)), 0) AS bytes FROM conveyor.log
        WHERE partition = $1 AND seq > coalesce((SELECT max(seq) FROM conveyor.snapshot
          WHERE partition = $1 AND chunks IS NOT NULL), 0)`,
      values: [job.partition],
    })
    return Number(rows[0]?.bytes ?? 0)
  } finally {
    await connection.close()
  }
}
