/**
 * The data file: one LMDB file and its `-lock` file. Only this folder depends on LMDB.
 *
 * A commit is one LMDB transaction on the calling thread: LMDB writes its pages, syncs them, and
 * then writes the meta page that makes them count through a descriptor that syncs each write. A
 * failed write makes LMDB drop the whole commit. After any failed commit there is no other, because
 * the state on disk is no longer known. Several threads may open the file; only one at a time may
 * commit.
 */
import { statfsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { dirname } from 'node:path'
import { type Key, type KeyRange, keysOfType } from '../../codec/keys.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { isCopy, markAsOwn } from '../commit-log/log-mark.ts'
import { fileFault, isFull, uninterrupted } from '../file-system.ts'
import type { Entry } from '../store.ts'
import { key_bytes_max } from '../tree.ts'
import { copyDatabase } from './backup.ts'
import type { CheckedReads } from './checked-reads.ts'
import { damageOf } from './damage.ts'
import { type LmdbDatabase, newWriter, openDatabase, statsOf } from './database.ts'
import { newLastKeys } from './last-keys.ts'
import type { FileUsage, LmdbTree } from './lmdb-tree.ts'
import { newSumsWriter } from './sums-writer.ts'

export interface LmdbTreeOptions {
  /** Slots for readers, of this process and of LMDB's own tools; 126 by default. */
  readonly readers_max?: number
  /** Keys that belong to one file alone: a copy that has them ignores them. */
  readonly not_copied?: readonly Key[]
  /** Families whose new keys mostly come last; they begin with a character of their own. */
  readonly growing?: readonly KeyRange[]
  /** A larger file gets its first sums of pages elsewhere; that takes time. */
  readonly sums_bytes_max?: number
  /** Reads of a file that is compared with its sums meanwhile; the tree closes them. */
  readonly checked?: CheckedReads | undefined
}

/** To read all of a larger file takes longer than an opening may. */
export const quick_bytes_max = 64 * 1024 * 1024

/** No scan of the entries finds them. */
const sums_keys = keysOfType('page_sum')

/** Of a file with more damaged pages, no more are told. */
const damage_max = 100

/** A disk with less than this is full. */
const full_disk_bytes = 4 * 1024 * 1024

/** Another handle of a file that this process has checked with `openLmdbTree`. */
export async function attachLmdbTree(path: string): Promise<LmdbTree> {
  // LMDB kills the process if it cannot open the file, for one when no more may be open.
  await (
    await open(path, 'r+').catch((error) => {
      throw fileFault(path, error)
    })
  ).close()
  return lmdbTree(await openDatabase(path), path, { sums_bytes_max: Number.POSITIVE_INFINITY })
}

export function lmdbTree(db: LmdbDatabase, path: string, options: LmdbTreeOptions = {}): LmdbTree {
  const { not_copied = [], growing = [], sums_bytes_max = quick_bytes_max } = options
  const writer = newWriter(db)
  const sums = newSumsWriter(path)
  let hidden = not_copied.length > 0 && isCopy(path) ? not_copied : []
  let checked = options.checked
  const last_keys = newLastKeys(growing, ({ from, to }) => {
    for (const { key } of entriesIn(from, to, true)) return key
    return undefined
  })
  const copies = new Set<Promise<unknown>>()
  let usage = usageOf(db, path)
  let broken: unknown
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
      for (const entry of entries ?? rangeOf(db, part.from, part.to, reverse)) {
        if (!hidden.includes(entry.key)) yield entry
      }
    }
  }

  function checkOpen(): void {
    if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
  }

  /** LMDB refuses reads, too, after it failed to write a meta page. */
  function readFault(error: unknown): Fault {
    checkOpen()
    return isFault(error) ? error : fault('store_failed', undefined, { cause: error })
  }

  function freeBytes(): number {
    try {
      const { bavail, bsize } = statfsSync(dirname(path))
      return bavail * bsize
    } catch {
      // No answer is no reason to refuse writes.
      return Number.POSITIVE_INFINITY
    }
  }

  /** LMDB calls it an I/O error that a disk took a part of a write, because that made it full. */
  function isShortWrite(error: unknown): boolean {
    const is_io = (error as { code?: unknown } | null)?.code === system.errno.EIO
    return is_io && freeBytes() < full_disk_bytes
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
        if (last_keys.isAfter(key) || hidden.includes(key)) return undefined
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
    commit(fill, goes_on = false) {
      checkOpen()
      if (broken !== undefined) throw broken
      try {
        if (!goes_on) sums.prepare(sums_bytes_max)
        const put = (): void => {
          for (const key of hidden) writer.put(key, null)
          fill(writer)
          if (!goes_on) sums.put(writer)
        }
        // LMDB writes again what was interrupted, but a sync only with its whole commit.
        uninterrupted(() => db.transactionSync(put))
        if (hidden.length > 0) markAsOwn(path)
      } catch (error) {
        // The last commit stands if its successor's pages could not be written.
        if (isFull(error) || isShortWrite(error))
          throw fault('no_space', undefined, { cause: error })
        broken = error
        throw error
      } finally {
        writer.release()
      }
      hidden = []
      if (!goes_on) sums.mark()
      checked?.refresh()
      last_keys.forget()
      usage = usageOf(db, path)
    },
    refresh() {
      db.resetReadTxn()
      checked?.refresh()
      last_keys.forget()
      usage = usageOf(db, path)
    },
    freeBytes,
    usage: () => usage,
    damage: () => damageOf(path, damage_max),
    verified: () => checked?.verified,
    backup: async (target) => {
      checkOpen()
      const copy = copyDatabase(path, target)
      copies.add(copy)
      return copy.finally(() => copies.delete(copy))
    },
    close: () => {
      closing ??= drain()
      return closing
    },
  }
}

/** Two meta pages, and about as many for the list of free pages. */
const other_pages = 4

function usageOf(db: LmdbDatabase, path: string): FileUsage {
  const { pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages } = statsOf(db)
  const used_pages = treeBranchPageCount + treeLeafPageCount + overflowPages + other_pages
  const used_bytes = used_pages * pageSize
  const { size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return { used_bytes, reusable_bytes: Math.max(0, size - used_bytes) }
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
