/**
 * A checkpoint: writes the changes of a commit log segment into LMDB, in key order, so that
 * neighbours share pages, and in commits of bounded size.
 *
 * Only the last change of each key is written. The last commit also writes the manifest that counts
 * the frames as merged, so an interrupted checkpoint is simply repeated: until then the frames hold
 * all of it. Little disk space means smaller commits, and none means `no_space`.
 */
import { fault } from '../../core/faults.ts'
import type { ChangeBuffer } from '../change-buffer.ts'
import { keyBytesAt, keyStart, type Offset, valueBytesAt } from '../change-encoding.ts'
import { hasRoomFor, type Load, large_value_bytes } from '../lmdb/disk-space.ts'
import { lastOfRuns, putFences, removeFences } from '../lmdb/full-pages.ts'
import type { LmdbTree, LmdbWriter } from '../lmdb/lmdb-tree.ts'
import { checkKeyBytes } from '../tree.ts'
import type { SliceBounds } from './bounds.ts'
import { changeOffsets, type Frame, framesIn } from './frame.ts'
import { sortLastByKey } from './key-sort.ts'
import { encodeManifest, type Manifest, manifest_key } from './manifest.ts'
import { arena_bytes } from './memtable.ts'
import type { FrameRange } from './writer.ts'

export interface CheckpointJob {
  /** Nothing is written into their memtable during the checkpoint. */
  readonly written: FrameRange
  /** The manifest after the checkpoint. */
  readonly manifest: Manifest
  readonly slice: SliceBounds
}

/** A buffer that frames are copied into, kept for the next checkpoint. */
export interface Scratch {
  buffer: Buffer
}

export const newScratch = (): Scratch => ({ buffer: Buffer.alloc(0) })

/** The next segment is about as long as the last one. */
const spare_factor = 1.25
/** A larger buffer, for a segment with one very large commit, is not kept. */
const kept_bytes_max = spare_factor * arena_bytes

type Target = Pick<LmdbTree, 'commit' | 'freeBytes' | 'usage' | 'range' | 'refresh'>

/**
 * Everything is on disk when it returns; `onCommit` is called after each commit but the last.
 * Throws `no_space`, the error of LMDB, or an error if the frames are not what was written.
 */
export function runCheckpoint(
  tree: Target,
  job: CheckpointJob,
  scratch = newScratch(),
  onCommit = (): void => {},
): void {
  // LMDB takes no values from memory that threads share.
  const { frames } = job.written
  const own = scratchOf(scratch, frames.length)
  own.set(frames)
  const frames_in = checkedFrames(own, job)
  const offsets = sortLastByKey(own, changeOffsets(frames_in))
  const last_crc = frames_in.at(-1)?.crc
  let slice: Slice = new Uint32Array()
  for (const next of slicesOf(own, offsets, job.slice)) {
    if (slice.length > 0) {
      commitSlice(tree, own, slice)
      onCommit()
    }
    slice = next
  }
  commitSlice(tree, own, slice, { ...job.manifest, last_crc })
}

/** Commits changes while there is no commit log. False if the disk has no room for them. */
export function commitDirectly(tree: Target, changes: ChangeBuffer): boolean {
  let large_bytes = 0
  for (const [, value] of changes) {
    if (value !== null && value.length >= large_value_bytes) large_bytes += value.length
  }
  if (!hasRoomFor({ changes: changes.size, bytes: changes.bytes(), large_bytes }, tree))
    return false
  tree.commit((writer) => {
    for (const [key, value] of changes) writer.put(key, value)
  })
  return true
}

function scratchOf(scratch: Scratch, bytes: number): Buffer {
  if (scratch.buffer.length >= bytes) return scratch.buffer.subarray(0, bytes)
  const buffer = Buffer.allocUnsafeSlow(Math.ceil(bytes * spare_factor))
  if (buffer.length <= kept_bytes_max) scratch.buffer = buffer
  return buffer.subarray(0, bytes)
}

function checkedFrames(bytes: Buffer, { written, manifest }: CheckpointJob): Frame[] {
  const frames: Frame[] = []
  let next_seq = written.first_seq
  for (const frame of framesIn(bytes)) {
    if (frame.seq !== next_seq || !frame.id.equals(manifest.id)) break
    next_seq++
    frames.push(frame)
  }
  if (next_seq !== written.last_seq + 1) {
    throw new Error('the commit log is not what was written')
  }
  return frames
}

/** Offsets of changes in key order. */
type Slice = Uint32Array

/** Slices of this size are not split further. */
const split_min = 32

/** Commits the slice, in halves while the disk has no room for the whole. */
function commitSlice(tree: Target, arena: Buffer, slice: Slice, manifest?: Manifest): void {
  if (!hasRoomFor(loadOf(arena, slice), tree)) {
    if (slice.length <= split_min) throw fault('no_space')
    const half = slice.length >> 1
    commitSlice(tree, arena, slice.subarray(0, half))
    commitSlice(tree, arena, slice.subarray(half), manifest)
    return
  }
  const last_keys = lastOfRuns(tree, arena, slice)
  tree.commit((writer) => {
    putFences(writer, last_keys)
    putAll(writer, arena, slice)
    removeFences(writer, last_keys)
    if (manifest !== undefined) writer.put(manifest_key, encodeManifest(manifest))
  }, manifest === undefined)
}

function loadOf(arena: Buffer, slice: Slice): Load {
  let [bytes, large_bytes] = [0, 0]
  for (let at = 0; at < slice.length; at++) {
    const offset = slice[at] as Offset
    const value_bytes = Math.max(0, valueBytesAt(arena, offset))
    bytes += keyBytesAt(arena, offset) + value_bytes
    if (value_bytes >= large_value_bytes) large_bytes += value_bytes
  }
  return { changes: slice.length, bytes, large_bytes }
}

function* slicesOf(arena: Buffer, sorted: Uint32Array, bounds: SliceBounds): Generator<Slice> {
  let from = 0
  let bytes = 0
  for (let next = 1; next <= sorted.length; next++) {
    const offset = sorted[next - 1] as Offset
    const key_bytes = keyBytesAt(arena, offset)
    checkKeyBytes(key_bytes)
    bytes += key_bytes + Math.max(0, valueBytesAt(arena, offset))
    if (next - from < bounds.changes_max && bytes < bounds.bytes_max) continue
    yield sorted.subarray(from, next)
    from = next
    bytes = 0
  }
  if (from < sorted.length) yield sorted.subarray(from)
}

function putAll(writer: LmdbWriter, arena: Buffer, slice: Slice): void {
  for (let at = 0; at < slice.length; at++) {
    const offset = slice[at] as Offset
    const value_bytes = valueBytesAt(arena, offset)
    writer.putSlice(arena, keyStart(offset), keyBytesAt(arena, offset), value_bytes)
  }
}
