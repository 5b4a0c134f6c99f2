/**
 * Opens a data file; refuses a foreign, truncated or unwritable one without a change. LMDB crashes
 * the process for a foreign file or a damaged page, so magic number and pages are checked before
 * LMDB opens the file, or those of a large file before LMDB reads them (checked-reads). The caller
 * must hold the file's lock (store/disk/file-lock).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Fault, fault } from '../../core/faults.ts'
import { fileFault, settledUninterrupted, syncFolder, syncPath } from '../disk/file-system.ts'
import { newCheckedReads } from './checked-reads.ts'
import { openingFault } from './damage.ts'
import { lmdbOptions, openDatabase } from './database.ts'
import type { LmdbReads } from './lmdb-tree.ts'
import { isZero, lockPath, prepareLockFile } from './lock-file.ts'
import { checkedPages, damaged_meta, damagedPages } from './page-sums.ts'
import { magicIn } from './pages.ts'
import { type LmdbTreeOptions, lmdbReads, quick_bytes_max } from './tree.ts'

export interface OpenLmdbOptions extends LmdbTreeOptions {
  /**
   * Whether a child process opens and reads an existing file first, because LMDB may crash it;
   * default false.
   */
  readonly probe?: boolean | undefined
  /** Comparing all pages of a larger file takes too long for an opening; default 64 MiB. */
  readonly quick_bytes?: number
}

/**
 * Creates a missing or empty file (mode 0600). Its contents are durable once this resolves, before
 * the commit log is overwritten. Frees slots of dead readers. Throws `not_a_database` for a foreign
 * or truncated file, `not_possible` for an unusable path, each with a sentence that says what to
 * do.
 */
export async function openLmdbTree(
  path: string,
  options: OpenLmdbOptions = {},
): Promise<LmdbReads> {
  const is_new = await isNewFile(path)
  if (is_new) await createFile(path)
  const lock_path = lockPath(path)
  await prepareLockFile(lock_path).catch((error) => {
    // A missing file cannot be created: the folder may be read-only.
    throw fileFault(existsSync(lock_path) ? lock_path : dirname(path), error)
  })
  const found = is_new ? {} : checkPages(path, options.quick_bytes ?? quick_bytes_max)
  try {
    if (!is_new && options.probe === true) await probe(path)
    const maxReaders = options.readers_max ?? lmdbOptions.maxReaders ?? 126
    // LMDB creates its meta pages only in a file that it may write.
    if (is_new) await (await openDatabase(path, { maxReaders })).close()
    const db = await openDatabase(path, { maxReaders, readOnly: true })
    try {
      // The system may show what the disk lacks: a new file and its name, or the last commit of a
      // process that was killed during its sync.
      await syncPath(path)
      await syncFolder(path)
    } catch (error) {
      await db.close()
      throw fileFault(path, error)
    }
    return lmdbReads(db, path, { ...options, ...found })
  } catch (error) {
    await found.checked?.close()
    throw error
  }
}

export function notOurs(path: string): Fault {
  return fault('not_a_database', `${path} is no conveyor database; name another file`)
}

/**
 * Compares all pages with their sums before LMDB trusts them, or returns checked reads of a large
 * file. Throws `not_a_database`.
 */
