/**
 * The data file: one LMDB file and its `-lock` beside it. With its neighbours lmdb-*.ts the only
 * code that knows LMDB.
 *
 * A commit is one transaction of LMDB on the calling thread: it writes its pages, syncs them, and
 * then writes the head that makes them count through a handle that syncs each write. A write that
 * fails makes LMDB drop all of it. Whatever ends a commit badly, no other follows on this tree: the
 * state on disk is no longer known for sure. Several threads may have a file open, and only one of
 * them may commit at a time.
 *
 * Nothing here waits for the lock that keeps others away; take it first (store/file-lock).
 */
import { constants, statfsSync, statSync } from 'node:fs'
import { open as openHandle } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { dirname } from 'node:path'
import type { Key } from '../../codec/keys.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { fileFault } from '../file-system.ts'
import { key_bytes_max } from '../key-size.ts'
import type { Entry, Tree } from '../store.ts'
import { copyLmdb } from './backup.ts'
import { judgeFile } from './file.ts'
import { type LmdbDatabase, lmdbOptions } from './options.ts'
import { type Fill, newBatch } from './transaction.ts'

export interface LmdbTree extends Pick<Tree, 'get' | 'range' | 'backup' | 'close'> {
  /**
   * On disk when it returns; keys must be of a size that can be. Throws `no_space` where LMDB found
   * the disk full and has written nothing, or its reason.
   */
  commit(fill: Fill): void
  /** Lets reads see what another thread has committed. */
  refresh(): void
  /** Of the disk it is on. */
  freeBytes(): number
  usage(): FileUsage
}

/** Of a file as it was at the last commit or `refresh`. */
export interface FileUsage {
  readonly used_bytes: number
  /** Of pages that will be written again. */
  readonly reusable_bytes: number
}

export interface LmdbTreeOptions {
  /** Slots for readers, of this process and of LMDB's own tools; 126 unless told. */
  readonly readers_max?: number
  /** What a copy must not have, for it belongs to this file alone. */
  readonly not_copied?: readonly Key[]
  /** Tries a file that is there first, and throws where it cannot be opened (see lmdb-probe). */
  readonly probe?: ((path: string) => Promise<void>) | undefined
}

/**
 * Opens the file at `path`, which is made (mode 0600) where it is missing or empty. Throws
 * `not_a_database` for a file that is none or is cut short and `not_possible` for a path that
 * cannot be used, each with one sentence that says what to do. Slots of dead readers are freed.
 */
export async function openLmdbTree(path: string, options: LmdbTreeOptions = {}): Promise<LmdbTree> {
  const found = await judgeFile(path)
  if (found === 'new') await makeFile(path)
  await prepareLock(`${path}-lock`)
  if (found === 'there') await options.probe?.(path)
  const { open } = await import('lmdb')
  let db: LmdbDatabase
  try {
    const { readers_max: maxReaders = 126 } = options
    db = open<Buffer, Key>(path, { ...lmdbOptions, maxReaders })
  } catch (error) {
    throw fileFault(path, error)
  }
  if (found === 'new') await syncNew(path)
  return treeOver(db, path, options)
}

const lock_page_bytes = 4096
const lock_pages = 3

/**
 * LMDB ends the process where it cannot open the file beside the data. It maps that file, and where
 * a page of it is not there yet and the disk is full, the first touch is the last; so all of them
 * are made here, while nobody else has the data.
 */
async function prepareLock(lock_path: string): Promise<void> {
  try {
    const { O_RDWR, O_CREAT } = constants
    const lock = await openHandle(lock_path, O_RDWR | O_CREAT, 0o600)
    try {
      const page = Buffer.alloc(lock_page_bytes)
      const zeros = Buffer.alloc(lock_page_bytes)
      for (let at = 0; at < lock_pages * lock_page_bytes; at += lock_page_bytes) {
        const { bytesRead } = await lock.read(page.fill(0), 0, lock_page_bytes, at)
        if (bytesRead === lock_page_bytes && !page.equals(zeros)) continue
        const { bytesWritten } = await lock.write(page, 0, lock_page_bytes, at)
        if (bytesWritten < lock_page_bytes) throw fileFault(lock_path, { code: 'ENOSPC' })
      }
    } finally {
      await lock.close()
    }
  } catch (error) {
    throw isFault(error) ? error : fileFault(lock_path, error)
  }
}

