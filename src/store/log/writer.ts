/**
 * The log as it is written: two segments, each with its image in memory, one of them young, and a
 * sequence that never stands still. What has been written is synced.
 */
import type { Writes } from '../store.ts'
import type { Head } from './head.ts'
import { type Image, newImage, room_bytes } from './image.ts'
import { segmentPaths, syncFolder } from './recover.ts'
import { createSegment, type Segment } from './segment.ts'

/** Frames that are on disk, as they stand there from the beginning of a segment. */
export interface Written {
  /** A part of the image's room, which threads share; good until the image is cleared. */
  readonly frames: Buffer
  readonly first_seq: number
  readonly last_seq: number
}

export interface LogWriter {
  /** What is written now, as reads may see it. */
  young(): Image
  /** What was written before; empty where `freeOld` has been called since. */
  old(): Image
  /** One frame; one at a time. `is_alone` as `Tree.commit` has it. */
  write(writes: Writes, is_alone: boolean): Promise<void>
  /**
   * Goes on at the beginning of the other segment, which must be free, over whatever is there.
   * Answers what the young one holds, which becomes the old one and stands until it is freed.
   */
  turnOver(): Written
  freeOld(): void
  close(): Promise<void>
}

interface Side {
  readonly segment: Segment
  readonly image: Image
}

/** Makes both files; neither may be there. The first frame goes on from the head's sequence. */
export async function createLog(path: string, { id, seq: merged_seq }: Head): Promise<LogWriter> {
  const [first, second] = await createSegments(path)
  let young: Side = { segment: first, image: newImage(room_bytes) }
  let old: Side = { segment: second, image: newImage(room_bytes) }
  let seq = merged_seq
  let first_seq = seq + 1

  async function write(writes: Writes, is_alone: boolean): Promise<void> {
    const { segment, image } = young
    const { length } = image.add(id, seq + 1, writes)
    const from = image.bytes()
    await segment.write(image.room(), from, from + length, is_alone)
    seq++
    image.keep()
  }

  async function close(): Promise<void> {
    await first.close()
    await second.close()
  }

  try {
    // It changes nothing, and tells this log from an older one of the same file.
    await write(new Map(), false)
    await syncFolder(path)
  } catch (error) {
    await close()
    throw error
  }
  return {
    young: () => young.image,
    old: () => old.image,
    write,
    turnOver() {
      const { image } = young
      const frames = image.room().subarray(0, image.bytes())
      const written = { frames, first_seq, last_seq: seq }
      ;[young, old] = [old, young]
      first_seq = seq + 1
      return written
    },
    freeOld: () => old.image.clear(),
    close,
  }
}

async function createSegments(path: string): Promise<[Segment, Segment]> {
  const [first, second] = segmentPaths(path)
  const made = await createSegment(first)
  try {
    return [made, await createSegment(second)]
  } catch (error) {
    await made.close()
    throw error
  }
}
