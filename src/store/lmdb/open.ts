/**
 * Opens a data file, and refuses one that LMDB cannot take: a foreign file, a truncated one, or one
 * that cannot be written. Nothing about a refused file is changed.
 *
 * LMDB kills the process for a file that is not its own, and for a page in use after the end of the
 * file. So the file's magic number is checked before LMDB opens it, and a file that is shorter than
 * LMDB's page count is first read by a process of its own. The caller must hold the file's lock
 * (store/file-lock).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type FileHandle, mkdtemp, open, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Fault, fault } from '../../core/faults.ts'
import { fileFault, settledUninterrupted, syncFolder, syncPath } from '../file-system.ts'
import { type LmdbDatabase, lmdbOptions, openDatabase, statsOf } from './database.ts'
import type { LmdbTree } from './lmdb-tree.ts'
import { isZero, prepareLockFile } from './lock-file.ts'
import { firstDamage } from './page-sums.ts'
import { type LmdbTreeOptions, lmdbTree } from './tree.ts'

export interface OpenLmdbOptions extends LmdbTreeOptions {
  /**
   * Whether a process of its own opens and reads an existing file first, because LMDB may kill it;
   * false by default.
   */
  readonly probe?: boolean | undefined
}

/**
 * The file is created (mode 0600) if missing or empty. What it holds is durable once this resolves,
 * as whoever writes over the commit log needs it. Throws `not_a_database` for a foreign or
 * truncated file and `not_possible` for a path that cannot be used, each with a sentence that says
 * what to do. Slots of dead readers are freed.
 */
export async function openLmdbTree(path: string, options: OpenLmdbOptions = {}): Promise<LmdbTree> {
  const is_new = await isNewFile(path)
  if (is_new) await createFile(path)
  const lock_path = `${path}-lock`
  await prepareLockFile(lock_path).catch((error) => {
    throw fileFault(lock_path, error)
  })
  if (!is_new) checkPages(path)
  if (!is_new && options.probe === true) await probe(path)
  const maxReaders = options.readers_max ?? lmdbOptions.maxReaders ?? 126
  let db = await openDatabase(path, { maxReaders })
  try {
    // The system may show what the disk lacks: a new file and its name, or the last commit of a
    // process that was killed in the sync of it.
    await syncPath(path)
    await syncFolder(path)
  } catch (error) {
    await db.close()
    throw fileFault(path, error)
  }
  if (!is_new) {
    const is_short = await endsEarly(db, path)
    if (is_short || options.probe === true) {
      await db.close()
      if (!(await canRead(path))) throw is_short ? endsTooEarly(path) : cannotBeRead(path)
      db = await openDatabase(path, { maxReaders })
    }
  }
  return lmdbTree(db, path, options)
}

/**
 * Opens a file to read it and leaves it as it is; LMDB's `-lock` file, too, if there is none now.
 * Throws as `openLmdbTree`. A process of its own opens the file first.
 */
export async function openLmdbReadOnly(
  path: string,
  options: LmdbTreeOptions = {},
): Promise<LmdbTree> {
  if (!(await hasMagic(path))) throw notOurs(path)
  checkPages(path)
  const lock_path = `${path}-lock`
  const has_lock_file = existsSync(lock_path)
  const dispose = async (): Promise<void> => {
    if (!has_lock_file) await rm(lock_path, { force: true })
  }
  try {
    await probe(path, { readOnly: true })
    const db = await openDatabase(path, { readOnly: true })
    const tree = lmdbTree(db, path, options)
    const close = (): Promise<void> => tree.close().then(dispose)
    if ((await endsEarly(db, path)) && !(await canRead(path, { readOnly: true }))) {
      await close()
      throw endsTooEarly(path)
    }
    return { ...tree, close }
  } catch (error) {
    await dispose()
    throw error
  }
}

function notOurs(path: string): Fault {
  return fault('not_a_database', `${path} is no conveyor database; name another file`)
}

/** Before LMDB trusts a byte of it. Of a larger file `check` and `backup` compare the pages. */
function checkPages(path: string): void {
  const damaged = firstDamage(path)
  if (damaged === undefined) return
  if (damaged.is_missing) throw endsTooEarly(path)
  throw fault('not_a_database', `${path}: ${damaged.says}; run \`npx conveyor restore BACKUP\``)
}

