/**
 * Reads of the data file: one LMDB file and its `-lock` file. Only this folder depends on LMDB.
 * Several threads and processes may read it while one writes it (lmdb/commits).
 */
import { statfsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Key, KeyRange } from '../../codec/keys.ts'
import { nextTurn } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import { fileFault } from '../file-system.ts'
import type { Entry } from '../store.ts'
import { key_bytes_max } from '../tree.ts'
import { copyDatabase } from './backup.ts'
import { type LmdbDatabase, openDatabase, statsOf } from './database.ts'
import { newLastKeys } from './last-keys.ts'
import type { FileUsage, LmdbReads } from './lmdb-tree.ts'
import { damagedPages } from './page-sums.ts'

export interface LmdbTreeOptions {
  /** Slots for readers, of this process and of LMDB's own tools; 126 by default. */
  readonly readers_max?: number
  /** The record `log` (lmdb/marks) of a backup. */
  readonly backup_mark?: Buffer
  /** Families whose new keys mostly come last; they begin with a character of their own. */
  readonly growing?: readonly KeyRange[]
}

/** Of a file with more damaged pages, no more are told. */
const damage_max = 100

/** Another handle of a file that this process has checked with `openLmdbTree`. */
export async function attachLmdbTree(path: string): Promise<LmdbReads> {
  await checkOpens(path)
  return lmdbReads(await openDatabase(path, { readOnly: true }), path)
}

/** LMDB kills the process if it cannot open the file, for one when no more may be open. */
export async function checkOpens(path: string): Promise<void> {
  const file = await open(path, 'r+').catch((error) => {
    throw fileFault(path, error)
  })
  await file.close()
}

export function lmdbReads(
  db: LmdbDatabase,
  path: string,
  { backup_mark, growing = [] }: LmdbTreeOptions = {},
): LmdbReads {
  const last_keys = newLastKeys(growing, ({ from, to }) => {
    for (const { key } of rangeOf(db, from, to, true)) return key
    return undefined
  })
  const copies = new Set<Promise<unknown>>()
  let usage = usageOf(db, path)
  let closing: Promise<void> | undefined

  function checkOpen(): void {
    if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
  }

  /** LMDB refuses reads, too, after it failed to write a meta page. */
  function readFault(error: unknown): Fault {
    checkOpen()
    return fault('store_failed', undefined, { cause: error })
  }

  async function damage(count_max: number): Promise<string[]> {
    const found: string[] = []
    for (const damaged of damagedPages(path)) {
      if (damaged === undefined) await nextTurn()
      else found.push(damaged.says)
      if (found.length === count_max) break
    }
    return found
  }

  /** A copy gets sums of its own, with which damaged pages would pass for sound ones. */
  async function copySound(target: string): Promise<number> {
    const [says] = await damage(1)
    if (says === undefined) return copyDatabase(db, target, backup_mark)
    throw fault('not_possible', `${path}: ${says}; a copy would hide it`)
  }

  async function drain(): Promise<void> {
    await Promise.allSettled(copies)
    await db.close()
  }

  return {
    get(key) {
      if (key.length === 0 || key.length > key_bytes_max) return undefined
      try {
        return last_keys.isAfter(key) ? undefined : copyOf(db.getBinaryFast(key))
      } catch (error) {
        throw readFault(error)
      }
    },
    *range(from, to, reverse) {
      try {
        yield* rangeOf(db, from, to, reverse)
      } catch (error) {
        throw readFault(error)
      }
    },
    refresh() {
      db.resetReadTxn()
      last_keys.forget()
      usage = usageOf(db, path)
    },
    freeBytes: () => freeBytesAt(path),
    usage: () => usage,
    damage: () => damage(damage_max),
    backup: async (target) => {
      checkOpen()
      const copy = copySound(target)
      copies.add(copy)
      return copy.finally(() => copies.delete(copy))
    },
    close: () => {
      closing ??= drain()
      return closing
    },
  }
}

/** Free bytes of the disk; no answer is no reason to refuse writes. */
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
 * LMDB reads each value into the same buffer, whose `length` alone says how much of it is valid. A
 * copy in Node's buffer pool costs half of one with memory of its own.
 */
function copyOf(shared: Buffer | undefined): Buffer | undefined {
  if (shared === undefined) return undefined
  const copy = Buffer.allocUnsafe(shared.length)
  copy.set(new Uint8Array(shared.buffer, shared.byteOffset, shared.length))
  return copy
}

/**
 * LMDB includes `start` and excludes `end` by default, in both directions; here `from` is included
 * and `to` excluded. A bound that is too long for a key lies directly after its longest prefix that
 * is one.
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
