/**
 * The commit log in two files beside the data file. One segment takes the frames of a round while
 * the other is checkpointed or free; a frame has the same position in its file as in its arena.
 *
 * A frame that the disk had no room for is refused, and no recovery may find it: the next frame has
 * its number and its place. Until that is written, or the place is cleared, the commit log is
 * unsettled and goes on in the same segment.
 */
import { dirname } from 'node:path'
import { fault } from '../../core/faults.ts'
import { newChangeBuffer } from '../change-buffer.ts'
import { fileFault, isFull, syncFolder } from '../file-system.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'
import type { CommitLog, NewFrame } from './commit-log.ts'
import type { Manifest } from './manifest.ts'
import { type RecoveredSegment, removeSegments, segmentPaths } from './recovery.ts'
import { createSegment, openSegment, type Segment, type SegmentOptions } from './segment.ts'
import { endOfBlock } from './segment-file.ts'
import { type CommitLogWriter, type RecoveredFrames, writerOver } from './writer.ts'

/** Two segments as they are created, and their entries in the folder. */
const new_commit_log_bytes = 3 * 1024 * 1024

/**
 * Creates the commit log files, in place of any that an interrupted open left; undefined if the
 * disk has no room for them. LMDB's manifest does not count on them yet. Rejects with
 * `not_possible`.
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
 * Goes on after the recovered frames, once they are durable. Where all of them are in LMDB the last
 * one stays too: it says up to where the commit log goes, and a power cut may tear the first write
 * over a segment.
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
  /** The frame that was refused, while its place is not cleared. */
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

/** Throws the error, a full disk as `no_space`. */
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
