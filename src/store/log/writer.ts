/**
 * The log as it is written: two segments, each with its image in memory, one of them young, and a
 * sequence that never stands still. What has been written is synced.
 */
import type { Writes } from '../store.ts'
import type { Manifest } from './manifest.ts'
import { type Image, newImage, room_bytes } from './memtable.ts'
import { type RecoveredSegment, segmentPaths, syncFolder } from './recovery.ts'
import { createSegment, openSegment, type Segment, type SegmentOptions } from './segment.ts'

/** Frames that are on disk, one behind the other. */
export interface FrameRange {
  /** A part of the image's room, which threads share; good until the image is cleared. */
  readonly frames: Buffer
  readonly first_seq: number
  readonly last_seq: number
}

export interface LogWriter {
  /** What is written now, as reads may see it. */
  active(): Image
  /** What was written before; empty where `freeOld` has been called since. */
  frozen(): Image
  /** One frame; one at a time. */
  write(writes: Writes): Promise<void>
  /** Of the last frame. */
  seq(): number
  /** So many bytes of a frame are written without need for more room on the disk. */
  preallocatedBytes(): number
  /**
   * Goes on at the beginning of the other segment, which must be free, over whatever is there. The
   * young one becomes the old one, which stands until it is freed.
   */
  rotate(): void
  /** All that the old one holds. */
  frozenFrames(): FrameRange
  releaseFrozen(): void
  close(): Promise<void>
}

interface Side {
  readonly segment: Segment
  readonly image: Image
  /** Of its frames the first that is not in the tree, and where that stands. */
  first_seq: number
  begin: number
}

/** Makes both files; neither may be there. The first frame goes on from the head's sequence. */
export async function createLog(
  path: string,
  head: Manifest,
  options: SegmentOptions = {},
): Promise<LogWriter> {
  const [first, second] = await openBoth(path, (one) => createSegment(one, options))
  const log = logOver([sideOf(first), sideOf(second)], head.id, head.seq)
  try {
    // It changes nothing, and tells this log from an older one of the same file.
    await log.write(new Map())
    await syncFolder(path)
  } catch (error) {
    await log.close()
    throw error
  }
  return log
}

/** Goes on behind what was found, once that is on disk for sure. */
export async function continueLog(
  path: string,
  head: Manifest,
  found: readonly [RecoveredSegment, RecoveredSegment],
  options: SegmentOptions = {},
): Promise<LogWriter> {
  const [first, second] = await openBoth(path, (one) => openSegment(one, options))
  const sides = [sideOf(first, found[0]), sideOf(second, found[1])] as const
  const lastOf = ({ frames }: RecoveredSegment): number => frames.at(-1)?.seq ?? head.seq
  const is_second = lastOf(found[1]) > lastOf(found[0])
  const [young, old] = is_second ? [sides[1], sides[0]] : sides
  return logOver([young, old], head.id, Math.max(lastOf(found[0]), lastOf(found[1])))
}

function sideOf(segment: Segment, found?: RecoveredSegment): Side {
  const image = newImage(room_bytes)
  if (found === undefined) return { segment, image, first_seq: 0, begin: 0 }
  const { bytes, frames } = found
  image.takeOver(bytes, frames)
  return { segment, image, first_seq: frames[0]?.seq ?? 0, begin: frames[0]?.at ?? 0 }
}

function logOver(sides: readonly [Side, Side], id: Buffer, last_seq: number): LogWriter {
  let [young, old] = sides
  let seq = last_seq
  let turned_seq = old.image.bytes() === 0 ? seq : young.first_seq - 1

  return {
    active: () => young.image,
    frozen: () => old.image,
    async write(writes) {
      const { segment, image } = young
      const from = image.bytes()
      if (from === 0) Object.assign(young, { first_seq: seq + 1, begin: 0 })
      const { length } = image.add(id, seq + 1, writes)
      await segment.write(image.room(), from, from + length)
      seq++
      image.keep()
    },
    seq: () => seq,
    preallocatedBytes: () => young.segment.roomBytes() - young.image.bytes(),
    rotate() {
      ;[young, old] = [old, young]
      turned_seq = seq
    },
    frozenFrames() {
      const { image, begin, first_seq } = old
      const frames = image.room().subarray(begin, image.bytes())
      return { frames, first_seq, last_seq: turned_seq }
    },
    releaseFrozen: () => old.image.clear(),
    async close() {
      for (const { segment } of sides) await segment.close()
    },
  }
}

async function openBoth(
  path: string,
  openOne: (path: string) => Promise<Segment>,
): Promise<[Segment, Segment]> {
  const [first, second] = segmentPaths(path)
  const opened = await openOne(first)
  try {
    return [opened, await openOne(second)]
  } catch (error) {
    await opened.close()
    throw error
  }
}
