/**
 * Bringing frames into the tree: what a running log does now and then, and what closing does with
 * all that is left.
 *
 * Of several values of a key in a segment only the last is written. The changes go in key order, so
 * that neighbours in the tree are written together, in commits of bounded size; the head that
 * counts them as merged is the end of the last. So it may be broken off anywhere and done again:
 * until then the frames hold all of it. Where the disk has little room it goes in smaller commits,
 * and where it has none breaks off itself.
 */
import { fault } from '../../core/faults.ts'
import { keyBytesAt, keyStart, type Offset, valueBytesAt } from '../change-encoding.ts'
import { checkKeyBytes } from '../key-size.ts'
import { hasRoomFor, type Load, large_value_bytes } from '../lmdb/disk-space.ts'
import type { Transaction } from '../lmdb/transaction.ts'
import type { LmdbTree } from '../lmdb/tree.ts'
import { type Frame, notePlaces } from './frame.ts'
import { sortLastByKey } from './key-sort.ts'
import { encodeManifest, type Manifest, manifest_key } from './manifest.ts'

/**
 * What one commit takes: so that it is soon done, and neighbours share their pages all the same.
 * Four times as much costs no less in all.
 */
export interface SliceBounds {
  readonly changes_max: number
  readonly bytes_max: number
}

export const slice_bounds: SliceBounds = { changes_max: 4_096, bytes_max: 1024 * 1024 }

export type CheckpointTarget = Pick<LmdbTree, 'commit' | 'freeBytes' | 'usage'>

/**
 * `head` is what the tree says once all of `frames`, of one segment, are in it. On disk when it
 * returns; throws `no_space`, or the reason for which the tree could not be written.
 */
export function writeFrames(
  tree: CheckpointTarget,
  room: Buffer,
  frames: Iterable<Frame>,
  head: Manifest,
  bounds: SliceBounds = slice_bounds,
): void {
  let slice: Slice = new Uint32Array()
  for (const next of slicesOf(room, sortLastByKey(room, placesOf(frames)), bounds)) {
    if (slice.length > 0) commitSlice(tree, room, slice)
    slice = next
  }
  commitSlice(tree, room, slice, head)
}

/** The places of changes in the order of their keys. */
type Slice = Uint32Array

/** So few are not split any further where there is no room. */
const few_changes = 32

/** In halves, and those in halves, where the disk has no room for all of it at once. */
function commitSlice(tree: CheckpointTarget, room: Buffer, slice: Slice, head?: Manifest): void {
  if (!hasRoomFor(loadOf(room, slice), tree)) {
    if (slice.length <= few_changes) throw fault('no_space')
    const half = slice.length >> 1
    commitSlice(tree, room, slice.subarray(0, half))
    commitSlice(tree, room, slice.subarray(half), head)
    return
  }
  tree.commit((batch) => {
    putAll(batch, room, slice)
    if (head !== undefined) batch.put(manifest_key, encodeManifest(head))
  })
}

function loadOf(room: Buffer, slice: Slice): Load {
  let [bytes, large_bytes] = [0, 0]
  for (let at = 0; at < slice.length; at++) {
    const place = slice[at] as Offset
    const value_bytes = Math.max(0, valueBytesAt(room, place))
    bytes += keyBytesAt(room, place) + value_bytes
    if (value_bytes >= large_value_bytes) large_bytes += value_bytes
  }
  return { changes: slice.length, bytes, large_bytes }
}

/** The changes of the frames as they stand there. */
function placesOf(frames: Iterable<Frame>): Uint32Array {
  let notes = new Uint32Array(1 << 12)
  let noted = 0
  for (const frame of frames) {
    if (noted + frame.count > notes.length) {
      const more = new Uint32Array(Math.max(2 * notes.length, noted + frame.count))
      more.set(notes)
      notes = more
    }
    notePlaces(frame, notes, noted)
    noted += frame.count
  }
  return notes.subarray(0, noted)
}

function* slicesOf(room: Buffer, sorted: Uint32Array, bounds: SliceBounds): Generator<Slice> {
  let from = 0
  let bytes = 0
  for (let next = 1; next <= sorted.length; next++) {
    const place = sorted[next - 1] as Offset
    const key_bytes = keyBytesAt(room, place)
    checkKeyBytes(key_bytes)
    bytes += key_bytes + Math.max(0, valueBytesAt(room, place))
    if (next - from < bounds.changes_max && bytes < bounds.bytes_max) continue
    yield sorted.subarray(from, next)
    from = next
    bytes = 0
  }
  if (from < sorted.length) yield sorted.subarray(from)
}

function putAll(batch: Transaction, room: Buffer, slice: Slice): void {
  for (let at = 0; at < slice.length; at++) {
    const place = slice[at] as Offset
    batch.putSlice(room, keyStart(place), keyBytesAt(room, place), valueBytesAt(room, place))
  }
}
