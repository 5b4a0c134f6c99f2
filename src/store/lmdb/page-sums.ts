/**
 * Checksums of the pages of the data file, for LMDB has none: in a file of their own beside it.
 * Values that carry a checksum themselves, as the records of tasks do, are left out, so that one of
 * them that is damaged does not take its neighbours along.
 *
 *      0  "CVPS" (4)
 *      4  version (4) = 1
 *      8  crc32 of this head from 12 on (4)
 *     12  all sums, mixed (4)
 *     16  the last two transactions, the older one first (8 each)
 *     32  bytes of a page (4)
 *     36  when the data file was last written, in whole milliseconds (8), zeros
 *     64  the rest of the meta page of each (168 each), zeros
 *    512  for each page: the crc32 of what must not change in it, 0 for one never in use (4)
 *
 * Integers are little-endian. After each commit the sums are brought up to date from the pages that
 * it wrote. Nothing waits until they are on disk and nothing fails without them: a power cut, an
 * earlier program or a copy of the data file alone may leave the sums of another state. They count
 * only beside a meta page that they know, in a file that nobody has written since, as one who puts
 * a copy in its place does; and are made anew beside others. So no damage is told of that is none.
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { crc32 } from 'node:zlib'
import { keyText } from '../../codec/key-text.ts'
import { keysOfType } from '../../codec/keys.ts'
import {
  changedPages,
  type FoundPage,
  type Meta,
  meta_end,
  page_bytes_max,
  type ReadPages,
  readMetas,
} from './pages.ts'

/** To read all of a larger file takes longer than an opening may. */
export const quick_bytes_max = 64 * 1024 * 1024

const head_bytes = 512
export const mtime_at = 36
const rests_at = 64
const magic = 0x53505643
const version = 1
/** So many sums are written together. */
const block_sums = 1024
const summed: ReadonlySet<number> = new Set([keysOfType('task').from.charCodeAt(0)])

type KnownMeta = Pick<Meta, 'txn' | 'rest'>

interface Sums {
  readonly page_bytes: number
  /** The older one first. */
  metas: readonly [KnownMeta, KnownMeta]
  mtime_ms: number
  mixed: number
  /** By page. */
  sums: Uint32Array
}

export interface PageSums {
  /**
   * Brings the sums up to date after a commit of this process; never throws. Where there are none
   * that go on from the commit before, a file of more than `bytes_max` bytes gets none.
   */
  update(bytes_max?: number): void
}

export const sumsPath = (path: string): string => `${path}-sums`

export function newPageSums(path: string): PageSums {
  let known: Sums | undefined

  function refresh(bytes_max: number): void {
    const file = openSync(path, 'r')
    try {
      const found = metasOf(file)
      if (found === undefined) return
      const [older, newest] = found
      const stored = readSums(path, known)
      if (stored !== undefined && isSame(stored.metas[1], newest)) {
        known = stored
        return
      }
      const goes_on = stored !== undefined && isSame(stored.metas[1], older)
      known = goes_on ? stored : newSums(found[1].page_bytes)
      if (!goes_on && fstatSync(file).size > bytes_max) throw new Error('not here')
      const blocks = new Set<number>()
      const after_txn = goes_on ? older.txn : -1
      for (const { page, fixed } of changedPages(
        readerOf(file, known),
        found[1],
        after_txn,
        summed,
      )) {
        if (fixed === undefined) throw new Error(`${page} is no page`)
        setSum(known, page, sumOf(fixed))
        blocks.add(Math.floor(page / block_sums))
      }
      known.metas = [older, newest]
      known.mtime_ms = mtimeOf(file)
      writeSums(path, known, goes_on ? [...blocks] : undefined)
    } finally {
      closeSync(file)
    }
  }

  return {
    update(bytes_max = Number.POSITIVE_INFINITY) {
      try {
        refresh(bytes_max)
      } catch {
        known = undefined
        try {
          rmSync(sumsPath(path), { force: true })
        } catch {
          // They do not know the meta pages of later commits.
        }
      }
    },
  }
}

/** A page that is not what was written. */
export interface DamagedPage {
  readonly page: number
  /** With the keys in it. */
  readonly says: string
  /** Whether the file ends before it. */
  readonly is_missing: boolean
}

/**
 * Compares the pages in use with their sums: each damaged one, and `undefined` now and then, where
 * a caller may pause. No commit may happen meanwhile. Nothing where there are no sums that
 * count.
 */
