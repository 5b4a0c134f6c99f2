/**
 * Reads an LMDB file page by page with plain file reads, without LMDB.
 *
 * Two things need that: a file must be judged before LMDB maps it, since touching a page behind the
 * end of a mapped file kills the process; and a second process, or a second engine in this one,
 * must learn who holds a file without a hand on LMDB's own locks, which the system drops when any
 * of their process's handles closes.
 *
 * It knows data version 2 on 64-bit little-endian machines, all integers as the machine has them. A
 * page is a head of 24 bytes, then offsets of nodes, and the nodes from the end on:
 *
 *     page  number 8 · transaction 8 · pad 2 · flags 2 · (lower 2, upper 2 | overflow pages 4)
 *     meta  magic 4 · version 4 · address 8 · map size 8 · tree ×2 · last page 8 · transaction 8
 *     tree  pad 4 (first one: page size) · flags 2 · depth 2 · counts 4×8 · root 8
 *     node  low 2 · high 2 · flags 2 · key size 2 · key · value
 */
import type { FileHandle } from 'node:fs/promises'
import type { Key } from '../../codec/keys.ts'

const head_bytes = 24
const meta_bytes = head_bytes + 24 + 2 * 48 + 16
const magic = 0xbeefc0de
const data_version = 2
const overlapping_sync = 0x1000
const depth_max = 64
/** The second head stands on the second page, whose place is the size of one. */
const head_places = [0, ...Array.from({ length: 9 }, (_, n) => 256 << n)]
const none = 0xffff_ffff_ffff_ffffn

const page_flags = { branch: 0x01, leaf: 0x02, overflow: 0x04, meta: 0x08 } as const
const on_overflow_pages = 0x01

/** The newest state that a file holds. Roots are page numbers, undefined for an empty tree. */
export interface Snapshot {
  readonly page_bytes: number
  readonly transaction: number
  readonly last_page: number
  readonly free_root: number | undefined
  readonly main_root: number | undefined
  /** It may hold commits that were answered before they were safe. */
  readonly unsafe: boolean
}

/** The newest state, or undefined where the head of the file is not LMDB's. */
export async function readSnapshot(file: FileHandle): Promise<Snapshot | undefined> {
  const first = readMeta(await bytesAt(file, 0, meta_bytes))
  if (first === undefined) return undefined
  const second = readMeta(await bytesAt(file, first.page_bytes, meta_bytes))
  if (second === undefined || second.page_bytes !== first.page_bytes) return undefined
  return second.transaction > first.transaction ? second : first
}

/**
 * Whether these are all the bytes of a new file whose two heads, in one write, came to disk in part
 * or not at all. One that ends before the second was there and has been cut.
 */
export function isUnborn(bytes: Buffer): boolean {
  const rest = Buffer.from(bytes)
  for (const place of head_places) {
    const head = readMeta(rest.subarray(place))
    if (head === undefined) continue
    if (head.transaction > 0 || (place > 0 && place !== head.page_bytes)) return false
    if (bytes.length < 2 * head.page_bytes) return false
    rest.fill(0, place, place + meta_bytes)
  }
  return rest.every((byte) => byte === 0)
}

/** The value of a key in a state; throws where a page is not as it should be. */
export async function findValue(
  file: FileHandle,
  at: Snapshot,
  key: Key,
): Promise<Buffer | undefined> {
  let number = at.main_root
  for (let depth = 0; number !== undefined; depth++) {
    const page = await readPage(file, at, number, depth)
    const nodes = nodesOf(page)
    if (isBranch(page)) {
      const next = nodes.findLastIndex((node, index) => index === 0 || keyOf(page, node) <= key)
      number = childOf(page, nodes[next] as number)
      continue
    }
    const node = nodes.find((candidate) => keyOf(page, candidate) === key)
    return node === undefined ? undefined : valueIn(file, at, page, node)
  }
  return undefined
}

/**
 * Whether the file has every page that the state needs. It may end before its last page where the
 * rest is free, so a short one is walked through; that takes as long as the file is large.
 */
export async function hasItsPages(
  file: FileHandle,
  at: Snapshot,
  file_bytes: number,
): Promise<boolean> {
  const pages = Math.floor(file_bytes / at.page_bytes)
  if (at.last_page < pages) return true
  try {
    await walk(file, at, at.free_root, pages, 0)
    await walk(file, at, at.main_root, pages, 0)
    return true
  } catch (error) {
    if (isDamage(error)) return false
    throw error
  }
}

