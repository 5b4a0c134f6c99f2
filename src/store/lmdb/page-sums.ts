/**
 * Checksums of the pages of the data file, which LMDB lacks. They are entries of the file, so any
 * copy has them. Values with their own checksum, such as task records, are left out, so that a
 * damaged one does not affect its neighbours.
 *
 *     key page_sum            the last transaction whose pages all have a sum here (8), crc32 (4)
 *     key page_sum, block n   the sums of the pages from n * 1016 on (4 each), crc32 (4)
 *
 * A sum is the crc32 of a page's fixed bytes, 0 for a page never used; that of a large value is in
 * its first page. An entry's crc32 covers key and value. A commit writes the sums of earlier
 * commits; those of its own pages follow in the mark `pages` (lmdb/marks):
 *
 *     0  the transaction (8)
 *     8  the transaction in the entry without a block, or -1 without one (8)
 *    16  crc32 of the meta page (4)
 *    20  how many pages share a sum (4)
 *    24  the sums of the pages that the transaction wrote, in the order of `changedPages` (4 each)
 *
 * Integers are big-endian, sums in blocks little-endian. Only the last commit of a checkpoint
 * writes sums. A page without a sum is accepted if it is well-formed.
 */
import { fstatSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { keyText } from '../../codec/key-text.ts'
import { type Key, keysOfType, pageSumKey } from '../../codec/keys.ts'
import { type Mark, readMark } from './marks.ts'
import { newPageReader, type PageReader } from './page-reader.ts'
import {
  type Below,
  changedPages,
  type FoundPage,
  foundPage,
  type Meta,
  page_bytes_max,
  type ReadPages,
  readMetas,
  rootOf,
  type Summed,
} from './pages.ts'

/** With these and its crc a value takes one page of 4 KiB. */
export const block_sums = 1_016
const mark_head_bytes = 24
const mark_sums_max = 116

export const summed: Summed = { types: new Set([keysOfType('task').from.charCodeAt(0)]) }

export const sumOf = (fixed: Buffer): number => crc32(fixed) || 1

/** Appends the crc32 of key and value. */
export function sealed(key: Key, value: Uint8Array): Buffer {
  const out = Buffer.alloc(value.length + 4)
  out.set(value)
  out.writeUInt32BE(crc32(value, crc32(Buffer.from(key, 'latin1'))), value.length)
  return out
}

/** Undefined if the crc32 does not match. */
export function unsealed(key: Key, bytes: Buffer): Buffer | undefined {
  const value = bytes.subarray(0, Math.max(0, bytes.length - 4))
  return bytes.length >= 4 && sealed(key, value).equals(bytes) ? value : undefined
}

/** The transaction up to which there are sums; -1 without any, `damaged` if unknown. */
export function coveredTxn(entries: Pick<PageReader, 'get'>): number | 'damaged' {
  const found = entries.get(pageSumKey())
  if (found === undefined) return -1
  const value = unsealed(pageSumKey(), found)
  return value?.length === 8 ? Number(value.readBigUInt64BE(0)) : 'damaged'
}

export interface PagesMark {
  readonly txn: number
  readonly covered_txn: number
  readonly meta_crc: number
  readonly sums_each: number
  readonly sums: readonly number[]
}

/** `page_sums`: of the pages that the meta page's transaction wrote. */
export function encodePagesMark(meta: Meta, covered_txn: number, page_sums: number[]): Buffer {
  const sums_each = Math.max(1, Math.ceil(page_sums.length / mark_sums_max))
  const groups = sumsOfGroups(page_sums, sums_each)
  const out = Buffer.alloc(mark_head_bytes + 4 * groups.length)
  out.writeBigInt64BE(BigInt(meta.txn), 0)
  out.writeBigInt64BE(BigInt(covered_txn), 8)
  out.writeUInt32BE(crc32(meta.bytes), 16)
  out.writeUInt32BE(sums_each, 20)
  for (const [n, sum] of groups.entries()) out.writeUInt32BE(sum, mark_head_bytes + 4 * n)
  return out
}

function sumsOfGroups(page_sums: readonly number[], each: number): number[] {
  if (each === 1) return [...page_sums]
  const sums: number[] = []
  for (let at = 0; at < page_sums.length; at += each) {
    sums.push(crc32(Buffer.from(Uint32Array.from(page_sums.slice(at, at + each)).buffer)))
  }
  return sums
}

function decodePagesMark(mark: Mark | undefined): PagesMark | undefined {
  const payload = mark?.payload
  if (payload === undefined || payload.length < mark_head_bytes) return undefined
  const count = (payload.length - mark_head_bytes) >> 2
  return {
    txn: Number(payload.readBigInt64BE(0)),
    covered_txn: Number(payload.readBigInt64BE(8)),
    meta_crc: payload.readUInt32BE(16),
    sums_each: Math.max(1, payload.readUInt32BE(20)),
    sums: Array.from({ length: count }, (_, n) => payload.readUInt32BE(mark_head_bytes + 4 * n)),
  }
}

export interface DamagedPage {
  /** 0 for a meta page. */
  readonly page: number
  /** With the keys in it. */
  readonly says: string
  readonly is_missing: boolean
}

export function isDamagedPage(error: unknown): error is DamagedPage {
  return typeof (error as Partial<DamagedPage> | null)?.says === 'string'
}

/** The pages of the last transaction of a file. */
export interface CheckedPages {
  readonly meta: Meta
  /** Whether the mark `pages` has the sums of the last transaction. */
  readonly is_marked: boolean
  readonly file: number
  /** Why a page differs from what was written, if it does. */
  damageOf(found: FoundPage): DamagedPage | undefined
  readonly entries: PageReader
}

/** Undefined unless the meta pages are those of a sound file. */
export function metasOf(file: number): readonly [Meta, Meta] | undefined {
  const start = Buffer.alloc(2 * page_bytes_max)
  return readMetas(start.subarray(0, readSync(file, start, 0, start.length, 0)))
}

/**
 * Checks the meta pages and the pages of the last transaction; reads only these and the path to the
 * sums. Throws a `DamagedPage`.
 */
export function checkedPages(file: number): CheckedPages {
  const metas = metasOf(file)
  if (metas === undefined) throw damaged_meta
  const [, meta] = metas
  const mark = decodePagesMark(readMark(file, meta.page_bytes, 'pages'))
  const is_marked = mark?.txn === meta.txn
  // LMDB's meta page is on disk before the mark is written.
  if (mark !== undefined && mark.txn > meta.txn) throw damaged_meta
  if (is_marked && mark.meta_crc !== crc32(meta.bytes)) throw damaged_meta
  const read = pagesOf(file, meta)
  // Each commit rewrites the root, so an older root reveals a meta page that was set back.
  const root = rootOf(meta, 1)
  const root_bytes = root && read(root.page, 1)
  if (root !== undefined && root_bytes === undefined && root.page <= meta.last_page) {
    throw damagedPage(foundPage(undefined, root, meta, summed, []))
  }
  if (root !== undefined && root_bytes?.readBigUInt64LE(8) !== BigInt(meta.txn)) throw damaged_meta
  if (is_marked) checkLast(file, meta, mark)
  const stored = storedEntries(file, meta)
  const found_txn = coveredTxn(stored)
  if (found_txn === 'damaged' || found_txn >= meta.txn) throw damaged_sums
  if (is_marked && found_txn !== mark.covered_txn) throw damaged_sums
  const covered_txn: number = found_txn
  const sumAt = newSums(stored)

  function damageOf(found: FoundPage): DamagedPage | undefined {
    const { page, txn, fixed } = found
    if (fixed === undefined) return damagedPage(found)
    if (txn > covered_txn) {
      const is_sound = (is_marked && txn === meta.txn) || found.isInOrder()
      return is_sound ? undefined : damagedPage(found)
    }
    const sum = sumAt(page)
    if (sum === 'damaged') return { ...damaged_sums, page }
    return sum === sumOf(fixed) ? undefined : damagedPage(found)
  }

  // Without the mark, pages of commits since the sums must be well-formed.
  const since_sums = is_marked || covered_txn === -1 ? meta.txn : covered_txn
  for (const found of changedPages(walkedPages(file, meta), meta, since_sums, summed)) {
    const damaged = damageOf(found)
    if (damaged !== undefined) throw damaged
  }
  const entries = newPageReader(read, meta, (bytes, place) => {
    const damaged = damageOf(foundCopy(bytes, place, meta))
    if (damaged !== undefined) throw damaged
    return bytes as Buffer
  })
  return { meta, is_marked, file, damageOf, entries }
}

export const damaged_meta: DamagedPage = {
  page: 0,
  is_missing: false,
  says: 'a meta page is damaged',
}
export const damaged_sums: DamagedPage = {
  page: 0,
  is_missing: false,
  says: 'the checksums of pages are damaged',
}

/** Reads of pages that are only checked to be well-formed. They throw a `DamagedPage`. */
export function storedEntries(file: number, meta: Meta): PageReader {
  return newPageReader(pagesOf(file, meta), meta, (bytes, place) => {
    const found = foundCopy(bytes, place, meta)
    if (found.fixed === undefined) throw damagedPage(found)
    return bytes as Buffer
  })
}

/** Without changing the bytes. */
function foundCopy(bytes: Buffer | undefined, place: Below, meta: Meta): FoundPage {
  const own = bytes && place.value === undefined ? Buffer.from(bytes) : bytes
  return foundPage(own, place, meta, summed, [])
}

/** Compares the transaction's pages with its mark. Throws a `DamagedPage`. */
function checkLast(file: number, meta: Meta, { sums, sums_each }: PagesMark): void {
  const group: number[] = []
  let first: FoundPage | undefined
  let at = 0
  const compare = (): void => {
    if (group.length === 0) return
    const [sum] = sumsOfGroups(group, sums_each)
    if (sum !== sums[at++]) throw damagedPage(first as FoundPage, sums_each)
    group.length = 0
  }
  for (const found of changedPages(walkedPages(file, meta), meta, meta.txn - 1, summed)) {
    const { fixed, keys } = found
    if (fixed === undefined) throw damagedPage(found)
    if (group.length === 0) {
      const known = keys()
      first = { ...found, keys: () => known }
    }
    group.push(sumOf(fixed))
    if (group.length === sums_each) compare()
  }
  compare()
  if (at < sums.length) throw damaged_meta
}

/** Sums of the file, read on demand. */
function newSums(entries: PageReader): (page: number) => number | 'damaged' {
  const blocks = new Map<number, Uint32Array | undefined>()
  return (page) => {
    const block = Math.floor(page / block_sums)
    if (!blocks.has(block)) blocks.set(block, blockOf(entries, block))
    return blocks.get(block)?.[page % block_sums] ?? 'damaged'
  }
}

/** Undefined for a missing or damaged block. */
function blockOf(entries: Pick<PageReader, 'get'>, block: number): Uint32Array | undefined {
  const key = pageSumKey(block)
  const value = unsealed(key, entries.get(key) ?? Buffer.alloc(0))
  return value && sumsIn(value)
}

/** A copy. */
export function sumsIn(value: Buffer): Uint32Array {
  return Uint32Array.from({ length: value.length >> 2 }, (_, n) => value.readUInt32LE(4 * n))
}

/**
 * Compares all pages in use with their sums: yields each damaged one, and `undefined` now and then,
 * where a caller may pause. No commit may run meanwhile.
 */
export function* damagedPages(
  { meta, file, damageOf }: CheckedPages,
  values: Summed = summed,
): Generator<DamagedPage | undefined> {
  let [pages, entries, damaged_pages] = [0, 0, 0]
  for (const found of changedPages(walkedPages(file, meta), meta, -1, values)) {
    const damaged = damageOf(found)
    if (damaged !== undefined) {
      damaged_pages++
      yield damaged
    }
    entries += found.entries
    if (++pages % 256 === 0) yield undefined
  }
  if (damaged_pages === 0 && entries !== meta.trees[1].entries) {
    yield { page: 0, is_missing: false, says: `it has ${entries} of ${meta.trees[1].entries} keys` }
  }
}

const told_keys = 3

export function damagedPage(found: FoundPage, of_pages = 1): DamagedPage {
  const { page, is_missing } = found
  const which =
    of_pages === 1 ? `page ${page}` : `page ${page}, or one of the ${of_pages} from it on,`
  return { page, is_missing, says: `${which} is damaged: ${keysText(found)}` }
}

function keysText({ keys, fixed }: FoundPage): string {
  const all = keys()
  if (all.length === 0) return fixed === undefined ? 'it cannot be read' : 'it leads to others'
  const more = all.length > told_keys ? ` and ${all.length - told_keys} more` : ''
  return `in it ${all.slice(0, told_keys).map(keyText).join(', ')}${more}`
}

/** Reads into new memory each time. */
function pagesOf(file: number, { page_bytes }: Meta): ReadPages {
  const pages = Math.ceil(fstatSync(file).size / page_bytes)
  return (page, count) => {
    if (!(count > 0) || !(page + count <= pages)) return undefined
    const into = Buffer.allocUnsafe(count * page_bytes)
    return readSync(file, into, 0, into.length, page * page_bytes) === into.length
      ? into
      : undefined
  }
}

/** Reads into one buffer, and no more than the file has: damaged pages may form a cycle. */
export function walkedPages(file: number, { page_bytes }: Meta): ReadPages {
  const one = Buffer.alloc(page_bytes)
  const pages = Math.ceil(fstatSync(file).size / page_bytes)
  let left = pages
  return (page, count) => {
    left -= count
    if (left < 0 || !(count > 0) || !(page + count <= pages)) return undefined
    const into = count === 1 ? one : Buffer.alloc(count * page_bytes)
    return readSync(file, into, 0, into.length, page * page_bytes) === into.length
      ? into
      : undefined
  }
}
