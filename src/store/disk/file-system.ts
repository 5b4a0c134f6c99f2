/** System errors of files as sentences that say what to do, folder syncs, and file modes. */
import { open, stat } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { dirname } from 'node:path'
import { type Fault, fault } from '../../core/faults.ts'

const sentences: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist; create it first',
  ENOTDIR: 'a part of the path is no folder; correct the path',
  EISDIR: 'it is a folder; name a file in it',
  EACCES: 'this user may not read and write it; change its owner or mode',
  EPERM: 'this user may not read and write it; change its owner or mode',
  EROFS: 'it lies on a read-only file system; move it to one that can be written',
  ENAMETOOLONG: 'the path is too long; choose a shorter one',
  EMFILE: 'this process has too many open files; raise its limit',
  ENOSPC: 'the disk is full; make room',
}

/** As named by Node, by faults and by LMDB. */
const full_codes: readonly unknown[] = [
  ...['ENOSPC', 'EDQUOT', 'no_space'],
  ...[system.errno.ENOSPC, system.errno.EDQUOT],
]

/** A `not_possible` for a failed opening of `path`. */
export function fileFault(path: string, error: unknown): Fault {
  const code = (error as { code?: unknown } | null)?.code
  const sentence = typeof code === 'string' ? sentences[code] : undefined
  const text = sentence ?? `it cannot be opened (${error instanceof Error ? error.message : error})`
  return fault('not_possible', `${path}: ${text}`, { cause: error })
}

/**
 * A `not_possible` for an error of the system or of LMDB, whose codes are numbers; any other error
 * as it is.
 */
export function openingError(path: string, error: unknown): unknown {
  const { code, syscall } = (error ?? {}) as { code?: unknown; syscall?: unknown }
  return typeof code === 'number' || syscall !== undefined ? fileFault(path, error) : error
}

/** For a new file that cannot be written: `no_space`, or else `not_possible`. */
export function writeFault(path: string, error: unknown): Fault {
  const text = error instanceof Error ? error.message : String(error)
  // LMDB has the system's text, and its number or none.
  return isFull(error) || /no space left/i.test(text)
    ? fault('no_space', `${path}: the disk is full; make room, nothing was left`, { cause: error })
    : fault('not_possible', `${path} could not be written (${text})`, { cause: error })
}

/** Whether the disk, or this user's quota, is full. */
export function isFull(error: unknown): boolean {
  return full_codes.includes((error as { code?: unknown } | null)?.code)
}

const interrupted: readonly unknown[] = ['EINTR', system.errno.EINTR]
const repeats_max = 8

/** Repeats a call that a signal interrupted. */
export function uninterrupted<T>(work: () => T): T {
  for (let times = 0; ; times++) {
    try {
      return work()
    } catch (error) {
      if (!isInterrupted(error) || times >= repeats_max) throw error
    }
  }
}

export async function settledUninterrupted<T>(work: () => Promise<T>): Promise<T> {
  for (let times = 0; ; times++) {
    try {
      return await work()
    } catch (error) {
      if (!isInterrupted(error) || times >= repeats_max) throw error
    }
  }
}

function isInterrupted(error: unknown): boolean {
  return interrupted.includes((error as { code?: unknown } | null)?.code)
}

/**
 * Syncs a file, or the names in a folder. Windows syncs only what is open for writing, which no
 * folder can be; the journal of its file system keeps the order of names.
 */
export async function syncPath(path: string, platform: string = process.platform): Promise<void> {
  const is_windows = platform === 'win32'
  if (is_windows && (await stat(path)).isDirectory()) return
  const handle = await open(path, is_windows ? 'r+' : 'r')
  try {
    await settledUninterrupted(() => handle.sync())
  } finally {
    await handle.close()
  }
}

export function syncFolder(path: string): Promise<void> {
  return syncPath(dirname(path))
}

/** Whether other users may read or write a file of this mode. */
export function isOpenToOthers(mode: number): boolean {
  return (mode & 0o077) !== 0
}
