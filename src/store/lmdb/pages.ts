/**
 * The pages of an LMDB file, parsed without LMDB, which trusts each byte of them. Pure: the caller
 * reads the bytes.
 *
 * A page begins with its number (8), the transaction that wrote it (8), a pad (2), its kind (2);
 * then, in a tree, the begin and end of its free space (2 each, from the end of this head), or, for
 * a large value, its number of pages (4). The places of its nodes follow. A node has the size of
 * its value or the page below (6, with flags), the size of its key (2), the key, and the value or a
 * reference to its pages. Integers are little-endian.
 *
 * A transaction copies each page that it changes and all pages above, so `changedPages` need not
 * look below a page of an earlier transaction.
 */
import type { Key } from '../../codec/keys.ts'

/** The head of a page, and of a node. */
export const page_head_bytes = 24
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
  readonly last_page: number
  /** Free pages, and entries. */
  readonly trees: readonly [TreeMeta, TreeMeta]
  readonly bytes: Buffer
  /** Everything but the transaction number. */
  readonly rest: Buffer
}

export interface TreeMeta {
  readonly root: number | undefined
  /** Of its leaves; 1 for a root without pages below. */
  readonly depth: number
  readonly entries: number
}

const meta_bytes = 144
export const page_bytes_max = 65_536
/** From the beginning of the meta page. */
const at = { page_bytes: 48, free: 48, main: 96, last_page: 144, txn: 152 } as const
const tree_at = { depth: 6, entries: 32, root: 40 } as const
export const meta_end = page_head_bytes + meta_bytes

/** Magic number and version, little-endian, after the header of a page. */
const magic = Buffer.from('dec0efbe02000000', 'hex')
/** The second page begins at the page size of the system that made the file. */
const page_sizes = [4_096, 8_192, 16_384, 32_768, 65_536]

/** Which meta pages of a file with these first bytes are LMDB's. */
export function magicIn(start: Buffer): 'both' | 'one' | 'none' {
  const isAt = (page_at: number): boolean => {
    const from = page_at + page_head_bytes
    return start.subarray(from, from + magic.length).equals(magic)
  }
  const [first, second] = [isAt(0), page_sizes.some(isAt)]
  if (first && second) return 'both'
  return first || second ? 'one' : 'none'
}

/**
 * Both meta pages of a file that begins with these bytes, the older first; undefined if invalid, or
 * not of two successive transactions.
 */
export function readMetas(start: Buffer): readonly [Meta, Meta] | undefined {
  if (magicIn(start) !== 'both') return undefined
  const page_bytes = start.readUInt32LE(at.page_bytes)
  if (!page_sizes.includes(page_bytes) || start.length < page_bytes + meta_end) return undefined
  const first = readMeta(start, page_bytes)
  const second = readMeta(start.subarray(page_bytes), page_bytes)
  if (second.bytes.readUInt32LE(at.page_bytes) !== page_bytes) return undefined
  // A transaction writes the page of its parity. A new file has two of number 0.
  const is_new = first.txn === 0 && second.txn === 0
  const follow = Math.abs(first.txn - second.txn) === 1 && first.txn % 2 === 0
  if (!is_new && !follow) return undefined
  return first.txn < second.txn ? [first, second] : [second, first]
}

function readMeta(page: Buffer, page_bytes: number): Meta {
  const treeAt = (from: number): TreeMeta => {
    const root = page.readBigUInt64LE(from + tree_at.root)
    return {
      root: root === no_page ? undefined : Number(root),
      depth: page.readUInt16LE(from + tree_at.depth),
      entries: Number(page.readBigUInt64LE(from + tree_at.entries)),
    }
  }
  const bytes = Buffer.from(page.subarray(0, meta_end))
  const rest = Buffer.from(bytes)
  rest.fill(0, at.txn, at.txn + 8)
  const txn = Number(page.readBigUInt64LE(at.txn))
  const last_page = Number(page.readBigUInt64LE(at.last_page))
  return { txn, page_bytes, last_page, bytes, rest, trees: [treeAt(at.free), treeAt(at.main)] }
}

/** Undefined beyond the end of the file. */
export type ReadPages = (page: number, count: number) => Buffer | undefined

/** Where a page is, and what is known of it from above. */
export interface Below {
  readonly page: number
  /** That of the page above. */
  readonly txn_max: number
  /** 1 for a leaf, or the pages of a large value. */
  readonly depth: number
  /** Whether it belongs to the entries rather than the free list. */
  readonly has_entries: boolean
  readonly value?: {
    readonly key: Key
    readonly bytes: number
    readonly pages: number
    readonly txn: number
  }
}

