/**
 * Starts the thread of one snapshot, for a database (cluster/snapshots) or a backup target
 * (backups). The thread says `opens`, and `ready` with the file open; it begins its transaction
 * once it gets `pin`, says `pinned`, and then `done` or `failed`. `stop` ends it sooner.
 */
import { Worker } from 'node:worker_threads'
import { steadyClock, within } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { ThreadStart } from '../../core/thread-start.ts'
import type { SnapshotMessage } from './script.ts'

export interface SnapshotThread<Written> {
  /** Rejects if the snapshot failed or its outcome is unknown. */
  readonly written: Promise<Written>
  /** Resolves at the thread's end, after its last work. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

/** A thread that has not stopped by then is terminated. */
const stop_ms_max = 2_000

/** `atRest` runs its work between checkpoints. */
export function startSnapshotThread<Written>(
  { script, options }: ThreadStart,
  job: unknown,
  atRest: (work: () => Promise<void>) => Promise<void>,
): SnapshotThread<Written> {
  const worker = new Worker(script, { ...options, workerData: job })
  let is_pinned = (): void => {}
  const pinned = new Promise<void>((resolve) => {
    is_pinned = resolve
  })
  let is_ready = (): void => {}
  const ready = new Promise<void>((resolve) => {
    is_ready = resolve
  })
  /** LMDB ends the whole process where a thread is terminated while it opens the file. */
  let opened: Promise<void> | undefined
  const ended = new Promise<void>((resolve) => worker.on('exit', () => resolve()))
  const written = new Promise<Written>((resolve, reject) => {
    worker.on('message', (message: SnapshotMessage<Written>) => {
      if (message.says === 'pinned') is_pinned()
      if (message.says === 'opens') opened = Promise.race([ready, ended])
      if (message.says === 'ready') is_ready()
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
      if ((await within(steadyClock, stop_ms_max, ended)) !== 'late') return
      await opened
      await worker.terminate()
    },
  }
}