export function* damagedPages(path: string): Generator<DamagedPage | undefined> {
  const known = readSums(path)
  if (known === undefined) return
  const file = openSync(path, 'r')
  try {
    if (mtimeOf(file) !== known.mtime_ms) return
    const found = metasOf(file, known.page_bytes)
    const state = found && stateOf(known, found)
    if (state === 'damaged') yield { page: 0, is_missing: false, says: 'a meta page is damaged' }
    if (found === undefined || state !== 'known') return
    let pages = 0
    for (const found_page of changedPages(readerOf(file, known), found[1], -1, summed)) {
      const { page, txn, fixed, is_missing } = found_page
      // What a later commit wrote has no sum yet; one that has not been wrote nothing.
      const is_later = txn > known.metas[1].txn && txn <= found[1].txn && fixed !== undefined
      if (!is_later && (fixed === undefined || known.sums[page] !== sumOf(fixed))) {
        yield { page, is_missing, says: `page ${page} is damaged: ${keysText(found_page)}` }
      }
      if (++pages % 256 === 0) yield undefined
    }
  } finally {
    closeSync(file)
  }
}

/**
 * The first damaged page of a file that is small enough for a look at all of it. Removes sums that
 * are of another file.
 */
export function firstDamage(path: string): DamagedPage | undefined {
  const known = readSums(path)
  if (known !== undefined && known.mtime_ms !== Math.floor(statSync(path).mtimeMs)) {
    rmSync(sumsPath(path), { force: true })
    return undefined
  }
  if (statSync(path).size > quick_bytes_max) return undefined
  for (const damaged of damagedPages(path)) if (damaged !== undefined) return damaged
  return undefined
}

const told_keys = 3

function keysText({ keys }: FoundPage): string {
  const all = keys()
  if (all.length === 0) return 'it leads to others'
  const more = all.length > told_keys ? ` and ${all.length - told_keys} more` : ''
  return `in it ${all.slice(0, told_keys).map(keyText).join(', ')}${more}`
}

/** Other commits change more bits of a meta page than that. */
const flipped_bits_max = 2

/** Whether these are the meta pages that the sums know, or follow them; `other` for others. */
function stateOf(
  { metas: [known_older, known] }: Sums,
  [older, newest]: readonly [KnownMeta, KnownMeta],
): 'known' | 'damaged' | 'other' {
  // LMDB looks at what they have in common before it knows which is the newer one.
  const have_format =
    formatOf(older).equals(formatOf(known)) && formatOf(newest).equals(formatOf(known))
  if ((isSame(newest, known) || isSame(older, known)) && !have_format) return 'damaged'
  // What else a failed commit left in the older one does not matter.
  if (isSame(newest, known)) return 'known'
  // It must be of a later commit, not the one before with a number that it never had.
  if (isSame(older, known)) return newest.rest.equals(known_older.rest) ? 'damaged' : 'known'
  const isAltered = ({ txn, rest }: KnownMeta, other: KnownMeta): boolean => {
    const bits = differentBits(rest, known.rest)
    if (txn === known.txn) return bits <= flipped_bits_max
    // The pages of commits come round, so one that the sums do not know may have the same rest.
    return bits === 0 && isSame(other, known_older)
  }
  return isAltered(older, newest) || isAltered(newest, older) ? 'damaged' : 'other'
}

const isSame = (one: KnownMeta, other: KnownMeta): boolean =>
  one.txn === other.txn && one.rest.equals(other.rest)

/** The heads and the marks of the format, and the size and the kind of pages. */
function formatOf({ rest }: KnownMeta): Buffer {
  return Buffer.concat([rest.subarray(8, 40), rest.subarray(48, 54)])
}

function differentBits(one: Buffer, other: Buffer): number {
  let bits = 0
  for (const [at, byte] of one.entries()) {
    for (let left = byte ^ (other[at] as number); left > 0; left &= left - 1) bits++
  }
  return bits
}

function metasOf(file: number, page_bytes?: number): readonly [Meta, Meta] | undefined {
  const start = Buffer.alloc(2 * page_bytes_max)
  return readMetas(start.subarray(0, readSync(file, start, 0, start.length, 0)), page_bytes)
}

function mtimeOf(file: number): number {
  return Math.floor(fstatSync(file).mtimeMs)
}

/** Reads into one buffer, so that what it returns is valid until the next page. */
function readerOf(file: number, { page_bytes }: Sums): ReadPages {
  const one = Buffer.alloc(page_bytes)
  let left = Math.ceil(fstatSync(file).size / page_bytes)
  return (page, count) => {
    // In a circle of damaged pages there is no end.
    left -= count
    if (left < 0 || !(count > 0)) return undefined
    const into = count === 1 ? one : Buffer.alloc(count * page_bytes)
    return readSync(file, into, 0, into.length, page * page_bytes) === into.length
      ? into
      : undefined
  }
}

