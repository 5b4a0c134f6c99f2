/**
 * Who brings the frames of a segment into the tree: a thread of its own, so that callers do not
 * wait for it, or, for what is left at the end, this one.
 */

import { type CheckpointTarget, type SliceBounds, writeFrames } from './checkpoint.ts'
import { type Frame, framesIn } from './frame.ts'
import type { Manifest } from './manifest.ts'
import { room_bytes } from './memtable.ts'
import type { FrameRange } from './writer.ts'

/** Nobody writes there meanwhile. */
export interface CheckpointJob {
  readonly written: FrameRange
  /** What the tree says afterwards. */
  readonly head: Manifest
  readonly slice: SliceBounds
}

export interface CheckpointRunner {
  /** Resolves when all is on disk in the tree; rejects as `mergeFrames` throws. One at a time. */
  run(job: CheckpointJob): Promise<void>
  close(): Promise<void>
}

/** Where frames are copied to: kept for the next, so that memory is not asked for and freed. */
export interface Scratch {
  room: Buffer
}

/** Segments are merged when they are about as long as the last one was. */
const room_for_more = 1.25
/** No more is kept, where one commit was so large. */
const kept_bytes_max = room_for_more * room_bytes

export const newScratch = (): Scratch => ({ room: Buffer.alloc(0) })

/** Merges the frames. Throws where they are not what was written. */
export function runCheckpoint(
  tree: CheckpointTarget,
  job: CheckpointJob,
  desk = newScratch(),
): void {
  // LMDB takes no values from memory that threads share.
  const { frames } = job.written
  const own = roomFor(desk, frames.length)
  own.set(frames)
  writeFrames(tree, own, checked(own, job), job.head, job.slice)
}

function roomFor(desk: Scratch, bytes: number): Buffer {
  if (desk.room.length >= bytes) return desk.room.subarray(0, bytes)
  const room = Buffer.allocUnsafeSlow(Math.ceil(bytes * room_for_more))
  if (room.length <= kept_bytes_max) desk.room = room
  return room.subarray(0, bytes)
}

function* checked(frames: Buffer, { written, head }: CheckpointJob): Generator<Frame> {
  let next_seq = written.first_seq
  for (const frame of framesIn(frames)) {
    if (frame.seq !== next_seq || !frame.id.equals(head.id)) break
    next_seq++
    yield frame
  }
  if (next_seq !== written.last_seq + 1) {
    throw new Error('the log is not what was written')
  }
}