function cannotBeRead(path: string): Fault {
  return fault('not_a_database', `${path} is damaged: reading it ends the process; take another`)
}

function endsTooEarly(path: string): Fault {
  return fault('not_a_database', `${path} ends too early; run \`npx conveyor restore BACKUP\``)
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
    if (areMagic(first_pages)) return false
    const is_new = size === first_pages.length && (await isUninitialised(first_pages))
    if (!is_new) throw notOurs(path)
    await file.truncate(0)
    return true
  } finally {
    await file.close()
  }
}

/** Magic number and version, little-endian, after the header of a page. */
const magic = Buffer.from('dec0efbe02000000', 'hex')
const magic_at = 24
/** The second page begins at the page size, which is the one of the system that made the file. */
const page_sizes = [4_096, 8_192, 16_384, 32_768, 65_536]

/** Whether it is a file of LMDB; false for one that does not exist. */
export async function hasMagic(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch(() => undefined)
  if (file === undefined) return false
  try {
    const first_pages = Buffer.alloc(new_file_bytes_max)
    const { bytesRead } = await file.read(first_pages, 0, first_pages.length, 0).catch(nothingRead)
    return areMagic(first_pages.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

const nothingRead = (): { readonly bytesRead: number } => ({ bytesRead: 0 })

/** Whether both meta pages have LMDB's magic. */
function areMagic(bytes: Buffer): boolean {
  return hasMagicAt(bytes, 0) && page_sizes.some((page_bytes) => hasMagicAt(bytes, page_bytes))
}

function hasMagicAt(bytes: Buffer, page_at: number): boolean {
  const at = page_at + magic_at
  return bytes.subarray(at, at + magic.length).equals(magic)
}

const sector_bytes = 512

/**
 * Whether a power cut left these bytes of a new file before its first sync: each sector is zero, or
 * what LMDB writes into a new file.
 */
async function isUninitialised(bytes: Buffer): Promise<boolean> {
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

/** What LMDB writes into a new file; undefined if it cannot make one. */
async function newFileBytes(): Promise<Buffer | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'conveyor-new-'))
  try {
    const path = join(folder, 'new')
    return (await exitOf(path, '')) === 0 ? await readFile(path) : undefined
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

/** Whether the file ends before LMDB's last page. It may: free pages need not have been written. */
async function endsEarly(db: LmdbDatabase, path: string): Promise<boolean> {
  const { lastPageNumber, pageSize } = statsOf(db)
  return (await stat(path)).size < (lastPageNumber + 1) * pageSize
}

async function probe(path: string, how: How = {}): Promise<void> {
  const exit = await exitOf(path, '', how)
  if (exit === 0) return
  const end = typeof exit === 'string' ? exit : `exit ${exit}`
  const text = `${path}: it cannot be opened and mapped (${end}); look at the disk, and at limits`
  throw fault('not_possible', `${text} of memory`)
}

interface How {
  readonly readOnly?: boolean
}

/** Touches the pages of all entries, and those of the free list that a write needs first. */
async function canRead(path: string, how: How = {}): Promise<boolean> {
  const read = 'for (const _ of db.getRange({}));'
  const write = `db.transactionSync(() => { db.putSync(Buffer.from('a'), ''); return ABORT });`
  return (await exitOf(path, how.readOnly === true ? read : read + write, how)) === 0
}

/** Opens the file in a process of its own and runs `code` on `db`; returns exit code or signal. */
async function exitOf(path: string, code: string, how: How = {}): Promise<number | string> {
  const { noSubdir, overlappingSync, maxReaders } = lmdbOptions
  const encodings = { encoding: 'binary', keyEncoding: 'binary' }
  const options = JSON.stringify({ noSubdir, overlappingSync, maxReaders, ...encodings, ...how })
  const [lmdb, file] = [import.meta.resolve('lmdb'), path].map((text) => JSON.stringify(text))
  const script =
    `import(${lmdb}).then(async ({ open, ABORT }) => {` +
    `const db = open(${file}, ${options}); ${code} await db.close() })`
  const child = spawn(process.execPath, ['-e', script], { stdio: 'ignore' })
  const [exit, signal] = (await once(child, 'close')) as [number | null, string | null]
  return exit ?? signal ?? 'unknown'
}
