/**
 * One engine in one process owns a data file: a kernel lock on the file itself. The lock belongs to
 * the open descriptor, a plain number that no garbage collection closes, so it ends with the
 * process, and a second open in the same process is refused too. LMDB locks the `-lock` file.
 */
import { close, constants, fstat, open } from 'node:fs'
import { stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { fileFault } from './file-system.ts'
import type { LockAddon } from './lock-addon.ts'
import { nativeFault } from './native-part.ts'

export interface FileLock {
  /** The lock lasts while this process or a child with the descriptor has it open. */
  readonly fd: number
  release(): Promise<void>
}

/**
 * Locks the data file, created (mode 0600) if missing. Undefined if another holder has it. Throws
 * `not_possible` for a path that cannot be opened, and `native_not_loaded`.
 */
export async function lockFile(path: string): Promise<FileLock | undefined> {
  const addon = await loadFileLock()
  for (;;) {
    const fd = await openFile(path)
    let is_ours = false
    try {
      if (!tryLock(addon, fd)) return undefined
      is_ours = await isStillAt(path, fd)
    } catch (error) {
      throw fileFault(path, error)
    } finally {
      if (!is_ours) await promisify(close)(fd)
    }
    if (is_ours) return lockOver(fd)
  }
}

/**
 * On Windows a lock blocks reads and writes by every other descriptor, LMDB's too. There it is one
 * byte beyond any file, within the range that earlier versions lock.
 */
const [lock_at, lock_bytes] = process.platform === 'win32' ? [2 ** 62, 1] : [0, 0]

/** False if another holder has the lock. */
function tryLock(addon: LockAddon, fd: number): boolean {
  try {
    addon.tryLock(fd, lock_at, lock_bytes, true)
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EAGAIN') return false
    throw error
  }
}

/** Throws `native_not_loaded`. */
export async function loadFileLock(): Promise<LockAddon> {
  try {
    // The native file calls libuv functions that these lack; their process would crash.
    const { bun, deno } = process.versions
    if (bun !== undefined) throw new Error('Bun lacks functions of libuv')
    if (deno !== undefined) throw new Error('Deno lacks functions of libuv')
    const { loadLockAddon } = await import('./lock-addon.ts')
    return loadLockAddon()
  } catch (error) {
    throw nativeFault('the file lock', error)
  }
}

function lockOver(fd: number): FileLock {
  let released: Promise<void> | undefined
  return {
    fd,
    release: () => {
      released ??= promisify(close)(fd)
      return released
    },
  }
}

async function openFile(path: string): Promise<number> {
  try {
    return await promisify(open)(path, constants.O_RDWR | constants.O_CREAT, 0o600)
  } catch (error) {
    throw fileFault(path, error)
  }
}

/** False if the file was removed or replaced between open and lock. */
async function isStillAt(path: string, fd: number): Promise<boolean> {
  const locked = await promisify(fstat)(fd)
  try {
    const named = await stat(path)
    return named.ino === locked.ino && named.dev === locked.dev
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return false
    throw error
  }
}