/** A page, or the pages of a large value. */
export interface FoundPage {
  readonly page: number
  readonly txn: number
  /**
   * The bytes that must never change, with zeros for free space and for values with their own
   * checksum. Undefined for bytes that are not this page.
   */
  readonly fixed: Buffer | undefined
  /** Whether it lies after the end of the file. */
  readonly is_missing: boolean
  /** 0 for a page without values, or of the free list. */
  readonly entries: number
  /** The keys in it, or of the value; none for a page of the free list. */
  keys(): readonly Key[]
  /** Only for a page with `fixed`. */
  isInOrder(): boolean
}

/** The values with their own checksum: the first bytes of their keys. */
export interface Summed {
  readonly types: ReadonlySet<number>
  readonly onValue?: (key: Key, value: Buffer) => void
}

const nothing_summed: Summed = { types: new Set() }
/** LMDB's deepest tree. */
const depth_max = 32

export function rootOf({ txn, trees }: Meta, tree: 0 | 1): Below | undefined {
  const { root, depth } = trees[tree]
  return root === undefined
    ? undefined
    : { page: root, txn_max: txn, depth, has_entries: tree === 1 }
}

/**
 * The pages in use that transactions after `after_txn` wrote, parents first. Nothing below an
 * invalid page is found. The bytes are valid until the next page.
 */
export function* changedPages(
  read: ReadPages,
  meta: Meta,
  after_txn: number,
  summed: Summed,
): Generator<FoundPage> {
  for (const tree of [0, 1] as const) {
    const root = rootOf(meta, tree)
    const open: Below[] = root === undefined ? [] : [root]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const bytes = read(next.page, next.value?.pages ?? 1)
      if (bytes !== undefined && bytes.readBigUInt64LE(8) <= after_txn) continue
      const below: Below[] = []
      const found = foundPage(bytes, next, meta, summed, below)
      yield found
      if (found.fixed !== undefined) open.push(...below)
    }
  }
}

/** Interprets bytes as a page, which `fixed` changes; adds the pages below it. */
export function foundPage(
  bytes: Buffer | undefined,
  place: Below,
  { txn, page_bytes }: Meta,
  summed: Summed,
  below: Below[],
): FoundPage {
  const { page, value, has_entries } = place
  const fixed =
    bytes && fixedOf(bytes, place, page_bytes, has_entries ? summed : nothing_summed, below)
  const is_leaf = has_entries && value === undefined && place.depth === 1
  return {
    page,
    // A missing page counts as the newest possible.
    txn: bytes === undefined ? txn : Number(bytes.readBigUInt64LE(8)),
    fixed,
    is_missing: bytes === undefined,
    entries: is_leaf && fixed !== undefined ? nodeCount(fixed) : 0,
    keys: () => (value !== undefined ? [value.key] : has_entries && bytes ? keysIn(bytes) : []),
    isInOrder: () =>
      value !== undefined || !has_entries || (bytes !== undefined && isInOrder(bytes, place)),
  }
}

const kindOf = (bytes: Buffer): number => bytes.readUInt16LE(18)
const freeFrom = (bytes: Buffer): number => page_head_bytes + bytes.readUInt16LE(20)

/**
 * `FoundPage.fixed`, in the same memory; adds the pages below. The page of a tree must have nodes:
 * commits leave none empty.
 */
function fixedOf(
  bytes: Buffer,
  { page, txn_max, depth, has_entries, value }: Below,
  page_bytes: number,
  summed: Summed,
  below: Below[],
): Buffer | undefined {
  const txn = Number(bytes.readBigUInt64LE(8))
  if (Number(bytes.readBigUInt64LE(0)) !== page || txn > txn_max) return undefined
  if (value !== undefined) {
    const end = page_head_bytes + value.bytes
    if (kindOf(bytes) !== kinds.large || txn !== value.txn || end > bytes.length) return undefined
    if (!summed.types.has(value.key.charCodeAt(0))) return bytes.subarray(0, end)
    summed.onValue?.(value.key, bytes.subarray(page_head_bytes, end))
    return bytes.subarray(0, page_head_bytes)
  }
  const kind = depth === 1 ? kinds.leaf : kinds.branch
  if (kindOf(bytes) !== kind || depth < 1 || depth > depth_max) return undefined
  return readNodes(bytes, { txn, depth, has_entries, page_bytes }, summed, below)
    ? bytes
    : undefined
}

interface PageShape extends Pick<Below, 'depth' | 'has_entries'> {
  readonly txn: number
  readonly page_bytes: number
}

