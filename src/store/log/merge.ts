/**
 * Bringing frames into the tree: what a running log does now and then, what closing does, and what
 * opening does with a log that was left. One and the same, so that recovery is never a rare path.
 *
 * Of several values of a key in a segment only the last is written. The changes go in key order, so
 * that neighbours in the tree are written together, in commits of bounded size; the head that
 * counts them as merged is the end of the last. So it may be broken off anywhere and done again:
 * until then the frames hold all of it.
 */
import { keyBytesAt, keyFrom, type Place, valueBytesAt } from '../change-bytes.ts'
import { checkKeyBytes } from '../key-size.ts'
import type { Batch } from '../lmdb-batch.ts'
import type { LmdbTree } from '../lmdb-tree.ts'
import { type Frame, notePlaces } from './frame.ts'
import { encodeHead, type Head, head_key } from './head.ts'
import { lastByKey } from './key-order.ts'

/**
 * What one commit takes: so that it is soon done, and neighbours share their pages all the same.
 * Four times as much costs no less in all.
 */
export interface SliceBounds {
  readonly changes_max: number
  readonly bytes_max: number
}

export const slice_bounds: SliceBounds = { changes_max: 4_096, bytes_max: 1024 * 1024 }

export type MergedTree = Pick<LmdbTree, 'commitBatch'>

/** Changes by their places in `room`. */
interface Changes {
  readonly room: Buffer
  readonly places: Uint32Array
}

/** `head` is what the tree says once all of `frames` are in it. */
export async function mergeFrames(
  tree: MergedTree,
  frames: Iterable<Frame>,
  head: Head,
  bounds: SliceBounds = slice_bounds,
): Promise<void> {
  let slice: Changes | undefined
  for (const next of slicesOf([...bySegment(frames)], bounds)) {
    if (slice !== undefined) await tree.commitBatch(putting(slice))
    slice = next
  }
  await tree.commitBatch((batch) => {
    if (slice !== undefined) putting(slice)(batch)
    batch.set(head_key, encodeHead(head))
  })
}

/** The changes of the frames as they stand there, segment after segment. */
function* bySegment(frames: Iterable<Frame>): Generator<Changes> {
  let room: Buffer | undefined
  let notes = new Uint32Array(1 << 12)
  let noted = 0
  for (const frame of frames) {
    if (room !== undefined && room !== frame.segment) {
      yield { room, places: notes.slice(0, noted) }
      noted = 0
    }
    room = frame.segment
    if (noted + frame.count > notes.length) {
      const more = new Uint32Array(Math.max(2 * notes.length, noted + frame.count))
      more.set(notes)
      notes = more
    }
    notePlaces(frame, notes, noted)
    noted += frame.count
  }
  if (room !== undefined) yield { room, places: notes.subarray(0, noted) }
}

function* slicesOf(all: readonly Changes[], bounds: SliceBounds): Generator<Changes> {
  for (const { room, places } of all) {
    const sorted = lastByKey(room, places)
    let from = 0
    let bytes = 0
    for (let next = 1; next <= sorted.length; next++) {
      const place = sorted[next - 1] as Place
      const key_bytes = keyBytesAt(room, place)
      checkKeyBytes(key_bytes)
      bytes += key_bytes + Math.max(0, valueBytesAt(room, place))
      if (next - from < bounds.changes_max && bytes < bounds.bytes_max) continue
      yield { room, places: sorted.subarray(from, next) }
      from = next
      bytes = 0
    }
    if (from < sorted.length) yield { room, places: sorted.subarray(from) }
  }
}

function putting({ room, places }: Changes): (batch: Batch) => void {
  return (batch) => {
    for (let at = 0; at < places.length; at++) {
      const place = places[at] as Place
      batch.setPart(room, keyFrom(place), keyBytesAt(room, place), valueBytesAt(room, place))
    }
  }
}
