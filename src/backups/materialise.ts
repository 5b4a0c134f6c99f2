/**
 * Makes a data file of a plan: the snapshot, then the frames up to the position. The file is new
 * and opens alone, with a commit log of its own, so it never continues in the target it came from.
 */

import type { Frame } from '../store/commit-log/frame.ts'
import { openDataFile } from '../store/data-file.ts'
import { syncPath } from '../store/disk/file-system.ts'
import { writeFrames } from '../store/snapshots/write-frames.ts'
import type { Plan } from './plan.ts'
import { framesTo, type Source } from './read-parts.ts'

/** Of one commit of LMDB. */
const commit_bytes = 8 * 1024 * 1024

export interface ReadBytes {
  readonly bytes: number
  readonly frames: number
}

/** Reads and checks everything that the plan needs, and writes nothing. */
export async function checkPlan(source: Source, plan: Plan): Promise<ReadBytes> {
  let [bytes, count] = [0, 0]
  for await (const frames of framesTo(source, plan)) {
    count += frames.length
    for (const frame of frames) bytes += frame.bytes.length
  }
  return { bytes, frames: count }
}

/** `path` must not exist. Synced and closed when it resolves. */
export async function materialise(source: Source, plan: Plan, path: string): Promise<ReadBytes> {
  const tree = await openDataFile(path)
  let [bytes, count] = [0, 0]
  try {
    let gathered: Frame[] = []
    let gathered_bytes = 0
    for await (const frames of framesTo(source, plan)) {
      for (const frame of frames) {
        gathered.push(frame)
        gathered_bytes += frame.bytes.length
      }
      if (gathered_bytes < commit_bytes) continue
      await writeFrames(tree, gathered, true)
      bytes += gathered_bytes
      count += gathered.length
      gathered = []
      gathered_bytes = 0
    }
    // Also without changes: the last commit writes the sums of the pages.
    await writeFrames(tree, gathered, false)
    bytes += gathered_bytes
    count += gathered.length
  } finally {
    await tree.close()
  }
  await syncPath(path)
  return { bytes, frames: count }
}
