/**
 * Starts the checkpoint's worker thread on first use and closes it. Only a thread at work keeps the
 * process alive.
 */
import { Worker } from 'node:worker_threads'
import { fault } from '../../core/faults.ts'
import type { CheckpointJob } from './checkpoint.ts'
import { checkpointScript } from './checkpoint-script.ts'
import type { CheckpointMessage, CheckpointWorkerData } from './checkpoint-worker.ts'

export interface CheckpointThread {
  /** Resolves when all is on disk; rejects as `runCheckpoint` throws. One job at a time. */
  run(job: CheckpointJob): Promise<void>
  close(): Promise<void>
}

/**
 * For the data file at `path`, whose lock this process holds. `onCommit` is called after each
 * commit of a job but the last.
 */
export function newCheckpointThread(path: string, onCommit: () => void): CheckpointThread {
  let worker: Worker | undefined
  let settle: ((error: Error | undefined) => void) | undefined

  function start(): Worker {
    const { script, options, data } = checkpointScript()
    const workerData = { ...data, path } satisfies CheckpointWorkerData
    const started = new Worker(script, { ...options, workerData })
    started.on('message', (message: CheckpointMessage) => {
      if (message === 'committed') return onCommit()
      const { error, no_space = false } = message
      settle?.(error === undefined ? undefined : no_space ? fault('no_space') : new Error(error))
    })
    started.on('error', (error: Error) => settle?.(error))
    started.on('exit', () => {
      if (worker === started) worker = undefined
      settle?.(new Error('the checkpoint thread has ended'))
    })
    return started
  }

  function send(message: CheckpointJob | 'close'): Promise<void> {
    return new Promise((resolve, reject) => {
      worker ??= start()
      const current = worker
      current.ref()
      settle = (error) => {
        settle = undefined
        current.unref()
        if (error === undefined) resolve()
        else reject(error)
      }
      current.postMessage(message)
    })
  }

  return {
    run: send,
    async close() {
      if (worker === undefined) return
      // `terminate` also ends what the thread could not close.
      await send('close').catch(() => {})
      worker?.ref()
      await worker?.terminate()
    },
  }
}