async function walk(
  file: FileHandle,
  at: Snapshot,
  root: number | undefined,
  pages: number,
  depth: number,
): Promise<void> {
  if (root === undefined) return
  const page = await readPage(file, at, root, depth)
  for (const node of nodesOf(page)) {
    if (isBranch(page)) await walk(file, at, childOf(page, node), pages, depth + 1)
    else if (page.readUInt16LE(node + 4) & on_overflow_pages) {
      const value = node + 8 + page.readUInt16LE(node + 6)
      if (number64(page, value) + number64(page, value + 16) > pages) throw damage()
    }
  }
}

function readMeta(bytes: Buffer): Snapshot | undefined {
  if (bytes.length < meta_bytes) return undefined
  if ((bytes.readUInt16LE(18) & page_flags.meta) === 0) return undefined
  if (bytes.readUInt32LE(head_bytes) !== magic) return undefined
  if (bytes.readUInt16LE(head_bytes + 4) !== data_version) return undefined
  const free = head_bytes + 24
  const main = free + 48
  const page_bytes = bytes.readUInt32LE(free)
  if (page_bytes < 256 || page_bytes > 65_536 || (page_bytes & (page_bytes - 1)) !== 0) {
    return undefined
  }
  return {
    page_bytes,
    unsafe: (bytes.readUInt16LE(free + 4) & overlapping_sync) !== 0,
    free_root: rootAt(bytes, free + 40),
    main_root: rootAt(bytes, main + 40),
    last_page: number64(bytes, main + 48),
    transaction: number64(bytes, main + 56),
  }
}

function rootAt(bytes: Buffer, place: number): number | undefined {
  return bytes.readBigUInt64LE(place) === none ? undefined : number64(bytes, place)
}

async function readPage(
  file: FileHandle,
  at: Snapshot,
  number: number,
  depth: number,
): Promise<Buffer> {
  const page = await bytesAt(file, number * at.page_bytes, at.page_bytes)
  if (depth > depth_max || page.length < at.page_bytes || number64(page, 0) !== number) {
    throw damage()
  }
  if ((page.readUInt16LE(18) & (page_flags.branch | page_flags.leaf)) === 0) throw damage()
  return page
}

function isBranch(page: Buffer): boolean {
  return (page.readUInt16LE(18) & page_flags.branch) !== 0
}

/** Where the nodes of a page begin, in key order. */
function nodesOf(page: Buffer): number[] {
  const count = page.readUInt16LE(20) >> 1
  if (head_bytes + 2 * count > page.length) throw damage()
  const nodes: number[] = []
  for (let index = 0; index < count; index++) {
    const node = head_bytes + page.readUInt16LE(head_bytes + 2 * index)
    if (node + 8 > page.length || node + 8 + page.readUInt16LE(node + 6) > page.length) {
      throw damage()
    }
    nodes.push(node)
  }
  return nodes
}

function keyOf(page: Buffer, node: number): Key {
  return page.toString('latin1', node + 8, node + 8 + page.readUInt16LE(node + 6))
}

function childOf(page: Buffer, node: number): number {
  return page.readUInt32LE(node) + page.readUInt16LE(node + 4) * 2 ** 32
}

async function valueIn(
  file: FileHandle,
  at: Snapshot,
  page: Buffer,
  node: number,
): Promise<Buffer> {
  const size = page.readUInt32LE(node)
  const start = node + 8 + page.readUInt16LE(node + 6)
  if ((page.readUInt16LE(node + 4) & on_overflow_pages) === 0) {
    return Buffer.from(page.subarray(start, start + size))
  }
  const value = await bytesAt(file, number64(page, start) * at.page_bytes + head_bytes, size)
  if (value.length < size) throw damage()
  return value
}

function number64(bytes: Buffer, place: number): number {
  if (place + 8 > bytes.length) throw damage()
  return Number(bytes.readBigUInt64LE(place))
}

/** The bytes that are there, fewer than asked for at the end of the file. */
async function bytesAt(file: FileHandle, place: number, count: number): Promise<Buffer> {
  const bytes = Buffer.alloc(count)
  let got = 0
  while (got < count) {
    const { bytesRead } = await file.read(bytes, got, count - got, place + got)
    if (bytesRead === 0) break
    got += bytesRead
  }
  return bytes.subarray(0, got)
}

function damage(): Error {
  return Object.assign(new Error('a page is not as it should be'), { code: damaged })
}

const damaged = 'PAGE_DAMAGED'

function isDamage(error: unknown): boolean {
  return (error as { code?: unknown }).code === damaged
}
