/**
 * The write path of the commit log: two memtables in front of a `CommitLog`, one active, one frozen
 * for a checkpoint or free. A frame is durable and visible when `write` resolves. The arena of a
 * memtable is aligned memory with the same bytes as the segment's file, so frames are built in
 * place and written from there.
 */
import { collect } from '../../core/collect.ts'
import { type ChangeBuffer, newChangeBuffer } from '../changes/change-buffer.ts'
import { keyAt } from '../changes/change-encoding.ts'
import { hashOf } from '../changes/hash-index.ts'
import { boundsFor } from './bounds.ts'
import type { CommitLog } from './commit-log.ts'
import { changeOffsets, changesAt, type Frame, frameBytes, framesIn, sealFrame } from './frame.ts'
import type { Manifest } from './manifest.ts'
import { alignedMemory, endOfBlock } from './segment-file.ts'

/** Contiguous durable frames. */
export interface FrameRange {
  /** A slice of the memtable's arena; valid until that is cleared. */
  readonly frames: Buffer
  readonly first_seq: number
  readonly last_seq: number
}

export interface CommitLogWriter {
  active(): ChangeBuffer
  /** Empty after `releaseFrozen`. */
  frozen(): ChangeBuffer
  /** One call at a time. Resolves and rejects as `CommitLog.append`. */
  write(changes: ChangeBuffer): Promise<number>
  /** Makes a durable frame of another process visible. */
  take(frame: Buffer): void
  isSettled(): boolean
  settle(): Promise<void>
  /** Bytes of frames written, and of those not in LMDB yet. */
  writtenBytes(): number
  unmergedBytes(): number
  seq(): number
  /** A frame up to this size allocates nothing on the disk. */
  preallocatedBytes(): number
  /** Freezes the active memtable and continues in the other, which must be free. */
  rotate(): void
  frozenFrames(): FrameRange
  /** Empty if LMDB has all of them. */
  activeFrames(): FrameRange
  /**
   * Frees the frozen memtable once LMDB has its changes. If nothing was written meanwhile, both
   * memtables give back the memory of a burst.
   */
  releaseFrozen(): void
  /** Copies of the frames that this has not returned before, in order. */
  newFrames(): Buffer[]
  /** No write follows; the last checkpoint begins. */
  end(): Promise<void>
  close(): Promise<void>
}

/** The initial arena of a memtable and, in it, the frames that LMDB lacks. */
export interface RecoveredRound {
  readonly bytes: Buffer
  readonly frames: readonly Frame[]
}

export interface RecoveredFrames {
  readonly active: RecoveredRound
  readonly frozen: RecoveredRound
}

/** A memtable and its first frame that LMDB lacks: number and position. */
interface Round {
  readonly memtable: ChangeBuffer
  first_seq: number
  begin: number
  /** Where the frames start that `newFrames` has not returned. */
  unread: number
}

const nothing = Buffer.alloc(0)

/** The first frame follows the recovered ones, or the manifest's sequence. */
export function writerOver(
  commit_log: CommitLog,
  { id, seq: merged_seq }: Manifest,
  recovered?: RecoveredFrames,
): CommitLogWriter {
  let active = roundOf(recovered?.active)
  let frozen = roundOf(recovered?.frozen)
  const { frames = [] } = recovered?.active ?? {}
  let seq = frames.at(-1)?.seq ?? recovered?.frozen.frames.at(-1)?.seq ?? merged_seq
  let written_bytes = 0
  /** From the building of a frame until it is visible, or for as long as the last one failed. */
  let is_writing = false
  let frozen_seq = frozen.memtable.bytes() === 0 ? seq : active.first_seq - 1

  function beginFrame(): number {
    const from = active.memtable.bytes()
    if (from === 0) Object.assign(active, { first_seq: seq + 1, begin: 0, unread: 0 })
    return from
  }

  return {
    active: () => active.memtable,
    frozen: () => frozen.memtable,
    async write(changes) {
      const { memtable } = active
      const from = beginFrame()
      const frame = buildFrame(memtable, { id, seq: seq + 1 }, changes)
      const end = from + frame.length
      is_writing = true
      const write_ms = await commit_log.append({ arena: memtable.arena(), from, end, seq: seq + 1 })
      is_writing = false
      seq++
      written_bytes += frame.length
      publishFrame(memtable, changes)
      return write_ms
    },
    take(frame) {
      beginFrame()
      takeFrame(active.memtable, frame)
      seq++
    },
    writtenBytes: () => written_bytes,
    unmergedBytes: () => unmergedBytes(active) + unmergedBytes(frozen),
    isSettled: commit_log.isSettled,
    settle: commit_log.settle,
    seq: () => seq,
    preallocatedBytes: () => commit_log.preallocatedBytes() - active.memtable.bytes(),
    rotate() {
      ;[active, frozen] = [frozen, active]
      frozen_seq = seq
      commit_log.rotate()
    },
    frozenFrames() {
      const { memtable, begin, first_seq } = frozen
      const bytes = memtable.arena().subarray(begin, memtable.bytes())
      return { frames: bytes, first_seq, last_seq: frozen_seq }
    },
    activeFrames() {
      const { memtable, begin, first_seq } = active
      if (memtable.size === 0) return { frames: nothing, first_seq: seq + 1, last_seq: seq }
      const frames = memtable.arena().subarray(begin, memtable.bytes())
      return { frames, first_seq, last_seq: seq }
    },
    releaseFrozen() {
      const is_quiet = active.memtable.bytes() === 0 && !is_writing
      for (const { memtable } of is_quiet ? [frozen, active] : []) memtable.reset()
      if (is_quiet) collect()
      else frozen.memtable.clear()
      commit_log.merged(frozen_seq)
    },
    newFrames() {
      const found: Buffer[] = []
      for (const round of [frozen, active]) {
        const { memtable, unread } = round
        round.unread = memtable.bytes()
        if (unread < round.unread) {
          found.push(Buffer.from(memtable.arena().subarray(unread, round.unread)))
        }
      }
      return found
    },
    end: commit_log.end,
    close: commit_log.close,
  }
}

