/**
 * One of the two files of a log: a place for frames, written from its beginning again and again.
 *
 * A write is on disk when `write` resolves. The file is filled with zeros ahead of the writes, so
 * that a write changes nothing but bytes that are there and costs one sync; where it has to go
 * further it is merely slower. The last block is never written, so that a file that was cut short
 * is known by its end. What stood there before is left behind the last write.
 *
 * A write goes through a thread of the pool, so that the process can do other things while the disk
 * works. Where this thread may be held up and the disk answers faster than threads wake each other,
 * a short one is made in place: that saves a lone caller a quarter of its time. A disk that turns
 * slow is noticed by one such write, and gets no other until it is fast again.
 */
import { block_bytes, endOfBlock, startOfBlock } from './blocks.ts'
import { createFile, type OnNotice, openFile, type SegmentFile } from './segment-file.ts'

export interface SegmentOptions {
  /** Whether short writes may hold up this thread; true unless told. */
  readonly blocking?: boolean
  readonly onNotice?: OnNotice
}

export interface Segment {
  /**
   * Writes what stands in `room`, a blockRoom, from `from` up to `to`, and the blocks around it, at
   * the same place; one at a time, and never before the end of the last one of this round.
   */
  write(room: Buffer, from: number, to: number): Promise<void>
  /** Writes up to here need no more room on the disk. */
  roomBytes(): number
  close(): Promise<void>
}

/** So far ahead the file is filled, and so much at once: little enough to delay no write much. */
const ahead_bytes = 1024 * 1024
const zeros = Buffer.alloc(ahead_bytes)

/** What is written in place: no more bytes, and where a write lately took no longer. */
const in_place = { bytes_max: 64 * 1024, took_ms_max: 0.3 }

/** A new file (mode 0600) whose name is not taken, filled as far as the first writes go. */
export async function createSegment(path: string, options: SegmentOptions): Promise<Segment> {
  const file = await createFile(path, options.onNotice)
  try {
    await file.fill(zeros, 0)
  } catch (error) {
    await file.close()
    throw error
  }
  return segmentOver(file, zeros.length, options)
}

/** One that was left; what it holds is on disk once this resolves. */
export async function openSegment(path: string, options: SegmentOptions): Promise<Segment> {
  const file = await openFile(path, options.onNotice)
  try {
    await file.sync()
    return segmentOver(file, startOfBlock(await file.bytes()), options)
  } catch (error) {
    await file.close()
    throw error
  }
}

function segmentOver(
  file: SegmentFile,
  bytes: number,
  { blocking = true }: SegmentOptions,
): Segment {
  let filled_bytes = bytes
  let filling: Promise<void> | undefined
  /** The mean of the last writes, the newest counting most. */
  let took_ms = in_place.took_ms_max + 1
  const may_block = blocking && file.syncs_itself

  async function fill(): Promise<void> {
    await file.fill(zeros, filled_bytes)
    filled_bytes += ahead_bytes
  }

  function fillAhead(end: number): void {
    if (filled_bytes - end >= ahead_bytes / 2 || filling !== undefined) return
    filling = fill().finally(() => {
      filling = undefined
    })
    // What is wrong with the disk comes out at the next write.
    filling.catch(() => {})
  }

  async function fillUpTo(end: number): Promise<void> {
    await filling?.catch(() => {})
    while (end + block_bytes > filled_bytes) await fill()
  }

  return {
    async write(room, from, to) {
      const at = startOfBlock(from)
      const end = endOfBlock(to)
      const blocks = room.subarray(at, end)
      if (end + block_bytes > filled_bytes) await fillUpTo(end)
      fillAhead(end)
      const is_short = blocks.length <= in_place.bytes_max
      const began_ms = performance.now()
      if (may_block && is_short && took_ms <= in_place.took_ms_max) file.writeNow(blocks, at)
      else await file.write(blocks, at)
      if (is_short) took_ms += (performance.now() - began_ms - took_ms) / 8
    },
    roomBytes: () => filled_bytes - block_bytes,
    async close() {
      await filling?.catch(() => {})
      await file.close()
    },
  }
}
