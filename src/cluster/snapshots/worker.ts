/**
 * The script of the snapshot thread: one snapshot, with its own connection and an LMDB read
 * transaction at one checkpoint. `bytes_per_s_max` leaves the database and disk to commits.
 *
 * It posts `ready`, waits for `pin`, opens the transaction while no checkpoint runs, posts
 * `pinned`, then `done` or `failed`. `stop` ends it sooner.
 */
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { pause, steadyClock, systemChance } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import { decodeManifest, manifest_key } from '../../store/commit-log/manifest.ts'
import { lowerPriority } from '../../store/commit-log/thread-priority.ts'
import { attachLmdbTree } from '../../store/lmdb/tree.ts'
import { newConnection } from '../database/connection.ts'
import { databaseOf } from '../database/url.ts'
import { begun, chunksOf, snapshot_id_bytes, stateIn } from './chunk.ts'
import { completeSnapshot, type SnapshotSize, writeSnapshot } from './rows.ts'
import { truncate } from './truncation.ts'

export interface SnapshotJob {
  readonly path: string
  readonly url: string
  readonly node: string
  readonly unsafe: boolean
  readonly partition: number
  readonly epoch: number
  readonly answer_ms_max: number
  readonly chunk_bytes: number
  readonly bytes_per_s_max: number
  /** As `TruncationOptions.behind_bytes_max`. */
  readonly behind_bytes_max: number
}

export interface WrittenSnapshot extends SnapshotSize {
  readonly seq: number
}

export type SnapshotMessage =
  | { readonly says: 'ready' | 'pinned' }
  | { readonly says: 'done'; readonly written: WrittenSnapshot }
  | { readonly says: 'failed'; readonly error: string }

const port = parentPort
if (port !== null) {
  lowerPriority()
  const job = workerData as SnapshotJob
  const { partition, epoch, bytes_per_s_max } = job
  const emit = (message: SnapshotMessage): void => port.postMessage(message)
  const connection = newConnection({
    database: databaseOf(job.url, job.node, job.unsafe),
    ...{ purpose: 'snapshot', clock: steadyClock, answer_ms_max: job.answer_ms_max },
  })
  let is_stopped = false
  const stopped = new Promise<void>((resolve) => {
    port.on('message', (message: 'pin' | 'stop') => {
      if (message !== 'stop') return
      is_stopped = true
      resolve()
      void connection.close()
    })
  })
  const step = async (): Promise<void> => {
    if (is_stopped) throw fault('shutting_down')
  }
  const { behind_bytes_max } = job
  const tidy = () => truncate({ connection, partition, epoch, behind_bytes_max, step })

  async function write(): Promise<WrittenSnapshot> {
    await tidy()
    const tree = await attachLmdbTree(job.path)
    try {
      const pin = once(port as NonNullable<typeof port>, 'message')
      emit({ says: 'ready' })
      await pin
      await step()
      const { seq, last_crc } = decodeManifest(tree.get(manifest_key) as Buffer)
      if (last_crc === undefined) throw new Error('the data file does not say its last frame')
      const id = systemChance.bytes(snapshot_id_bytes)
      const chunks = begun(chunksOf(stateIn(tree.range('', '\xff', false)), id, job.chunk_bytes))
      emit({ says: 'pinned' })
      const draft = { partition, epoch, id, seq, last_crc }
      const began_ms = steadyClock.now_ms()
      const size = await writeSnapshot(connection, draft, chunks, async (bytes) => {
        const due_ms = began_ms + (1000 * bytes) / bytes_per_s_max
        const early_ms = due_ms - steadyClock.now_ms()
        if (early_ms > 0) await pause(steadyClock, early_ms, stopped)
        await step()
      })
      await completeSnapshot(connection.query, draft, size)
      return { seq, ...size }
    } finally {
      await tree.close()
    }
  }

  try {
    const written = await write()
    emit({ says: 'done', written })
    await tidy()
  } catch (error) {
    emit({ says: 'failed', error: error instanceof Error ? error.message : String(error) })
  }
  await connection.close()
  port.close()
}
