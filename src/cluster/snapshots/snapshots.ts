/**
 * Decides when an owner writes a snapshot: once the log after the last one is longer than the state
 * and than `log_bytes_min`. So snapshots cost no more than the log, and the state bounds the log
 * and a join. A thread writes one at a time; a failed one is retried after `retry_ms`.
 */
import { type Clock, pause } from '../../core/clock.ts'
import type { Emit } from '../../core/events.ts'
import { threadStart } from '../../core/thread-start.ts'
import type { CommitLogTree } from '../../store/commit-log/tree.ts'
import { chunk_default_bytes } from '../../store/snapshots/chunk.ts'
import { type SnapshotThread, startSnapshotThread } from '../../store/snapshots/thread.ts'
import type { Connection } from '../database/connection.ts'
import type { NodeStatus } from '../node/status.ts'
import type { SnapshotJob, WrittenSnapshot } from './worker.ts'

export interface SnapshotOptions {
  /** No snapshot for a shorter log; default 256 MiB. */
  readonly log_bytes_min?: number
  /** Default 1 MiB. */
  readonly chunk_bytes?: number
  /** Default 16 MiB. */
  readonly bytes_per_s_max?: number
  /** Interval of checks of the log's length; default 1,000. */
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
  state(): Pick<NodeStatus, 'snapshot' | 'log_bytes'>
  /** Ends a snapshot under way. */
  close(): Promise<void>
}

export interface SnapshotsPort {
  readonly tree: CommitLogTree
  readonly clock: Clock
  readonly emit: Emit
  readonly options: SnapshotOptions
  readonly job: Omit<SnapshotJob, 'behind_bytes_max' | 'bytes_per_s_max' | 'chunk_bytes'>
  connect(): Connection
}

/** Lives for the tenure of an owner. */
export function newSnapshots(port: SnapshotsPort): Snapshots {
  const { tree, clock, emit, job } = port
  const options = { ...snapshot_defaults, ...port.options }
  const { node } = job
  let running: SnapshotThread<WrittenSnapshot> | undefined
  /** Bytes written before the newest snapshot, counted in this tenure. */
  let covered_bytes: number | undefined
  let newest: NodeStatus['snapshot']
  let is_closed = false
  let close = (): void => {}
  const closed = new Promise<void>((resolve) => {
    close = resolve
  })
  const writtenBytes = (): number => tree.numbers?.().written_bytes ?? 0
  const dueBytes = (): number => Math.max(options.log_bytes_min, tree.numbers?.().used_bytes ?? 0)

  async function write(): Promise<number> {
    const began_ms = clock.now_ms()
    let pinned_bytes = 0
    const { bytes_per_s_max, chunk_bytes } = options
    const thread = startSnapshotThread<WrittenSnapshot>(
      threadStart(import.meta.url, 'worker'),
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
      newest = { bytes, written_ms: clock.now_ms() }
      emit('snapshot', { node, seq, bytes, chunks, ms: Math.round(clock.now_ms() - began_ms) })
      await thread.ended
      return pinned_bytes
    } finally {
      await thread.stop()
      running = undefined
    }
  }

  /** Reads the newest snapshot after a takeover. A close does not wait for it. */
  async function lookUp(): Promise<void> {
    const found = await Promise.race([readLog(port), closed])
    if (found === undefined) return
    newest = found.snapshot
    covered_bytes = writtenBytes() - found.log_bytes
  }

  async function run(): Promise<void> {
    while (!is_closed) {
      let wait_ms = options.check_ms
      try {
        if (covered_bytes === undefined) await lookUp()
        const log_bytes = writtenBytes() - (covered_bytes ?? 0)
        if (!is_closed && log_bytes > dueBytes()) covered_bytes = await write()
      } catch (error) {
        wait_ms = options.retry_ms
        const reason = error instanceof Error ? error.message : String(error)
        if (!is_closed) emit('snapshot_failed', { node, reason })
      }
      if (!is_closed) await pause(clock, wait_ms, closed)
    }
  }
  const ended = run()

  return {
    state: () => ({
      snapshot: newest,
      log_bytes: covered_bytes === undefined ? undefined : writtenBytes() - covered_bytes,
    }),
    async close() {
      is_closed = true
      close()
      await running?.stop()
      await ended
    },
  }
}

/** The newest snapshot, and the bytes of the commit log after it. */
async function readLog({ connect, job, clock }: SnapshotsPort) {
  const connection = connect()
  try {
    const { rows } = await connection.query<Record<'log_bytes' | 'bytes' | 'age_s', string | null>>(
      {
        text: `WITH newest AS (
          SELECT seq, bytes, extract(epoch FROM now() - at)::text AS age_s FROM conveyor.snapshot
          WHERE partition = $1 AND chunks IS NOT NULL ORDER BY seq DESC LIMIT 1
        ) SELECT (
          SELECT coalesce(sum(octet_length(frame)), 0)::text FROM conveyor.log
          WHERE partition = $1 AND seq > coalesce((SELECT seq FROM newest), 0)
        ) AS log_bytes, bytes::text, age_s FROM (SELECT) AS one LEFT JOIN newest ON true`,
        values: [job.partition],
      },
    )
    const { log_bytes, bytes = null, age_s } = rows[0] ?? {}
    const written_ms = clock.now_ms() - 1000 * Number(age_s)
    const snapshot = bytes === null ? undefined : { bytes: Number(bytes), written_ms }
    return { log_bytes: Number(log_bytes), snapshot }
  } finally {
    await connection.close()
  }
}