/** Clears free space and the summed values. False if a node is not within the page. */
function readNodes(bytes: Buffer, shape: PageShape, summed: Summed, below: Below[]): boolean {
  const { txn, depth, has_entries, page_bytes } = shape
  const free_from = freeFrom(bytes)
  const free_to = page_head_bytes + bytes.readUInt16LE(22)
  if (free_from > free_to || free_to > page_bytes || free_from % 2 !== 0) return false
  if (free_from === page_head_bytes) return false
  for (let place = page_head_bytes; place < free_from; place += 2) {
    const node = page_head_bytes + bytes.readUInt16LE(place)
    const key_at = node + node_head_bytes
    if (node < free_to || key_at > page_bytes) return false
    const low = bytes.readUInt32LE(node)
    const flags = bytes.readUInt16LE(node + 4)
    const value_at = key_at + bytes.readUInt16LE(node + 6)
    if (depth > 1) {
      if (value_at > page_bytes) return false
      below.push({ page: low + flags * 2 ** 32, txn_max: txn, depth: depth - 1, has_entries })
      continue
    }
    const is_large = flags === is_large_flag
    const value_end = value_at + (is_large ? reference_bytes : low)
    if (value_end > page_bytes || (flags !== 0 && !is_large)) return false
    if (is_large) below.push(largeValue(bytes, node, txn, has_entries))
    else if (summed.types.has(bytes[key_at] as number)) {
      summed.onValue?.(
        bytes.toString('latin1', key_at, value_at),
        bytes.subarray(value_at, value_end),
      )
      bytes.fill(0, value_at, value_end)
    }
  }
  bytes.fill(0, free_from, free_to)
  return true
}

function largeValue(bytes: Buffer, node: number, txn_max: number, has_entries: boolean): Below {
  const key_at = node + node_head_bytes
  const value_at = key_at + bytes.readUInt16LE(node + 6)
  const value = {
    key: bytes.toString('latin1', key_at, value_at),
    bytes: bytes.readUInt32LE(node),
    pages: Number(bytes.readBigUInt64LE(value_at + 16)),
    txn: Number(bytes.readBigUInt64LE(value_at + 8)),
  }
  return { page: Number(bytes.readBigUInt64LE(value_at)), txn_max, depth: 1, has_entries, value }
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

// The functions below take a tree page whose nodes `fixedOf` has found to be within it.

export const nodeCount = (bytes: Buffer): number => bytes.readUInt16LE(20) >> 1

const nodeAt = (bytes: Buffer, n: number): number =>
  page_head_bytes + bytes.readUInt16LE(page_head_bytes + 2 * n)

/** Byte order; below 0 if the node's key is first. */
export function compareKey(bytes: Buffer, n: number, key: Buffer): number {
  const node = nodeAt(bytes, n)
  const key_at = node + node_head_bytes
  return bytes.compare(key, 0, key.length, key_at, key_at + bytes.readUInt16LE(node + 6))
}

export function keyOfNode(bytes: Buffer, n: number): Key {
  const node = nodeAt(bytes, n)
  const key_at = node + node_head_bytes
  return bytes.toString('latin1', key_at, key_at + bytes.readUInt16LE(node + 6))
}

/** Of a branch. */
export function belowNode(bytes: Buffer, n: number, { depth, has_entries }: Below): Below {
  const node = nodeAt(bytes, n)
  const page = bytes.readUInt32LE(node) + bytes.readUInt16LE(node + 4) * 2 ** 32
  return { page, txn_max: Number(bytes.readBigUInt64LE(8)), depth: depth - 1, has_entries }
}

/** Of a leaf: the value, or where its pages are. */
export function valueOfNode(bytes: Buffer, n: number): Buffer | Below {
  const node = nodeAt(bytes, n)
  const value_at = node + node_head_bytes + bytes.readUInt16LE(node + 6)
  if (bytes.readUInt16LE(node + 4) === is_large_flag) {
    return largeValue(bytes, node, Number(bytes.readBigUInt64LE(8)), true)
  }
  return bytes.subarray(value_at, value_at + bytes.readUInt32LE(node))
}

/** Whether the keys ascend. The first key of a branch is never read. */
function isInOrder(bytes: Buffer, { depth }: Pick<Below, 'depth'>): boolean {
  for (let n = depth > 1 ? 2 : 1; n < nodeCount(bytes); n++) {
    const before = nodeAt(bytes, n - 1) + node_head_bytes
    const key = bytes.subarray(before, before + bytes.readUInt16LE(before - 2))
    if (compareKey(bytes, n, key) <= 0) return false
  }
  return true
}
