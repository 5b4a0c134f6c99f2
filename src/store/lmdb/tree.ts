/**
 * Reads of the data file: one LMDB file and its `-lock` file. Only this folder imports LMDB.
 * Threads and processes may read while one writes (lmdb/commits).
 */
import { statfsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Key, type KeyRange, keysOfType } from '../../codec/keys.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { fileFault } from '../disk/file-system.ts'
import type { Entry } from '../store.ts'
import { key_bytes_max } from '../tree.ts'
import { copyDatabase } from './backup.ts'
import type { CheckedReads } from './checked-reads.ts'
import { damageOf } from './damage.ts'
import { type LmdbDatabase, openDatabase, statsOf } from './database.ts'
import type { FileUsage, LmdbReads } from './lmdb-tree.ts'

export interface LmdbTreeOptions {
  /** Slots for readers, of this process and of LMDB's tools; default 126. */
  readonly readers_max?: number
  /** The record `commit_log` (lmdb/marks) of a backup. */
  readonly backup_mark?: Buffer
  /** Families whose new keys mostly come last, each with its own first character. */
  readonly growing?: readonly KeyRange[]
  /** Default true. */
  readonly has_last_sums?: boolean
  /** Used while the file is compared with its sums; the tree closes them. */
  readonly checked?: CheckedReads | undefined
}

/** Reading all of a larger file takes too long for an opening. */
export const quick_bytes_max = 64 * 1024 * 1024

/** Hidden from scans of the entries. */
const sums_keys = keysOfType('page_sum')

const damage_max = 100

/** Another handle of a file that this process has checked with `openLmdbTree`. */
export async function attachLmdbTree(path: string): Promise<LmdbReads> {
  await checkOpens(path)
  return lmdbReads(await openDatabase(path, { readOnly: true }), path)
}

/** LMDB crashes the process if it cannot open the file, e.g. without free descriptors. */
export async function checkOpens(path: string): Promise<void> {
  const file = await open(path, 'r+').catch((error) => {
    throw fileFault(path, error)
  })
  await file.close()
}

export function lmdbReads(
  db: LmdbDatabase,
  path: string,
  options: LmdbTreeOptions = {},
): LmdbReads {
  const { backup_mark, growing = [] } = options
  let checked = options.checked
  const last_keys = newLastKeys(growing, ({ from, to }) => {
    for (const { key } of entriesIn(from, to, true)) return key
    return undefined
  })
  const copies = new Set<Promise<unknown>>()
  let usage = usageOf(db, path)
  let closing: Promise<void> | undefined

  checked?.verified.then(endChecked, () => {})

  async function endChecked(): Promise<void> {
    const ended = checked
    checked = undefined
    await ended?.close()
  }

  function* entriesIn(from: Key, to: Key, reverse: boolean): Generator<Entry> {
    const parts: KeyRange[] = [
      { from, to: to < sums_keys.from ? to : sums_keys.from },
      { from: from > sums_keys.to ? from : sums_keys.to, to },
    ]
    for (const part of reverse ? parts.reverse() : parts) {
      if (part.from >= part.to) continue
      const entries = checked?.range(part.from, part.to, reverse)
      yield* entries ?? rangeOf(db, part.from, part.to, reverse)
    }
  }

  function checkOpen(): void {
    if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
  }

  /** LMDB refuses reads too after it failed to write a meta page. */
  function readFault(error: unknown): Fault {
    checkOpen()
    return isFault(error) ? error : fault('store_failed', undefined, { cause: error })
  }

  async function drain(): Promise<void> {
    await Promise.allSettled(copies)
    await endChecked()
    await db.close()
  }

  return {
    get(key) {
      if (key.length === 0 || key.length > key_bytes_max) return undefined
      try {
        if (last_keys.isAfter(key)) return undefined
        return checked === undefined ? copyOf(db.getBinaryFast(key)) : checked.get(key)
      } catch (error) {
        throw readFault(error)
      }
    },
    *range(from, to, reverse) {
      try {
        yield* entriesIn(from, to, reverse)
      } catch (error) {
        throw readFault(error)
      }
    },
    refresh() {
      db.resetReadTxn()
      checked?.refresh()
      last_keys.forget()
      usage = usageOf(db, path)
    },
    freeBytes: () => freeBytesAt(path),
    usage: () => usage,
    has_last_sums: options.has_last_sums ?? true,
    damage: () => damageOf(path, damage_max),
    verified: () => checked?.verified,
    backup: async (target) => {
      checkOpen()
      const copy = copyDatabase(path, target, backup_mark)
      copies.add(copy)
      return copy.finally(() => copies.delete(copy))
    },
    close: () => {
      closing ??= drain()
      return closing
    },
  }
}

/** Free bytes of the disk; unbounded if unknown, because that is no reason to refuse writes. */
export function freeBytesAt(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(dirname(path))
    return bavail * bsize
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Two meta pages, and about as many for the list of free pages. */
const other_pages = 4

function usageOf(db: LmdbDatabase, path: string): FileUsage {
  const stats = statsOf(db)
  const { pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages } = stats
  const used_pages = treeBranchPageCount + treeLeafPageCount + overflowPages + other_pages
  const { size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
  const used_bytes = Math.min(used_pages * pageSize, size)
  const end_bytes = (stats.lastPageNumber + 1) * pageSize
  return { used_bytes, reusable_bytes: size - used_bytes, end_bytes }
}

/**
 * LMDB reuses the buffer, and only its `length` says how much is valid. A copy in Node's buffer
 * pool costs half of one with its own memory.
 */
function copyOf(shared: Buffer | undefined): Buffer | undefined {
  if (shared === undefined) return undefined
  const copy = Buffer.allocUnsafe(shared.length)
  copy.set(new Uint8Array(shared.buffer, shared.byteOffset, shared.length))
  return copy
}

/**
 * Includes `from` and excludes `to`, in both directions; LMDB includes `start` and excludes `end`.
 * A bound too long for a key lies directly after its longest valid prefix.
 */
function* rangeOf(db: LmdbDatabase, from: Key, to: Key, reverse: boolean): Generator<Entry> {
  if (from >= to) return
  const low = from.slice(0, key_bytes_max)
  const high = to.slice(0, key_bytes_max)
  const without_low = low !== from
  const with_high = high !== to
  const bounds = reverse
    ? { start: high, exclusiveStart: !with_high, end: low, inclusiveEnd: !without_low }
    : { start: low, exclusiveStart: without_low, end: high, inclusiveEnd: with_high }
  yield* db.getRange({ ...bounds, reverse })
}

export interface LastKeys {
  /** True only if the key is in a family and after all its keys in the file. */
  isAfter(key: Key): boolean
  /** The file may have others. */
  forget(): void
}

export function newLastKeys(
  families: readonly KeyRange[],
  lastIn: (family: KeyRange) => Key | undefined,
): LastKeys {
  const first = families[0]?.from.charCodeAt(0)
  const known = new Map<KeyRange, Key>()

  function lastOf(family: KeyRange): Key {
    const found = known.get(family) ?? lastIn(family) ?? family.from
    known.set(family, found)
    return found
  }

  return {
    isAfter(key) {
      if (key.charCodeAt(0) !== first) return false
      for (const family of families) {
        if (key >= family.from && key < family.to) return key > lastOf(family)
      }
      return false
    },
    forget: () => known.clear(),
  }
}
