/**
 * The pages of an LMDB file as they lie on disk, read without LMDB, which trusts each byte of them
 * and may end the process over one that is wrong. Pure: the caller reads the bytes.
 *
 * A page begins with its number (8), the transaction that wrote it (8), a pad (2), its kind (2);
 * then, in a tree, where its free space begins and ends (2 each, from the end of this head), or,
 * for a large value, its number of pages (4). The places of its nodes follow. A node has the size
 * of its value or the page below (6, with flags), the size of its key (2), the key, and the value
 * or a reference to its pages. Integers are little-endian.
 *
 * A transaction copies each page that it changes, with all pages above. So below a page that was
 * written by an earlier transaction nothing is newer, and `changedPages` need not look there.
 */
import type { Key } from '../../codec/keys.ts'

/** The head of a page, and of a node. */
const page_head_bytes = 24
const node_head_bytes = 8
const kinds = { branch: 1, leaf: 2, large: 4 } as const
const is_large_flag = 1
/** A reference: page (8), transaction (8), number of pages (8). */
const reference_bytes = 24
const no_page = 0xffff_ffff_ffff_ffffn

/** The meta page of a transaction; the file has those of the last two. */
export interface Meta {
  readonly txn: number
  readonly page_bytes: number
  /** Of the list of free pages and of the entries; undefined for an empty tree. */
  readonly roots: readonly (number | undefined)[]
  /** All that is in it but the number of the transaction. */
  readonly rest: Buffer
}

const meta_bytes = 144
export const page_bytes_max = 65_536
/** From the beginning of the meta page. */
const at = { page_bytes: 48, free_root: 88, main_root: 136, txn: 152 } as const
/** From the beginning of its page. */
export const meta_end = page_head_bytes + meta_bytes

/**
 * Both meta pages of a file that begins with these bytes, the older one first; undefined if they
 * are none. Its pages have the size that it says itself, or the given one.
 */
export function readMetas(start: Buffer, known_bytes = 0): readonly [Meta, Meta] | undefined {
  if (start.length < meta_end) return undefined
  const page_bytes = known_bytes || start.readUInt32LE(at.page_bytes)
  if (page_bytes < 512 || page_bytes > page_bytes_max) return undefined
  if (start.length < page_bytes + meta_end) return undefined
  const [first, second] = [
    readMeta(start, page_bytes),
    readMeta(start.subarray(page_bytes), page_bytes),
  ]
  return first.txn < second.txn ? [first, second] : [second, first]
}

function readMeta(page: Buffer, page_bytes: number): Meta {
  const rootAt = (offset: number): number | undefined => {
    const root = page.readBigUInt64LE(offset)
    return root === no_page ? undefined : Number(root)
  }
  const rest = Buffer.from(page.subarray(0, meta_end))
  rest.fill(0, at.txn, at.txn + 8)
  const txn = Number(page.readBigUInt64LE(at.txn))
  return { txn, page_bytes, rest, roots: [rootAt(at.free_root), rootAt(at.main_root)] }
}

/** Reads so many pages from this one on; undefined beyond the end of the file. */
export type ReadPages = (page: number, count: number) => Buffer | undefined

/** A page, or the pages of a large value. */
export interface FoundPage {
  readonly page: number
  /** Of the transaction that wrote it. */
  readonly txn: number
  /**
   * What must never change: its bytes, with zeros in place of free space and of values that carry
   * a checksum of their own. Undefined for bytes that are no page.
   */
  readonly fixed: Buffer | undefined
  /** Whether it lies after the end of the file. */
  readonly is_missing: boolean
  /** The keys in it, or of the value; none for a page of the free list. */
  keys(): readonly Key[]
}

/** The first bytes of the keys whose values carry a checksum of their own. */
export type Summed = ReadonlySet<number>

interface Below {
  readonly page: number
  /** Of a large value. */
  readonly value?: { readonly key: Key; readonly bytes: number; readonly pages: number }
}

/**
 * The pages in use that a transaction after `after_txn` wrote, each before those below it. Nothing
 * below a page that is none is found. The bytes are valid until the next page.
 */
