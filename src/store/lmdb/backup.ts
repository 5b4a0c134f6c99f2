/**
 * A copy of the durable state while the store goes on: made in a folder of its own beside the
 * target (so that nobody else can read it half-made), synced, opened and read through, and only
 * then given its name. Whatever fails, nothing is left behind and no file is ever replaced.
 */
import { chmod, link, lstat, mkdtemp, open as openHandle, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Key } from '../../codec/keys.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { fileFault } from '../file-system.ts'
import { key_bytes_max } from '../key-size.ts'
import { type LmdbDatabase, lmdbOptions } from './options.ts'

/** Entries read from the copy before others get a turn. */
const slice_entries = 512
const last_key = '\xff'.repeat(key_bytes_max)

/**
 * Copies the newest durable state but `left_out` to `path` (mode 0600), which must not exist;
 * answers its bytes. Throws `not_possible` when it does, or when the copy cannot be made or read.
 */
export async function copyLmdb(
  db: LmdbDatabase,
  path: string,
  left_out: readonly Key[],
): Promise<number> {
  const target = resolve(path)
  if (await exists(target)) throw taken(path)
  let folder: string
  try {
    folder = await mkdtemp(join(dirname(target), '.backup-'))
  } catch (error) {
    throw fileFault(path, error)
  }
  try {
    const copy = join(folder, 'copy')
    await db.backup(copy, false)
    await chmod(copy, 0o600)
    await leaveOut(copy, left_out)
    await sync(copy)
    await readThrough(copy)
    await nameIt(copy, target, path)
    await sync(dirname(target))
    return (await stat(target)).size
  } catch (error) {
    throw isFault(error) ? error : notMade(path, error)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function leaveOut(copy: string, keys: readonly Key[]): Promise<void> {
  const { open } = await import('lmdb')
  const db: LmdbDatabase = open(copy, lmdbOptions)
  try {
    for (const key of keys) if (db.doesExist(key)) db.removeSync(key)
  } finally {
    await db.close()
  }
}

/** Reads every entry, so that every page in use is there and is what it should be. */
async function readThrough(copy: string): Promise<void> {
  const { open } = await import('lmdb')
  const db: LmdbDatabase = open(copy, { ...lmdbOptions, readOnly: true })
  try {
    const { entryCount } = db.getStats() as { entryCount: number }
    let count = 0
    for (const _ of db.getRange({ start: '', end: last_key, inclusiveEnd: true })) {
      if (++count % slice_entries === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    if (count !== entryCount) throw new Error(`${count} of ${entryCount} entries can be read`)
  } finally {
    await db.close()
  }
}

/**
 * Gives the copy its name unless the name is taken; a file system without links can only move it.
 */
async function nameIt(copy: string, target: string, path: string): Promise<void> {
  try {
    await link(copy, target)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EEXIST') throw taken(path)
    if (await exists(target)) throw taken(path)
    await rename(copy, target)
  }
}

async function sync(place: string): Promise<void> {
  const handle = await openHandle(place, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return false
    throw fileFault(path, error)
  }
}

function taken(path: string): Fault {
  return fault('not_possible', `${path} exists already; name a file that does not`)
}

function notMade(path: string, error: unknown): Fault {
  const says = error instanceof Error ? error.message : error
  return fault('not_possible', `${path} could not be written (${says})`, { cause: error })
}