function checkPages(
  path: string,
  quick_bytes: number,
): Pick<LmdbTreeOptions, 'checked' | 'has_last_sums'> {
  try {
    if (statSync(path).size > quick_bytes) {
      const checked = newCheckedReads(path)
      return { checked, has_last_sums: checked.has_last_sums }
    }
    const file = openSync(path, 'r')
    try {
      const pages = checkedPages(file)
      for (const damaged of damagedPages(pages)) {
        if (damaged !== undefined) throw damaged
      }
      return { has_last_sums: pages.is_marked }
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw openingFault(path, error)
  }
}

/** LMDB creates a file with two pages of at most 64 KiB. */
const new_file_bytes_max = 2 * 65_536

/** Missing, empty, or left by a power cut before its first sync. */
async function isNewFile(path: string): Promise<boolean> {
  let file: FileHandle
  try {
    file = await open(path, 'r+')
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return true
    throw fileFault(path, error)
  }
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw fault('not_possible', `${path} is no regular file; name one`)
    const { size } = stats
    if (size === 0) return true
    const first_pages = Buffer.alloc(Math.min(size, new_file_bytes_max))
    await settledUninterrupted(() => file.read(first_pages, 0, first_pages.length, 0)).catch(
      (error) => {
        throw fileFault(path, error)
      },
    )
    const found = magicIn(first_pages)
    if (found === 'both') return false
    const is_new = size === first_pages.length && (await isUninitialised(first_pages))
    if (!is_new) throw found === 'one' ? openingFault(path, damaged_meta) : notOurs(path)
    await file.truncate(0)
    return true
  } finally {
    await file.close()
  }
}

/** Which meta pages of a file are LMDB's; `none` without a file. */
export async function magicOf(path: string): Promise<ReturnType<typeof magicIn>> {
  const file = await open(path, 'r').catch(() => undefined)
  if (file === undefined) return 'none'
  try {
    const first_pages = Buffer.alloc(new_file_bytes_max)
    const { bytesRead } = await file.read(first_pages, 0, first_pages.length, 0).catch(nothingRead)
    return magicIn(first_pages.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

const nothingRead = (): { readonly bytesRead: number } => ({ bytesRead: 0 })

const sector_bytes = 512

/**
 * Whether a power cut left these bytes of a new file before its first sync: each sector is zero, or
 * as LMDB initialises it.
 */
async function isUninitialised(bytes: Buffer): Promise<boolean> {
  // A file cut within its first sector is all zeros too.
  if (bytes.length % sector_bytes !== 0) return false
  if (isZero(bytes)) return true
  const fresh = await newFileBytes()
  if (fresh === undefined || bytes.length < fresh.length || !isZero(bytes.subarray(fresh.length)))
    return false
  for (let at = 0; at < fresh.length; at += sector_bytes) {
    const sector = bytes.subarray(at, at + sector_bytes)
    if (!isZero(sector) && !sector.equals(fresh.subarray(at, at + sector_bytes))) return false
  }
  return true
}

/** What LMDB writes into a new file; undefined if that fails. */
async function newFileBytes(): Promise<Buffer | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'conveyor-new-'))
  try {
    const path = join(folder, 'new')
    return (await exitOf(path)) === 0 ? await readFile(path) : undefined
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function createFile(path: string): Promise<void> {
  try {
    await (await open(path, 'a', 0o600)).close()
  } catch (error) {
    throw fileFault(path, error)
  }
}

async function probe(path: string): Promise<void> {
  const exit = await exitOf(path)
  if (exit === 0) return
  const end = typeof exit === 'string' ? exit : `exit ${exit}`
  const text = `${path}: it cannot be opened and mapped (${end}); look at the disk, and at limits`
  throw fault('not_possible', `${text} of memory`)
}

/** Opens the file in a child process; returns its exit code or signal. */
async function exitOf(path: string): Promise<number | string> {
  const { noSubdir, overlappingSync, maxReaders } = lmdbOptions
  const encodings = { encoding: 'binary', keyEncoding: 'binary' }
  const options = JSON.stringify({ noSubdir, overlappingSync, maxReaders, ...encodings })
  const [lmdb, file] = [import.meta.resolve('lmdb'), path].map((text) => JSON.stringify(text))
  const script = `import(${lmdb}).then(({ open }) => open(${file}, ${options}).close())`
  const child = spawn(process.execPath, ['-e', script], { stdio: 'ignore' })
  const [exit, signal] = (await once(child, 'close')) as [number | null, string | null]
  return exit ?? signal ?? 'unknown'
}
