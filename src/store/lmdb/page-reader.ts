/**
 * Reads entries from the pages of one transaction, without LMDB, and checks each page. The last
 * pages read are cached.
 */
import type { Key } from '../../codec/keys.ts'
import type { Entry } from '../store.ts'
import {
  type Below,
  belowNode,
  compareKey,
  keyOfNode,
  type Meta,
  nodeCount,
  page_head_bytes,
  type ReadPages,
  rootOf,
  valueOfNode,
} from './pages.ts'

const kept_max = 256

export interface PageReader {
  get(key: Key): Buffer | undefined
  /** Lazy, in key order, `from` included and `to` excluded. */
  range(from: Key, to: Key, reverse: boolean): Generator<Entry>
}

/**
 * `check` throws for a missing page or bytes that are not the page, and does not change them.
 * `read` returns new memory each time.
 */
export function newPageReader(
  read: ReadPages,
  meta: Meta,
  check: (bytes: Buffer | undefined, below: Below) => Buffer,
): PageReader {
  const root = rootOf(meta, 1)
  const kept = new Map<number, Buffer>()

  function pageAt(below: Below): Buffer {
    const known = kept.get(below.page)
    if (known !== undefined) return known
    const bytes = check(read(below.page, 1), below)
    if (kept.size >= kept_max)
      for (const first of kept.keys()) {
        kept.delete(first)
        break
      }
    kept.set(below.page, bytes)
    return bytes
  }

  function valueIn(bytes: Buffer, n: number): Buffer {
    const found = valueOfNode(bytes, n)
    if (Buffer.isBuffer(found)) return found
    const value = found.value as NonNullable<Below['value']>
    const pages = check(read(found.page, value.pages), found)
    return pages.subarray(page_head_bytes, page_head_bytes + value.bytes)
  }

  function* entriesIn(below: Below, from: Buffer, to: Buffer, reverse: boolean): Generator<Entry> {
    const bytes = pageAt(below)
    const is_leaf = below.depth === 1
    const first = is_leaf ? firstFrom(bytes, 0, from) : childWith(bytes, from)
    const last = is_leaf ? firstFrom(bytes, 0, to) - 1 : childWith(bytes, to)
    for (let step = 0; step <= last - first; step++) {
      const n = reverse ? last - step : first + step
      if (is_leaf) yield { key: keyOfNode(bytes, n), value: valueIn(bytes, n) }
      else yield* entriesIn(belowNode(bytes, n, below), from, to, reverse)
    }
  }

  return {
    get(name) {
      const key = Buffer.from(name, 'latin1')
      let below = root
      for (; below !== undefined && below.depth > 1; ) {
        const bytes: Buffer = pageAt(below)
        below = belowNode(bytes, childWith(bytes, key), below)
      }
      if (below === undefined) return undefined
      const bytes = pageAt(below)
      const n = firstFrom(bytes, 0, key)
      if (n === nodeCount(bytes) || compareKey(bytes, n, key) !== 0) return undefined
      return valueIn(bytes, n)
    },
    *range(from, to, reverse) {
      if (root === undefined || from >= to) return
      yield* entriesIn(root, Buffer.from(from, 'latin1'), Buffer.from(to, 'latin1'), reverse)
    },
  }
}

/** The first node from `low` on whose key is not before this one. */
function firstFrom(bytes: Buffer, low: number, key: Buffer): number {
  let high = nodeCount(bytes)
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareKey(bytes, middle, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** The node of a branch below which a key belongs; the first one has no key. */
function childWith(bytes: Buffer, key: Buffer): number {
  const n = firstFrom(bytes, 1, key)
  return n < nodeCount(bytes) && compareKey(bytes, n, key) === 0 ? n : n - 1
}