export function* changedPages(
  read: ReadPages,
  { roots, page_bytes }: Meta,
  after_txn: number,
  summed: Summed,
): Generator<FoundPage> {
  for (const [tree, root] of roots.entries()) {
    const has_keys = tree === 1
    const open: Below[] = root === undefined ? [] : [{ page: root }]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { page, value } = next
      const bytes = read(page, value?.pages ?? 1)
      const keysOfValue = (): Key[] => (value === undefined ? [] : [value.key])
      if (bytes === undefined) {
        yield { page, txn: after_txn + 1, fixed: undefined, is_missing: true, keys: keysOfValue }
        continue
      }
      const txn = Number(bytes.readBigUInt64LE(8))
      if (txn <= after_txn) continue
      if (value !== undefined) {
        const is_summed = has_keys && summed.has(value.key.charCodeAt(0))
        const end = page_head_bytes + (is_summed ? 0 : value.bytes)
        const is_page = kindOf(bytes) === kinds.large && end <= bytes.length
        const fixed = is_page ? bytes.subarray(0, end) : undefined
        yield { page, txn, fixed, is_missing: false, keys: keysOfValue }
        continue
      }
      const below: Below[] = []
      const is_page = readTreePage(bytes, page_bytes, has_keys ? summed : no_keys, below)
      const keys = (): Key[] => (has_keys ? keysIn(bytes) : [])
      yield { page, txn, fixed: is_page ? bytes : undefined, is_missing: false, keys }
      if (is_page) open.push(...below)
    }
  }
}

const no_keys: Summed = new Set()
const kindOf = (bytes: Buffer): number => bytes.readUInt16LE(18)
const freeFrom = (bytes: Buffer): number => page_head_bytes + bytes.readUInt16LE(20)

/**
 * Adds the pages below this one, and clears its free space and its summed values. False for bytes
 * that are no page of a tree.
 */
function readTreePage(bytes: Buffer, page_bytes: number, summed: Summed, below: Below[]): boolean {
  const kind = kindOf(bytes)
  const free_from = freeFrom(bytes)
  const free_to = page_head_bytes + bytes.readUInt16LE(22)
  if (kind !== kinds.branch && kind !== kinds.leaf) return false
  if (free_from > free_to || free_to > page_bytes) return false
  for (let place = page_head_bytes; place < free_from; place += 2) {
    const node = page_head_bytes + bytes.readUInt16LE(place)
    const key_at = node + node_head_bytes
    if (node < free_to || key_at > page_bytes) return false
    const low = bytes.readUInt32LE(node)
    const flags = bytes.readUInt16LE(node + 4)
    const value_at = key_at + bytes.readUInt16LE(node + 6)
    const is_large = (flags & is_large_flag) !== 0
    const value_end = value_at + (kind === kinds.branch ? 0 : is_large ? reference_bytes : low)
    if (value_end > page_bytes) return false
    if (kind === kinds.branch) below.push({ page: low + flags * 2 ** 32 })
    else if (is_large) {
      const page = Number(bytes.readBigUInt64LE(value_at))
      const pages = Number(bytes.readBigUInt64LE(value_at + 16))
      const key = bytes.toString('latin1', key_at, value_at)
      below.push({ page, value: { key, bytes: low, pages } })
    } else if (summed.has(bytes[key_at] as number)) bytes.fill(0, value_at, value_end)
  }
  bytes.fill(0, free_from, free_to)
  return true
}

/** As far as they can be read. */
function keysIn(bytes: Buffer): Key[] {
  const keys: Key[] = []
  const end = Math.min(freeFrom(bytes), bytes.length - 1)
  for (let place = page_head_bytes; place < end; place += 2) {
    const node = page_head_bytes + bytes.readUInt16LE(place)
    if (node + node_head_bytes > bytes.length) continue
    const key_at = node + node_head_bytes
    const key = bytes.toString('latin1', key_at, key_at + bytes.readUInt16LE(node + 6))
    if (key !== '') keys.push(key)
  }
  return keys
}
