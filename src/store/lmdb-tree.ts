/**
 * The tree on disk: one LMDB file and its `-lock` beside it. With its neighbours lmdb-*.ts the only
 * code that knows LMDB.
 *
 * A commit is one batch: LMDB's own thread, or this one where it is opened `in_place`, works it in,
 * writes its pages, syncs them, and then writes the head that makes them count through a handle
 * that syncs each write. Only then does the promise resolve, and reads see it at once. A write that
 * fails makes LMDB drop the whole batch.
 * Whatever ends a commit badly, no other follows on this tree: the state on disk is no longer known
 * for sure.
 *
 * Nothing here waits for the lock that keeps others away; take it first (store/lock).
 */
import { open as openHandle, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Key } from '../bytes/keys.ts'
import { type Fault, fault } from '../words/faults.ts'
import { fileFault } from './file-faults.ts'
import { checkKeySize, key_bytes_max } from './key-size.ts'
import { copyLmdb } from './lmdb-backup.ts'
import type { Fill } from './lmdb-batch.ts'
import { commitInPlace, reportedCommit } from './lmdb-commit.ts'
import { judgeFile } from './lmdb-file.ts'
import { type LmdbDatabase, lmdbOptions } from './lmdb-options.ts'
import type { Entry, Tree, Writes } from './store.ts'

export interface LmdbTree extends Tree {
  /** As `commit`, of what `fill` puts into the batch; its keys must be of a size that can be. */
  commitBatch(fill: Fill): Promise<void>
  /** Lets reads see what another thread has committed. */
  refresh(): void
}

export interface LmdbTreeOptions {
  /** Slots for readers, of this process and of LMDB's own tools; 126 unless told. */
  readonly readers_max?: number
  /** What a copy must not have, for it belongs to this file alone. */
  readonly not_copied?: readonly Key[]
  /** Whether commits block the calling thread: for one that has nothing else to do. */
  readonly in_place?: boolean
}

/**
 * Opens the file at `path`, which is made (mode 0600) where it is missing or empty. Throws
 * `not_a_database` for a file that is none or is cut short and `not_possible` for a path that
 * cannot be used, each with one sentence that says what to do. Slots of dead readers are freed.
 */
export async function openLmdbTree(path: string, options: LmdbTreeOptions = {}): Promise<LmdbTree> {
  const found = await judgeFile(path)
  if (found === 'new') await makeFile(path)
  await demandRoom(path)
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

const lock_bytes_about = 1024 * 1024

/**
 * LMDB maps the file beside the data before its pages are there: on a full disk the first touch of
 * one would end the process.
 */
async function demandRoom(path: string): Promise<void> {
  const lock = await stat(`${path}-lock`).catch(() => undefined)
  if (lock !== undefined && lock.blocks * 512 >= lock.size) return
  const { bavail, bsize } = await statfs(dirname(path))
  if (bavail * bsize < lock_bytes_about) throw fileFault(path, { code: 'ENOSPC' })
}

/** The tree over a database that was opened with `lmdbOptions`, or by a test with worse ones. */
export function treeOver(
  db: LmdbDatabase,
  path: string,
  { not_copied = [], in_place = false }: LmdbTreeOptions = {},
): LmdbTree {
  const commit = in_place ? commitInPlace(db) : reportedCommit(db)
  const pending = new Set<Promise<unknown>>()
  let broken: unknown
  let closing: Promise<void> | undefined

  function tracked<T>(work: Promise<T>): Promise<T> {
    const settled = work.then(
      () => {},
      () => {},
    )
    pending.add(settled)
    void settled.then(() => pending.delete(settled))
    return work
  }

  async function commitBatch(fill: Fill): Promise<void> {
    checkOpen()
    if (broken !== undefined) throw broken
    try {
      await commit(fill)
    } catch (error) {
      broken = error
      throw error
    }
  }

  function checkOpen(): void {
    if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
  }

  /** When LMDB fails to write its head it refuses to read too. */
  function readFault(error: unknown): Fault {
    checkOpen()
    return fault('store_failed', undefined, { cause: error })
  }

  async function drain(): Promise<void> {
    while (pending.size > 0) await Promise.all(pending)
    if (!commit.isStuck()) await db.close()
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
    commit: async (writes) => {
      checkOpen()
      for (const key of writes.keys()) checkKeySize(key)
      return tracked(commitBatch(putting(writes)))
    },
    commitBatch: (fill) => tracked(commitBatch(fill)),
    freeBytes: async () => {
      const { bavail, bsize } = await statfs(dirname(path))
      return bavail * bsize
    },
    backup: async (target) => {
      checkOpen()
      return tracked(copyLmdb(db, target, not_copied))
    },
    refresh: () => db.resetReadTxn(),
    close: () => {
      closing ??= drain()
      return closing
    },
  }
}

function putting(writes: Writes): Fill {
  return (batch) => {
    for (const [key, value] of writes) batch.set(key, value)
  }
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
