/**
 * LMDB's lock file, its table of readers. LMDB maps it, so it kills the process where it cannot
 * open the file, or where the disk is full when it first touches a page that is not allocated.
 */
import { constants } from 'node:fs'
import { open, rm } from 'node:fs/promises'

const lock_page_bytes = 4096
const lock_pages = 3

export const lockPath = (path: string): string => `${path}-lock`

/** Once the data file at `path` is closed; its lock is still held, so no reader is in the table. */
export async function removeLockFile(path: string): Promise<void> {
  await rm(lockPath(path), { force: true }).catch(() => {})
}

/** Allocates its pages. Rejects with the system's error. */
export async function prepareLockFile(lock_path: string): Promise<void> {
  const { O_RDWR, O_CREAT } = constants
  const lock = await open(lock_path, O_RDWR | O_CREAT, 0o600)
  try {
    const page = Buffer.alloc(lock_page_bytes)
    for (let at = 0; at < lock_pages * lock_page_bytes; at += lock_page_bytes) {
      const { bytesRead } = await lock.read(page.fill(0), 0, lock_page_bytes, at)
      if (bytesRead === lock_page_bytes && !isZero(page)) continue
      const { bytesWritten } = await lock.write(page, 0, lock_page_bytes, at)
      if (bytesWritten < lock_page_bytes) {
        throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
      }
    }
  } finally {
    await lock.close()
  }
}

export function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0)
}
