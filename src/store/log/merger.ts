/**
 * Who brings the frames of a segment into the tree: a thread of its own, so that callers do not
 * wait for it, or, for what is left at the end, this one.
 */
import { open } from 'node:fs/promises'
import { type Frame, framesIn } from './frame.ts'
import type { Head } from './head.ts'
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
  /** Resolves when all is on disk in the tree. One at a time. */
  merge(job: MergeJob): Promise<void>
  close(): Promise<void>
}

/** Where segments are read to: kept for the next, so that memory is not asked for and freed. */
export interface Reading {
  room: Buffer
}

/** No more is kept, where one commit was so large. */
const kept_bytes_max = 64 * 1024 * 1024

export const newReading = (): Reading => ({ room: Buffer.alloc(0) })

/** Reads the frames back and merges them. Rejects where they are not what was written. */
export async function mergeSegment(
  tree: MergedTree,
  job: MergeJob,
  reading = newReading(),
): Promise<void> {
  const segment = roomFor(reading, job.written.bytes)
  await readFirst(job.written, segment)
  await mergeFrames(tree, checked(segment, job), job.head, job.slice)
}

function* checked(segment: Buffer, { written, head }: MergeJob): Generator<Frame> {
  let next_seq = written.first_seq
  for (const frame of framesIn(segment)) {
    if (frame.seq !== next_seq || !frame.id.equals(head.id)) break
    next_seq++
    yield frame
  }
  if (next_seq !== written.last_seq + 1) {
    throw new Error('the log does not read as it was written')
  }
}

function roomFor(reading: Reading, bytes: number): Buffer {
  if (reading.room.length >= bytes) return reading.room.subarray(0, bytes)
  // Segments are merged when they are about as long as the last one was.
  const room = Buffer.allocUnsafeSlow(Math.ceil(bytes * 1.25))
  if (room.length <= kept_bytes_max) reading.room = room
  return room.subarray(0, bytes)
}

async function readFirst({ segment_path, bytes }: Written, segment: Buffer): Promise<void> {
  const file = await open(segment_path, 'r')
  try {
    let at = 0
    while (at < bytes) {
      const { bytesRead } = await file.read(segment, at, bytes - at, at)
      if (bytesRead === 0) throw new Error('the log is shorter than what was written')
      at += bytesRead
    }
  } finally {
    await file.close()
  }
}
