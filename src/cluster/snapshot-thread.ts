/**
 * One snapshot in a worker thread of its own: started for it, and ended with it.
 */
import { Worker } from 'node:worker_threads'
import { steadyClock, within } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import { threadStart } from '../core/thread-start.ts'
import type { SnapshotJob, SnapshotMessage, WrittenSnapshot } from './snapshot-worker.ts'

export interface SnapshotThread {
  /** Rejects if there is no snapshot, with the reason; or if it is not known whether there is. */
  readonly written: Promise<WrittenSnapshot>
  /** Resolves when the thread has ended: after the truncation that follows the snapshot. */
  readonly ended: Promise<void>
  /** Ends the thread, and so `ended`. */
  stop(): Promise<void>
}

/** After so long a thread that was told to stop is ended by force. */
const stop_ms_max = 2_000

/** `atRest` runs what it is given while no checkpoint does. */
export function startSnapshot(
  job: SnapshotJob,
  atRest: (work: () => Promise<void>) => Promise<void>,
): SnapshotThread {
  const { script, options } = threadStart(import.meta.url, 'snapshot-worker')
  const worker = new Worker(script, { ...options, workerData: job })
  let is_pinned = (): void => {}
  const pinned = new Promise<void>((resolve) => {
    is_pinned = resolve
  })
  const ended = new Promise<void>((resolve) => worker.on('exit', () => resolve()))
  const written = new Promise<WrittenSnapshot>((resolve, reject) => {
    worker.on('message', (message: SnapshotMessage) => {
      if (message.says === 'pinned') is_pinned()
      if (message.says === 'done') resolve(message.written)
      if (message.says === 'failed') reject(new Error(message.error))
      if (message.says !== 'ready') return
      const pin = (): Promise<void> => {
        worker.postMessage('pin')
        return Promise.race([pinned, ended])
      }
      atRest(pin).catch((error: unknown) => {
        reject(error)
        worker.postMessage('stop')
      })
    })
    worker.on('error', reject)
    worker.on('exit', () => reject(fault('shutting_down', 'the snapshot was ended')))
  })
  written.catch(() => {})
  return {
    written,
    ended,
    async stop() {
      worker.postMessage('stop')
      if ((await within(steadyClock, stop_ms_max, ended)) === 'late') await worker.terminate()
    },
  }
}