function sumOf(fixed: Buffer): number {
  return crc32(fixed) || 1
}

function newSums(page_bytes: number): Sums {
  const none = { txn: 0, rest: Buffer.alloc(meta_end) }
  const sums = new Uint32Array(block_sums)
  return { page_bytes, metas: [none, none], mtime_ms: 0, mixed: 0, sums }
}

function setSum(known: Sums, page: number, sum: number): void {
  if (page >= known.sums.length) {
    const larger = new Uint32Array(block_sums * Math.ceil((1.5 * page) / block_sums))
    larger.set(known.sums)
    known.sums = larger
  }
  known.mixed = (known.mixed ^ mixOf(page, known.sums[page] as number) ^ mixOf(page, sum)) >>> 0
  known.sums[page] = sum
}

function mixOf(page: number, sum: number): number {
  if (sum === 0) return 0
  const mixed = Math.imul(sum ^ Math.imul(page + 1, 0x9e3779b1), 0x85ebca6b)
  return Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35)
}

/** As they are on disk, or `known` where that is the same; undefined where they are not whole. */
function readSums(path: string, known?: Sums): Sums | undefined {
  const head = Buffer.alloc(head_bytes)
  if (known !== undefined) {
    const file = openSync(sumsPath(path), 'r')
    try {
      readSync(file, head, 0, head_bytes, 0)
    } finally {
      closeSync(file)
    }
    if (headOf(known).equals(head)) return known
  }
  let bytes: Buffer
  try {
    bytes = readFileSync(sumsPath(path))
  } catch {
    return undefined
  }
  if (bytes.length < head_bytes || (bytes.length - head_bytes) % 4 !== 0) return undefined
  if (bytes.readUInt32LE(0) !== magic || bytes.readUInt32LE(4) !== version) return undefined
  if (bytes.readUInt32LE(8) !== crc32(bytes.subarray(12, head_bytes))) return undefined
  const metaAt = (n: number): KnownMeta => ({
    txn: Number(bytes.readBigUInt64LE(16 + 8 * n)),
    rest: bytes.subarray(rests_at + n * meta_end, rests_at + (n + 1) * meta_end),
  })
  const sums = new Uint32Array((bytes.length - head_bytes) / 4)
  let mixed = 0
  for (let page = 0; page < sums.length; page++) {
    const sum = bytes.readUInt32LE(head_bytes + 4 * page)
    sums[page] = sum
    mixed ^= mixOf(page, sum)
  }
  if (bytes.readUInt32LE(12) !== mixed >>> 0) return undefined
  const page_bytes = bytes.readUInt32LE(32)
  const mtime_ms = Number(bytes.readBigUInt64LE(mtime_at))
  return { page_bytes, metas: [metaAt(0), metaAt(1)], mtime_ms, mixed: mixed >>> 0, sums }
}

function headOf({ page_bytes, metas, mtime_ms, mixed }: Sums): Buffer {
  const head = Buffer.alloc(head_bytes)
  head.writeUInt32LE(magic, 0)
  head.writeUInt32LE(version, 4)
  head.writeUInt32LE(mixed, 12)
  for (const [n, { txn, rest }] of metas.entries()) {
    head.writeBigUInt64LE(BigInt(txn), 16 + 8 * n)
    head.set(rest, rests_at + n * meta_end)
  }
  head.writeUInt32LE(page_bytes, 32)
  head.writeBigUInt64LE(BigInt(mtime_ms), mtime_at)
  head.writeUInt32LE(crc32(head.subarray(12)), 8)
  return head
}

/** All of them, or the blocks that have changed; the head last. */
function writeSums(path: string, known: Sums, blocks: readonly number[] | undefined): void {
  const { O_CREAT, O_RDWR, O_TRUNC } = constants
  const file = openSync(sumsPath(path), O_CREAT | O_RDWR | (blocks ? 0 : O_TRUNC), 0o600)
  try {
    const { buffer } = known.sums
    const all = Math.ceil(known.sums.length / block_sums)
    for (const block of blocks ?? Array.from({ length: all }, (_, n) => n)) {
      const bytes = new Uint8Array(buffer, 4 * block * block_sums, 4 * block_sums)
      writeAll(file, bytes, head_bytes + 4 * block * block_sums)
    }
    writeAll(file, headOf(known), 0)
  } finally {
    closeSync(file)
  }
}

function writeAll(file: number, bytes: Uint8Array, at: number): void {
  if (writeSync(file, bytes, 0, bytes.length, at) < bytes.length)
    throw new Error('the disk is full')
}
