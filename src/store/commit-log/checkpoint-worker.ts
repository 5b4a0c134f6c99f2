/**
 * The script of the checkpoint thread: opens LMDB for itself and runs one checkpoint after the
 * other. After a failure other than lack of space there is no further one, because the state of the
 * file is unknown. All work is synchronous, so it occupies no other thread of the process.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { isFull } from '../file-system.ts'
import { attachLmdbTree } from '../lmdb/tree.ts'
import { type CheckpointJob, newScratch, runCheckpoint } from './checkpoint.ts'
import { lowerPriority } from './thread-priority.ts'

export interface CheckpointWorkerData {
  readonly path: string
}

/** After each commit of a job but the last, and at its end. */
export type CheckpointMessage = 'committed' | CheckpointResult

export interface CheckpointResult {
  readonly error?: string
  /** The checkpoint had no disk space and may be repeated. */
  readonly no_space?: boolean
}

const port = parentPort
if (port !== null) {
  lowerPriority()
  const { path } = workerData as CheckpointWorkerData
  const opening = attachLmdbTree(path)
  const scratch = newScratch()
  const onCommit = (): void => port.postMessage('committed' satisfies CheckpointMessage)
  const run = async (job: CheckpointJob): Promise<void> => {
    runCheckpoint(await opening, withBuffers(job), scratch, onCommit)
  }
  port.on('message', async (message: CheckpointJob | 'close') => {
    let result: CheckpointResult = {}
    try {
      if (message === 'close') await (await opening).close()
      else await run(message)
    } catch (error) {
      const no_space = isFull(error)
      result = { error: error instanceof Error ? error.message : String(error), no_space }
    }
    port.postMessage(result)
  })
}

/**
 * Messages turn Buffers into Uint8Arrays. The frames are still the memory of the commit log, no
 * copy.
 */
function withBuffers({ written, manifest, slice }: CheckpointJob): CheckpointJob {
  const { buffer, byteOffset, byteLength } = written.frames
  const frames = Buffer.from(buffer, byteOffset, byteLength)
  const id = Buffer.from(manifest.id)
  return { written: { ...written, frames }, manifest: { ...manifest, id }, slice }
}