function roundOf(recovered?: RecoveredRound): Round {
  const memtable = newMemtable()
  const [first] = recovered?.frames ?? []
  if (recovered !== undefined) loadFrames(memtable, recovered.bytes, recovered.frames)
  return { memtable, first_seq: first?.seq ?? 0, begin: first?.at ?? 0, unread: first?.at ?? 0 }
}

function unmergedBytes({ memtable, begin }: Round): number {
  return memtable.bytes() === 0 ? 0 : memtable.bytes() - begin
}

/**
 * The usual size of a segment. Costs no memory before it is written, but a machine or container may
 * bound reservations.
 */
export const arena_bytes = boundsFor(0).bytes_max
const first_slots = 512 * 1024

export function newMemtable(): ChangeBuffer {
  return newChangeBuffer({
    first_bytes: arena_bytes,
    kept_bytes_max: arena_bytes,
    allocate: alignedMemory,
    first_slots,
  })
}

/**
 * Builds a commit's frame, zero-padded to the end of its last block, and returns its bytes. It is
 * invisible to reads before `publishFrame`.
 */
export function buildFrame(
  memtable: ChangeBuffer,
  { id, seq }: Pick<Frame, 'id' | 'seq'>,
  changes: ChangeBuffer,
): Buffer {
  const at = memtable.bytes()
  const change_bytes = changes.bytes()
  const end = at + frameBytes(change_bytes)
  const end_of_block = endOfBlock(end)
  memtable.reserve(end_of_block)
  const arena = memtable.arena()
  changes.copyTo(arena, changesAt(at))
  arena.fill(0, end, end_of_block)
  return sealFrame(arena, at, { id, seq, count: changes.count(), change_bytes })
}

/** Makes the frame built of `changes`, now durable, visible to reads. */
export function publishFrame(memtable: ChangeBuffer, changes: ChangeBuffer): void {
  const at = memtable.bytes()
  changes.indexInto(memtable, changesAt(at))
  memtable.extendTo(at + frameBytes(changes.bytes()))
}

/** Adds a durable frame and makes it visible to reads. */
export function takeFrame(memtable: ChangeBuffer, bytes: Buffer): void {
  const at = memtable.bytes()
  const end = at + bytes.length
  memtable.reserve(endOfBlock(end))
  memtable.arena().set(bytes, at)
  const [frame] = framesIn(memtable.arena().subarray(at, end))
  indexFrames(memtable, frame === undefined ? [] : [{ ...frame, at, segment: memtable.arena() }])
  memtable.extendTo(end)
}

function indexFrames(memtable: ChangeBuffer, frames: readonly Frame[]): void {
  const arena = memtable.arena()
  for (const offset of changeOffsets(frames)) memtable.index(offset, hashOf(keyAt(arena, offset)))
}

/** Fills an empty memtable with the recovered, contiguous frames of a segment. */
export function loadFrames(
  memtable: ChangeBuffer,
  segment: Buffer,
  frames: readonly Frame[],
): void {
  const last = frames.at(-1)
  if (last === undefined) return
  const end = last.at + last.bytes.length
  memtable.reserve(endOfBlock(end))
  memtable.arena().set(segment.subarray(0, end))
  indexFrames(memtable, frames)
  memtable.extendTo(end)
}
