/**
 * The merger as a thread: started with its first job, and then kept until it is closed. An idle
 * one does not keep the process alive, one at work does.
 */
import { Worker } from 'node:worker_threads'
import { fault } from '../../core/faults.ts'
import type { CheckpointJob, CheckpointRunner } from './checkpoint-job.ts'
import { checkpointScript } from './checkpoint-script.ts'
import type { CheckpointResult, CheckpointWorkerData } from './checkpoint-worker.ts'

/** For the tree of the data file at `path`, which this process holds. */
export function newCheckpointThread(path: string): CheckpointRunner {
  let worker: Worker | undefined
  let settle: ((error: Error | undefined) => void) | undefined

  function start(): Worker {
    const { script, options, data } = checkpointScript()
    const workerData = { ...data, path } satisfies CheckpointWorkerData
    const made = new Worker(script, { ...options, workerData })
    made.on('message', ({ error, no_space = false }: CheckpointResult) => {
      settle?.(error === undefined ? undefined : no_space ? fault('no_space') : new Error(error))
    })
    made.on('error', (error: Error) => settle?.(error))
    made.on('exit', () => {
      if (worker === made) worker = undefined
      settle?.(new Error('the thread of the log has ended'))
    })
    return made
  }

  function ask(message: CheckpointJob | 'close'): Promise<void> {
    return new Promise((resolve, reject) => {
      worker ??= start()
      const mine = worker
      mine.ref()
      settle = (error) => {
        settle = undefined
        mine.unref()
        if (error === undefined) resolve()
        else reject(error)
      }
      mine.postMessage(message)
    })
  }

  return {
    run: ask,
    async close() {
      if (worker === undefined) return
      // What it cannot close any more goes with it.
      await ask('close').catch(() => {})
      worker?.ref()
      await worker?.terminate()
    },
  }
}
