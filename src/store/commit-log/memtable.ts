/**
 * The memtable of a commit log segment: a change buffer whose arena has the bytes of the segment's
 * file at the same positions, so that frames are built in place and written from there.
 *
 * The arena is aligned memory. `clear` keeps it for the segment's next round.
 */
import { type ChangeBuffer, newChangeBuffer } from '../change-buffer.ts'
import { keyAt } from '../change-encoding.ts'
import { hashOf } from '../hash-index.ts'
import { boundsFor } from './bounds.ts'
import { changeOffsets, changesAt, type Frame, frameBytes, framesIn, sealFrame } from './frame.ts'
import { alignedMemory, endOfBlock } from './segment-file.ts'

/**
 * What a segment holds with the usual bounds. Costs no memory before it is written, but a machine
 * or a container may bound what is reserved, too.
 */
export const arena_bytes = boundsFor(0).bytes_max
const first_slots = 1024 * 1024

export function newMemtable(): ChangeBuffer {
  return newChangeBuffer({
    first_bytes: arena_bytes,
    kept_bytes_max: arena_bytes,
    allocate: alignedMemory,
    first_slots,
  })
}

/**
 * Builds the frame of a commit after the others, with zeros up to the end of its last block, and
 * returns its bytes. Reads do not see it before `publishFrame`.
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

/** Makes the frame that was built of `changes`, which is on disk now, visible to reads. */
export function publishFrame(memtable: ChangeBuffer, changes: ChangeBuffer): void {
  const at = memtable.bytes()
  changes.indexInto(memtable, changesAt(at))
  memtable.extendTo(at + frameBytes(changes.bytes()))
}

/** Adds a frame that is durable already, and makes it visible to reads. */
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

/** Fills an empty memtable with the recovered frames of a segment, which are contiguous. */
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
