/**
 * Who brings the frames of a segment into the tree: a thread of its own, so that callers do not
 * wait for it, or, for what is left at the end, this one.
 */
import { type Frame, framesIn } from './frame.ts'
import type { Head } from './head.ts'
import { room_bytes } from './image.ts'
import { type MergedTree, mergeFrames, type SliceBounds } from './merge.ts'
import type { Written } from './writer.ts'

/** Nobody writes there meanwhile. */
export interface MergeJob {
  readonly written: Written
  /** What the tree says afterwards. */
  readonly head: Head
  readonly slice: SliceBounds
}

export interface Merger {
  /** Resolves when all is on disk in the tree; rejects as `mergeFrames` throws. One at a time. */
  merge(job: MergeJob): Promise<void>
  close(): Promise<void>
}

/** Where frames are copied to: kept for the next, so that memory is not asked for and freed. */
export interface Desk {
  room: Buffer
}

/** Segments are merged when they are about as long as the last one was. */
const room_for_more = 1.25
/** No more is kept, where one commit was so large. */
const kept_bytes_max = room_for_more * room_bytes

export const newDesk = (): Desk => ({ room: Buffer.alloc(0) })

/** Merges the frames. Throws where they are not what was written. */
export function mergeSegment(tree: MergedTree, job: MergeJob, desk = newDesk()): void {
  // LMDB takes no values from memory that threads share.
  const { frames } = job.written
  const own = roomFor(desk, frames.length)
  own.set(frames)
  mergeFrames(tree, own, checked(own, job), job.head, job.slice)
}

function roomFor(desk: Desk, bytes: number): Buffer {
  if (desk.room.length >= bytes) return desk.room.subarray(0, bytes)
  const room = Buffer.allocUnsafeSlow(Math.ceil(bytes * room_for_more))
  if (room.length <= kept_bytes_max) desk.room = room
  return room.subarray(0, bytes)
}

function* checked(frames: Buffer, { written, head }: MergeJob): Generator<Frame> {
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
