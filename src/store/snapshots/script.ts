/**
 * The part of a snapshot that runs in its thread: an LMDB read transaction at one checkpoint, whose
 * entries become chunks. `bytes_per_s_max` leaves the target and the disk to commits.
 */
import { once } from 'node:events'
import type { MessagePort } from 'node:worker_threads'
import { pause, steadyClock, systemChance } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import { decodeManifest, manifest_key } from '../commit-log/manifest.ts'
import { lowerPriority } from '../commit-log/thread-priority.ts'
import { attachLmdbTree } from '../lmdb/tree.ts'
import { begun, chunksOf, snapshot_id_bytes, stateIn } from './chunk.ts'

export interface SnapshotSource {
  readonly path: string
  readonly chunk_bytes: number
  readonly bytes_per_s_max: number
}

export type SnapshotMessage<Written> =
  | { readonly says: 'opens' | 'ready' | 'pinned' }
  | { readonly says: 'done'; readonly written: Written }
  | { readonly says: 'failed'; readonly error: string }

/** The state at one position, as chunks. */
export interface PinnedState {
  /** Random. */
  readonly id: Buffer
  /** Of the commit log. */
  readonly log_id: Buffer
  /** Of the last frame in it. */
  readonly seq: number
  readonly last_crc: number
  readonly chunks: Iterable<Buffer>
  /** Called after each chunk with the bytes so far; rejects once the thread is to stop. */
  step(bytes: number): Promise<void>
}

export interface SnapshotWork<Written> {
  /** Rejects once the thread is to stop. */
  prepare?(step: () => Promise<void>): Promise<unknown>
  write(state: PinnedState): Promise<Written>
  /** After `done`. */
  finish?(step: () => Promise<void>): Promise<unknown>
  /** The last call; also made at once on a `stop`. */
  close?(): Promise<void>
}

export async function runSnapshot<Written>(
  port: MessagePort,
  { path, chunk_bytes, bytes_per_s_max }: SnapshotSource,
  work: SnapshotWork<Written>,
): Promise<void> {
  lowerPriority()
  const emit = (message: SnapshotMessage<Written>): void => port.postMessage(message)
  let is_stopped = false
  const stopped = new Promise<void>((resolve) => {
    port.on('message', (message: 'pin' | 'stop') => {
      if (message !== 'stop') return
      is_stopped = true
      resolve()
      void work.close?.()
    })
  })
  const step = async (): Promise<void> => {
    if (is_stopped) throw fault('shutting_down')
  }

  async function write(): Promise<Written> {
    await work.prepare?.(step)
    emit({ says: 'opens' })
    const tree = await attachLmdbTree(path)
    try {
      const pin = once(port, 'message')
      emit({ says: 'ready' })
      await pin
      await step()
      // The opening has read already: that transaction may be older than the checkpoint.
      tree.refresh()
      const { id: log_id, seq, last_crc } = decodeManifest(tree.get(manifest_key) as Buffer)
      if (last_crc === undefined) throw new Error('the data file does not say its last frame')
      const id = systemChance.bytes(snapshot_id_bytes)
      const chunks = begun(chunksOf(stateIn(tree.range('', '\xff', false)), id, chunk_bytes))
      emit({ says: 'pinned' })
      const began_ms = steadyClock.now_ms()
      return await work.write({
        ...{ id, log_id, seq, last_crc, chunks },
        async step(bytes) {
          const due_ms = began_ms + (1000 * bytes) / bytes_per_s_max
          const early_ms = due_ms - steadyClock.now_ms()
          if (early_ms > 0) await pause(steadyClock, early_ms, stopped)
          await step()
        },
      })
    } finally {
      await tree.close()
    }
  }

  try {
    const written = await write()
    emit({ says: 'done', written })
    await work.finish?.(step)
  } catch (error) {
    emit({ says: 'failed', error: error instanceof Error ? error.message : String(error) })
  }
  await work.close?.()
  port.close()
}
