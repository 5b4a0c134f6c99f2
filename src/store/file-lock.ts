/**
 * One process, and one engine in it, owns a data file: a lock of the kernel on the file itself.
 *
 * The lock belongs to the open handle, so it goes when the process dies in whatever way, and a
 * second opening in the same process is refused too. LMDB locks only the file beside it, so neither
 * disturbs the other. The handle is a plain number, which no garbage collection closes.
 *
 * The native part is loaded at the first call: an engine in memory needs none.
 */
import { close, constants, fstat, open } from 'node:fs'
import { stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { fileFault } from './file-system.ts'

export interface FileLock {
  /** Lets the file go; a second call does nothing. */
  release(): Promise<void>
}

/**
 * Takes the lock of the data file at `path`, which is made (mode 0600) where it is missing.
 * Undefined when another holds it. Throws `not_possible` for a path that cannot be opened.
 */
export async function lockFile(path: string): Promise<FileLock | undefined> {
  const { tryLock } = await import('fs-native-extensions')
  for (;;) {
    const fd = await openFile(path)
    let kept = false
    try {
      if (!tryLock(fd)) return undefined
      kept = await isStillAt(path, fd)
    } catch (error) {
      throw fileFault(path, error)
    } finally {
      if (!kept) await promisify(close)(fd)
    }
    if (kept) return lockOver(fd)
  }
}

function lockOver(fd: number): FileLock {
  let released: Promise<void> | undefined
  return {
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

/** False when the file was removed or replaced between opening and locking it. */
async function isStillAt(path: string, fd: number): Promise<boolean> {
  const held = await promisify(fstat)(fd)
  try {
    const there = await stat(path)
    return there.ino === held.ino && there.dev === held.dev
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return false
    throw error
  }
}
