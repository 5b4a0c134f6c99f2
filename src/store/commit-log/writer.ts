/**
 * The write path of the commit log: two segments with one memtable each. One segment is active and
 * takes the commits; the other is frozen, for a checkpoint, or free. A frame is on disk when
 * `write` resolves, and its sequence number is one more than the last.
 *
 * A frame that the disk had no room for is refused, and no recovery may find it: the next frame has
 * its number and its place. Until that is written, or the place is cleared, the commit log is
 * unsettled and goes on in the same segment.
 */
import { dirname } from 'node:path'
import { fault } from '../../core/faults.ts'
import { type ChangeBuffer, newChangeBuffer } from '../change-buffer.ts'
import { fileFault, isFull, syncFolder } from '../file-system.ts'
import type { LmdbTree } from '../lmdb/tree.ts'
import type { Manifest } from './manifest.ts'
import { buildFrame, loadFrames, newMemtable, publishFrame } from './memtable.ts'
import { type RecoveredSegment, removeSegments, segmentPaths } from './recovery.ts'
import { createSegment, openSegment, type Segment, type SegmentOptions } from './segment.ts'
import { endOfBlock } from './segment-file.ts'

/** Contiguous frames that are on disk. */
export interface FrameRange {
  /** A slice of the memtable's arena, which threads share; valid until the memtable is cleared. */
  readonly frames: Buffer
  readonly first_seq: number
  readonly last_seq: number
}

export interface CommitLogWriter {
  /** The memtable of the segment that is written now. */
  active(): ChangeBuffer
  /** The memtable of the segment before; empty after `releaseFrozen`. */
  frozen(): ChangeBuffer
  /**
   * Writes one frame; one call at a time. Resolves with the milliseconds of the write. Rejects with
   * `no_space` if there is no such frame, and it may be written again.
   */
  write(changes: ChangeBuffer): Promise<number>
  isSettled(): boolean
  /** Clears the place of a refused frame; rejects with `no_space` if the disk is still full. */
  settle(): Promise<void>
  /** Bytes of the frames that were written, and of those that are not in LMDB yet. */
  writtenBytes(): number
  unmergedBytes(): number
  /** Sequence number of the last frame. */
  seq(): number
  /** A frame up to this size allocates nothing on the disk. */
  preallocatedBytes(): number
  /** Freezes the active segment and goes on at the start of the other, which must be free. */
  rotate(): void
  frozenFrames(): FrameRange
  /** Frees the frozen segment: all its changes are in LMDB. */
  releaseFrozen(): void
  close(): Promise<void>
}

/** A segment with its memtable. */
interface Side {
  readonly segment: Segment
  readonly memtable: ChangeBuffer
  /** Sequence number and position of the first frame that is not in LMDB. */
  first_seq: number
  begin: number
}

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
  const commit_log = commitLogOver([sideOf(first), sideOf(second)], manifest.id, manifest.seq)
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

/** Goes on after the recovered frames, once they are durable. */
export async function continueCommitLog(
  path: string,
  manifest: Manifest,
  recovered: readonly [RecoveredSegment, RecoveredSegment],
  options: SegmentOptions = {},
): Promise<CommitLogWriter> {
  const [first, second] = await openBoth(path, (one) => openSegment(one, options))
  const sides = [sideOf(first, recovered[0]), sideOf(second, recovered[1])] as const
  const lastOf = ({ frames }: RecoveredSegment): number => frames.at(-1)?.seq ?? manifest.seq
  const [first_last, second_last] = [lastOf(recovered[0]), lastOf(recovered[1])]
  const [active, frozen] = second_last > first_last ? [sides[1], sides[0]] : sides
  return commitLogOver([active, frozen], manifest.id, Math.max(first_last, second_last))
}

function sideOf(segment: Segment, recovered?: RecoveredSegment): Side {
  const memtable = newMemtable()
  const [first] = recovered?.frames ?? []
  if (recovered !== undefined) loadFrames(memtable, recovered.bytes, recovered.frames)
  return { segment, memtable, first_seq: first?.seq ?? 0, begin: first?.at ?? 0 }
}

function commitLogOver(
  sides: readonly [Side, Side],
  id: Buffer,
  last_seq: number,
): CommitLogWriter {
  let [active, frozen] = sides
  let seq = last_seq
  let written_bytes = 0
  let is_settled = true
  let frozen_seq = frozen.memtable.bytes() === 0 ? seq : active.first_seq - 1

  /** The header of the frame is in the block that is cleared. */
  async function settle(): Promise<void> {
    if (is_settled) return
    const { segment, memtable } = active
    const at = memtable.bytes()
    const arena = memtable.arena()
    arena.fill(0, at, endOfBlock(at + 1))
    await segment.write(arena, at, at + 1).catch(throwNoSpace)
    is_settled = true
  }

  return {
    active: () => active.memtable,
    frozen: () => frozen.memtable,
    async write(changes) {
      const { segment, memtable } = active
      const from = memtable.bytes()
      if (from === 0) Object.assign(active, { first_seq: seq + 1, begin: 0 })
      const frame = buildFrame(memtable, { id, seq: seq + 1 }, changes)
      const end = from + frame.length
      if (endOfBlock(end) > segment.preallocatedBytes()) {
        await segment.preallocate(endOfBlock(end)).catch(throwNoSpace)
      }
      let write_ms = 0
      try {
        write_ms = await segment.write(memtable.arena(), from, end)
      } catch (error) {
        is_settled = false
        if (isFull(error)) await settle()
        throwNoSpace(error)
      }
      is_settled = true
      seq++
      written_bytes += frame.length
      publishFrame(memtable, changes)
      return write_ms
    },
    writtenBytes: () => written_bytes,
    unmergedBytes: () => unmergedBytes(active) + unmergedBytes(frozen),
    isSettled: () => is_settled,
    settle,
    seq: () => seq,
    preallocatedBytes: () => active.segment.preallocatedBytes() - active.memtable.bytes(),
    rotate() {
      ;[active, frozen] = [frozen, active]
      frozen_seq = seq
    },
    frozenFrames() {
      const { memtable, begin, first_seq } = frozen
      const frames = memtable.arena().subarray(begin, memtable.bytes())
      return { frames, first_seq, last_seq: frozen_seq }
    },
    releaseFrozen: () => frozen.memtable.clear(),
    async close() {
      for (const { segment } of sides) await segment.close()
    },
  }
}

/** Throws the error, a full disk as `no_space`. */
function throwNoSpace(error: unknown): never {
  throw isFull(error) ? fault('no_space', undefined, { cause: error }) : error
}

function unmergedBytes({ memtable, begin }: Side): number {
  return memtable.bytes() === 0 ? 0 : memtable.bytes() - begin
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