/** The tree over a database that was opened with `lmdbOptions`, or by a test with worse ones. */
export function treeOver(
  db: LmdbDatabase,
  path: string,
  { not_copied = [] }: LmdbTreeOptions = {},
): LmdbTree {
  const batch = newBatch(db)
  const copies = new Set<Promise<unknown>>()
  let usage = usageOf(db, path)
  let broken: unknown
  let closing: Promise<void> | undefined

  function checkOpen(): void {
    if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
  }

  /** When LMDB fails to write its head it refuses to read too. */
  function readFault(error: unknown): Fault {
    checkOpen()
    return fault('store_failed', undefined, { cause: error })
  }

  async function drain(): Promise<void> {
    await Promise.allSettled(copies)
    await db.close()
  }

  return {
    get(key) {
      if (key.length === 0 || key.length > key_bytes_max) return undefined
      try {
        return copyOf(db.getBinaryFast(key))
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
    commit(fill) {
      checkOpen()
      if (broken !== undefined) throw broken
      try {
        db.transactionSync(() => fill(batch))
      } catch (error) {
        if (isFull(error)) throw fault('no_space', undefined, { cause: error })
        broken = error
        throw error
      } finally {
        batch.letGo()
      }
      usage = usageOf(db, path)
    },
    refresh() {
      db.resetReadTxn()
      usage = usageOf(db, path)
    },
    freeBytes() {
      try {
        const { bavail, bsize } = statfsSync(dirname(path))
        return bavail * bsize
      } catch {
        // What cannot be asked is no reason to refuse.
        return Number.POSITIVE_INFINITY
      }
    },
    usage: () => usage,
    backup: async (target) => {
      checkOpen()
      const copy = copyLmdb(db, target, not_copied)
      copies.add(copy)
      return copy.finally(() => copies.delete(copy))
    },
    close: () => {
      closing ??= drain()
      return closing
    },
  }
}

/** Pages that could not be written are none: the commit before stands. */
function isFull(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === system.errno.ENOSPC
}

interface LmdbStats {
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}

function usageOf(db: LmdbDatabase, path: string): FileUsage {
  const { pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages } =
    db.getStats() as LmdbStats
  // Two heads, and about as many for what it notes of free pages.
  const used_pages = treeBranchPageCount + treeLeafPageCount + overflowPages + 4
  const used_bytes = used_pages * pageSize
  const { size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return { used_bytes, reusable_bytes: Math.max(0, size - used_bytes) }
}

/**
 * LMDB puts each value into the same buffer, whose `length` alone says how much of it is meant.
 * Copied into Node's pool, a value costs half of one with memory of its own.
 */
function copyOf(shared: Buffer | undefined): Buffer | undefined {
  if (shared === undefined) return undefined
  const copy = Buffer.allocUnsafe(shared.length)
  copy.set(new Uint8Array(shared.buffer, shared.byteOffset, shared.length))
  return copy
}

/**
 * LMDB starts a range at `start` and ends it before `end` unless told otherwise, in whichever
 * direction it goes; ours has `from` and lacks `to` in both. A bound too long for a key lies
 * directly behind its longest beginning that is one.
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

async function makeFile(path: string): Promise<void> {
  try {
    await (await openHandle(path, 'a', 0o600)).close()
  } catch (error) {
    throw fileFault(path, error)
  }
}

/** A new file is there after a power cut: its first pages and its name in the folder. */
async function syncNew(path: string): Promise<void> {
  for (const place of [path, dirname(path)]) {
    const handle = await openHandle(place, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  }
}
