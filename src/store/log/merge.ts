/**
 * Bringing frames into the tree: what a running log does now and then, what closing does, and what
 * opening does with a log that was left. One and the same, so that recovery is never a rare path.
 *
 * Of several values of a key only the last is written. The changes go in key order, in commits of
 * bounded size; the head that counts them as merged is the end of the last. So it may be broken off
 * anywhere and done again: until then the frames hold all of it.
 */
import type { Key } from '../../bytes/keys.ts'
import type { Change, Tree } from '../store.ts'
import { changesOf, type Frame } from './frame.ts'
import { encodeHead, type Head, head_key } from './head.ts'

/** What one commit takes: so that its syncs are short, and share their pages all the same. */
export interface SliceBounds {
  readonly changes_max: number
  readonly bytes_max: number
}

export const slice_bounds: SliceBounds = { changes_max: 16_384, bytes_max: 4 * 1024 * 1024 }

/** `head` is what the tree says once all of `frames` are in it. */
export async function mergeFrames(
  tree: Pick<Tree, 'commit'>,
  frames: Iterable<Frame>,
  head: Head,
  bounds: SliceBounds = slice_bounds,
): Promise<void> {
  const last = new Map<Key, Buffer | null>()
  const groups: Key[][] = []
  for (const frame of frames) {
    for (const { key, value } of changesOf(frame)) {
      const size = last.size
      last.set(key, value)
      if (last.size > size) groupOf(groups, key).push(key)
    }
  }
  let slice = new Map<Key, Buffer | null>()
  let bytes = 0
  for (const { key, value } of inOrder(groups, last)) {
    slice.set(key, value)
    bytes += key.length + (value?.length ?? 0)
    if (slice.size < bounds.changes_max && bytes < bounds.bytes_max) continue
    await tree.commit(slice)
    slice = new Map()
    bytes = 0
  }
  slice.set(head_key, encodeHead(head))
  await tree.commit(slice)
}

/** The keys of one first byte: apart, those that only ever ascend are in order already. */
function groupOf(groups: Key[][], key: Key): Key[] {
  const byte = key.charCodeAt(0)
  const group = groups[byte] ?? []
  groups[byte] = group
  return group
}

/** In key order, so that neighbours in the tree are written together. */
function* inOrder(
  groups: readonly (Key[] | undefined)[],
  last: ReadonlyMap<Key, Buffer | null>,
): Generator<Change> {
  for (const group of groups) {
    for (const key of group?.sort() ?? []) {
      yield { key, value: last.get(key) ?? null }
    }
  }
}
