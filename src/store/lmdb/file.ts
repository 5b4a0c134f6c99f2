/**
 * Judges a data file before LMDB touches it, and reads one key of a file that another holds.
 *
 * A file that is no database, that ends early or that cannot be written is refused with one
 * sentence, and nothing about it is changed. Neither function opens LMDB, takes a lock or makes a
 * file.
 */
import { type FileHandle, open } from 'node:fs/promises'
import type { Key } from '../../codec/keys.ts'
import { fault } from '../../core/faults.ts'
import { fileFault } from '../file-system.ts'
import { findValue, hasItsPages, isUnborn, readSnapshot, type Snapshot } from './pages.ts'

/** LMDB writes two pages of at most 64 KiB before it is first synced. */
const unsynced_bytes_max = 2 * 65_536
const tries_max = 100

/**
 * Whether `path` is `new` (missing, empty, or left by a power cut before its first sync) or
 * `there`. Throws `not_a_database` for a file that is none or is cut short, `not_possible` for a
 * path that cannot be read and written. Nobody may write the file meanwhile.
 */
export async function judgeFile(path: string): Promise<'new' | 'there'> {
  let file: FileHandle
  try {
    file = await open(path, 'r+')
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return 'new'
    throw fileFault(path, error)
  }
  try {
    const { size } = await statOfFile(path, file)
    if (size === 0) return 'new'
    const at = await readSnapshot(file)
    if (at === undefined) {
      if (!(await isLeftUnborn(file, size))) throw stranger(path)
      await file.truncate(0)
      return 'new'
    }
    if (at.unsafe) throw stranger(path)
    if (!(await hasItsPages(file, at, size))) {
      throw fault('not_a_database', `${path} ends too early; put a backup in its place`)
    }
    return 'there'
  } finally {
    await file.close()
  }
}

/**
 * The value of one key in the newest state of a file, or undefined where there is no such file, no
 * database in it or no such key. Others may write the file meanwhile: LMDB keeps the pages of a
 * state for one commit more, so what was read counts unless two have come. A path that cannot be
 * read throws `not_possible`; so does a file that is written too fast.
 */
export async function peekLmdb(path: string, key: Key): Promise<Buffer | undefined> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined
    throw fileFault(path, error)
  }
  try {
    await statOfFile(path, file)
    for (let tries = 0; tries < tries_max; tries++) {
      const before = await steadySnapshot(file)
      if (before === undefined) return undefined
      let value: Buffer | undefined
      let failure: unknown
      try {
        value = await findValue(file, before, key)
      } catch (error) {
        failure = error
      }
      const after = await steadySnapshot(file)
      if (after === undefined || after.transaction > before.transaction + 1) continue
      if (failure === undefined) return value
      throw fault('not_a_database', `${path} is damaged; run a check`, { cause: failure })
    }
    throw fault('not_possible', `${path} changes too fast to be read from outside; try again`)
  } finally {
    await file.close()
  }
}

/** A state that came out the same twice, so that no half-written head was read. */
async function steadySnapshot(file: FileHandle): Promise<Snapshot | undefined> {
  let last = await readSnapshot(file)
  for (;;) {
    const again = await readSnapshot(file)
    if (JSON.stringify(again) === JSON.stringify(last)) return again
    last = again
  }
}

async function statOfFile(path: string, file: FileHandle): Promise<{ size: number }> {
  const stat = await file.stat()
  if (stat.isFile()) return stat
  throw fault('not_possible', `${path} is no regular file; name one`)
}

async function isLeftUnborn(file: FileHandle, size: number): Promise<boolean> {
  return size <= unsynced_bytes_max && isUnborn(await file.readFile())
}

function stranger(path: string): Error {
  return fault('not_a_database', `${path} is no conveyor database; name another file`)
}
