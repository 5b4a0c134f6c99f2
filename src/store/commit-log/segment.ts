/**
 * One of the two files of a commit log: frames, written from the beginning again in each round.
 *
 * A write is durable when `write` resolves. The file is filled with zeros ahead of the writes, so
 * that a write changes existing bytes only and costs one sync. The last block is never written,
 * which lets recovery detect a truncated file. After the last frame the file holds what an earlier
 * round left there.
 *
 * A write goes through the thread pool, so the process works on while the disk does. If this thread
 * may block and the disk answers faster than threads wake each other, a short write is synchronous,
 * which saves a lone caller a quarter of its time. One slow write ends that until the disk is fast
 * again.
 */
import { settledUninterrupted } from '../file-system.ts'
import {
  block_bytes,
  createFile,
  endOfBlock,
  type OnUnsupported,
  openFile,
  type SegmentFile,
  startOfBlock,
} from './segment-file.ts'

export interface SegmentOptions {
  /** Whether short writes may block this thread; true by default. */
  readonly blocking?: boolean
  readonly onUnsupported?: OnUnsupported
}

export interface Segment {
  /**
   * Writes `from` to `to` of the arena, and the rest of their blocks, at the same position of the
   * file, which must be preallocated. One write at a time, each after the last one of the round.
   * Resolves with its milliseconds.
   */
  write(arena: Buffer, from: number, to: number): Promise<number>
  /** Writes up to this position allocate nothing on the disk. */
  preallocatedBytes(): number
  /** Makes it so many at least; nothing else has changed if it rejects. */
  preallocate(bytes: number): Promise<void>
  close(): Promise<void>
}

/** Preallocated at a time: little enough to bound the latency of a write that waits for it. */
const ahead_bytes = 1024 * 1024
const zeros = Buffer.alloc(ahead_bytes)

/** A write is synchronous up to this size, while the mean write takes no longer. */
const inline = { bytes_max: 64 * 1024, took_ms_max: 0.3 }

/** Creates the file (mode 0600) and preallocates its beginning; rejects if it exists. */
export async function createSegment(path: string, options: SegmentOptions): Promise<Segment> {
  const file = await createFile(path, options.onUnsupported)
  try {
    await file.fill(zeros, 0)
  } catch (error) {
    await file.close()
    throw error
  }
  return segmentOver(file, zeros.length, options)
}

/** Opens the file of an earlier process. What it holds is durable once this resolves. */
export async function openSegment(path: string, options: SegmentOptions): Promise<Segment> {
  const file = await openFile(path, options.onUnsupported)
  try {
    await settledUninterrupted(file.sync)
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
  /** Moving average of the short writes. */
  let took_ms = inline.took_ms_max + 1
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
    // A broken disk shows at the next write.
    filling.catch(() => {})
  }

  return {
    async write(arena, from, to) {
      const at = startOfBlock(from)
      const end = endOfBlock(to)
      const blocks = arena.subarray(at, end)
      fillAhead(end)
      const is_short = blocks.length <= inline.bytes_max
      const began_ms = performance.now()
      if (may_block && is_short && took_ms <= inline.took_ms_max) file.writeNow(blocks, at)
      else await file.write(blocks, at)
      const write_ms = performance.now() - began_ms
      if (is_short) took_ms += (write_ms - took_ms) / 8
      return write_ms
    },
    preallocatedBytes: () => filled_bytes - block_bytes,
    async preallocate(bytes) {
      await filling?.catch(() => {})
      while (bytes + block_bytes > filled_bytes) await fill()
    },
    async close() {
      await filling?.catch(() => {})
      await file.close()
    },
  }
}
