/**
 * What runs in the thread of a log: its own handle of the tree, and one merge after the other. A
 * merge that fails is told and is the last, for nobody knows then what the tree holds. It does all
 * of the work itself, so that no other thread of the process is kept busy.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { openLmdbTree } from '../lmdb-tree.ts'
import { type MergeJob, mergeSegment, newReading } from './merger.ts'

/** Handed over as the thread starts. */
export interface MergeWorkerData {
  readonly path: string
}

export interface MergeAnswer {
  readonly error?: string
}

const port = parentPort
if (port !== null) {
  const { path } = workerData as MergeWorkerData
  const opening = openLmdbTree(path, { in_place: true })
  const reading = newReading()
  const merge = async (job: MergeJob): Promise<void> => {
    const { head } = job
    const whole = { ...job, head: { ...head, id: Buffer.from(head.id) } }
    await mergeSegment(await opening, whole, reading)
  }
  port.on('message', async (message: MergeJob | 'close') => {
    let answer: MergeAnswer = {}
    try {
      if (message === 'close') await (await opening).close()
      else await merge(message)
    } catch (error) {
      answer = { error: error instanceof Error ? error.message : String(error) }
    }
    port.postMessage(answer)
  })
}
