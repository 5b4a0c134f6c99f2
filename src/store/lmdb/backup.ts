/**
 * A copy of the durable state while the store goes on. It is made in a private folder beside the
 * target, synced, opened and read completely, and only then gets its name. A failure leaves nothing
 * behind, and an existing file is never replaced.
 */
import { chmod, link, lstat, open, rename, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { nextTurn } from '../../core/clock.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { fileFault, syncFolder, syncPath, writeFault } from '../file-system.ts'
import { makePrivateFolder } from '../private-folder.ts'
import { key_bytes_max } from '../tree.ts'
import { type LmdbDatabase, openDatabase, statsOf } from './database.ts'
import { prepareLockFile } from './lock-file.ts'
import { readMark, writeMark } from './marks.ts'

/** Entries read from the copy before the event loop gets a turn. */
const slice_entries = 512
const last_key = '\xff'.repeat(key_bytes_max)

/**
 * Copies the last durable state to a new file at `path` (mode 0600), which gets this record `log`;
 * returns its size in bytes. Throws `not_possible` if the file exists, or if the copy cannot be
 * written or read, and `no_space` if the disk of the copy is full.
 */
export async function copyDatabase(
  db: LmdbDatabase,
  path: string,
  log_mark: Buffer | undefined,
): Promise<number> {
  const target = resolve(path)
  if (await exists(target)) throw taken(path)
  const folder = await makePrivateFolder(target, 'backup')
  try {
    const copy = join(folder.path, 'copy')
    await db.backup(copy, false)
    await chmod(copy, 0o600)
    await prepareLockFile(`${copy}-lock`)
    if (log_mark !== undefined) await putLogMark(copy, statsOf(db).pageSize, log_mark)
    await syncPath(copy)
    await readCompletely(copy)
    await giveName(copy, target, path)
    await syncFolder(target)
    return (await stat(target)).size
  } catch (error) {
    throw isFault(error) ? error : writeFault(path, error)
  } finally {
    await folder.remove()
  }
}

/** Without LMDB, whose failed writes may corrupt the memory of their process. */
async function putLogMark(copy: string, page_bytes: number, payload: Buffer): Promise<void> {
  const file = await open(copy, 'r+')
  try {
    const { generation = 0 } = readMark(file.fd, page_bytes, 'log') ?? {}
    writeMark(file.fd, page_bytes, 'log', { generation: generation + 1, payload })
  } finally {
    await file.close()
  }
}

/** Reads every entry, and so every page in use. */
async function readCompletely(copy: string): Promise<void> {
  const db = await openDatabase(copy, { readOnly: true })
  try {
    const { entryCount } = statsOf(db)
    let count = 0
    for (const _ of db.getRange({ start: '', end: last_key, inclusiveEnd: true })) {
      if (++count % slice_entries === 0) await nextTurn()
    }
    if (count !== entryCount) throw new Error(`${count} of ${entryCount} entries can be read`)
  } finally {
    await db.close()
  }
}

/** A link fails if the name is taken; a file system without links can only rename. */
async function giveName(copy: string, target: string, path: string): Promise<void> {
  try {
    await link(copy, target)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EEXIST') throw taken(path)
    if (await exists(target)) throw taken(path)
    await rename(copy, target)
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
