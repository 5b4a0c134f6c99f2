/**
 * What runs in the thread of a log: its own handle of the tree, and one merge after the other. One
 * that fails but for lack of room is the last, for nobody knows then what the tree holds. It does
 * all of the work itself, so that no other thread of the process is kept busy.
 */
import { readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { basename } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { isFault } from '../../core/faults.ts'
import { openLmdbTree } from '../lmdb/tree.ts'
import { type CheckpointJob, newScratch, runCheckpoint } from './checkpoint-job.ts'

/** Handed over as the thread starts. */
export interface CheckpointWorkerData {
  readonly path: string
}

export interface CheckpointResult {
  readonly error?: string
  /** The merge broke off for lack of room, and may be done again. */
  readonly no_space?: boolean
}

const port = parentPort
if (port !== null) {
  stepBack()
  const { path } = workerData as CheckpointWorkerData
  const opening = openLmdbTree(path)
  const desk = newScratch()
  const merge = async (job: CheckpointJob): Promise<void> => {
    runCheckpoint(await opening, restored(job), desk)
  }
  port.on('message', async (message: CheckpointJob | 'close') => {
    let answer: CheckpointResult = {}
    try {
      if (message === 'close') await (await opening).close()
      else await merge(message)
    } catch (error) {
      const no_space = isFault(error) && error.code === 'no_space'
      answer = { error: error instanceof Error ? error.message : String(error), no_space }
    }
    port.postMessage(answer)
  })
}

/** Buffers come over as bytes; those of the frames are the log's own, not a copy. */
function restored({ written, head, slice }: CheckpointJob): CheckpointJob {
  const { buffer, byteOffset, byteLength } = written.frames
  const frames = Buffer.from(buffer, byteOffset, byteLength)
  return { written: { ...written, frames }, head: { ...head, id: Buffer.from(head.id) }, slice }
}

/**
 * Callers come first, where the system knows priorities of threads. Those that outrun the merge
 * wait for it, and leave it the cores meanwhile.
 */
function stepBack(): void {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')))
    setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // Then it is a thread like the others.
  }
}
