/**
 * The commit log in two files beside the data file. One segment takes frames while the other is
 * checkpointed or free; a frame has the same position in its file and its arena.
 *
 * A file is zero-filled ahead of the writes, so that a write costs one sync. The last block is
 * never written, so recovery detects a truncated file. If this thread may block and the disk is
 * fast, a short write is synchronous, which saves a lone caller a quarter of its time.
 *
 * No recovery may find a frame that a full disk has refused: until the next frame takes its number
 * and place, or the place is cleared, the commit log is unsettled and stays in the same segment.
 */
import { dirname } from 'node:path'
import { fault } from '../../core/faults.ts'
import { newChangeBuffer } from '../changes/change-buffer.ts'
import { fileFault, isFull, settledUninterrupted, syncFolder } from '../disk/file-system.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'
import type { CommitLog, NewFrame } from './commit-log.ts'
import type { Manifest } from './manifest.ts'
import { type RecoveredSegment, removeSegments, segmentPaths } from './recovery.ts'
import {
  block_bytes,
  createFile,
  endOfBlock,
  type OnUnsupported,
  openFile,
  type SegmentFile,
  startOfBlock,
} from './segment-file.ts'
import { type CommitLogWriter, type RecoveredFrames, writerOver } from './writer.ts'

/** Two new segments and their folder entries. */
const new_commit_log_bytes = 3 * 1024 * 1024

/**
 * Creates the files, in place of any that an interrupted open left; undefined without disk space.
 * LMDB's manifest does not require them yet. Rejects with `not_possible`.
 */
export async function startCommitLog(
  tree: Pick<LmdbTree, 'freeBytes'>,
  path: string,
  manifest: Manifest,
  options: SegmentOptions,
): Promise<CommitLogWriter | undefined> {
  await removeSegments(path)
  if (tree.freeBytes() < new_commit_log_bytes) return undefined
  try {
    return await createCommitLog(path, manifest, options)
  } catch (error) {
    await removeSegments(path)
    if (isFull(error)) return undefined
    const { code } = error as { code?: unknown }
    const is_folder = code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
    throw fileFault(is_folder ? dirname(path) : path, error)
  }
}

/** Creates both files, which must not exist. The first frame follows the manifest's sequence. */
export async function createCommitLog(
  path: string,
  manifest: Manifest,
  options: SegmentOptions = {},
): Promise<CommitLogWriter> {
  const [first, second] = await openBoth(path, (one) => createSegment(one, options))
  const commit_log = writerOver(segmentsOver(first, second), manifest)
  try {
    // An empty frame distinguishes this commit log from an older one of the same file.
    await commit_log.write(newChangeBuffer())
    await syncFolder(path)
  } catch (error) {
    await commit_log.close()
    throw error
  }
  return commit_log
}

/**
 * Continues after the recovered frames, once they are durable. The last one stays even if LMDB has
 * all: it marks the end of the commit log, and a power cut may tear the first write over a segment.
 */
export async function continueCommitLog(
  path: string,
  manifest: Manifest,
  recovered: readonly [RecoveredSegment, RecoveredSegment],
  options: SegmentOptions = {},
): Promise<CommitLogWriter> {
  const [first, second] = await openBoth(path, (one) => openSegment(one, options))
  const is_merged = recovered.every(({ frames }) => frames.length === 0)
  const is_second = recovered[1].is_last !== is_merged
  const [active, other] = is_second ? [second, first] : [first, second]
  const found: RecoveredFrames = {
    active: is_second ? recovered[1] : recovered[0],
    frozen: is_second ? recovered[0] : recovered[1],
  }
  return writerOver(segmentsOver(active, other), manifest, found)
}

function segmentsOver(first: Segment, second: Segment): CommitLog {
  let [active, other] = [first, second]
  /** A refused frame whose place is not cleared. */
  let refused: NewFrame | undefined

  /** The header of the frame is in the block that is cleared. */
  async function settle(): Promise<void> {
    if (refused === undefined) return
    const { arena, from } = refused
    arena.fill(0, from, endOfBlock(from + 1))
    await active.write(arena, from, from + 1).catch(throwNoSpace)
    refused = undefined
  }

  return {
    async append(frame) {
      const { arena, from, end } = frame
      if (endOfBlock(end) > active.preallocatedBytes()) {
        await active.preallocate(endOfBlock(end)).catch(throwNoSpace)
      }
      let write_ms = 0
      try {
        write_ms = await active.write(arena, from, end)
      } catch (error) {
        refused = frame
        if (isFull(error)) await settle()
        throwNoSpace(error)
      }
      refused = undefined
      return write_ms
    },
    rotate() {
      ;[active, other] = [other, active]
    },
    merged() {},
    preallocatedBytes: () => active.preallocatedBytes(),
    isSettled: () => refused === undefined,
    settle,
    async end() {},
    async close() {
      await active.close()
      await other.close()
    },
  }
}

/** Maps a full disk to `no_space`. */
function throwNoSpace(error: unknown): never {
  throw isFull(error) ? fault('no_space', undefined, { cause: error }) : error
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

export interface SegmentOptions {
  /** Whether short writes may block this thread; default true. */
  readonly blocking?: boolean
  readonly onUnsupported?: OnUnsupported
}

export interface Segment {
  /**
   * Writes `from` to `to` of the arena, and the rest of their blocks, at the same position of the
   * preallocated file. One write at a time, in order. Resolves with its milliseconds.
   */
  write(arena: Buffer, from: number, to: number): Promise<number>
  /** Writes up to this position allocate nothing on the disk. */
  preallocatedBytes(): number
  /** At least `bytes`; changes nothing else if it rejects. */
  preallocate(bytes: number): Promise<void>
  close(): Promise<void>
}

/** Small enough to bound the latency of a write that waits for it. */
const ahead_bytes = 1024 * 1024
const zeros = Buffer.alloc(ahead_bytes)

/** A write is synchronous up to this size, while the mean write takes no longer. */
const inline = { bytes_max: 64 * 1024, took_ms_max: 0.3 }

/** Mode 0600; preallocates the beginning; rejects if it exists. */
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

/** The contents of the earlier process are durable once this resolves. */
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
    // The next write reports a broken disk.
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
