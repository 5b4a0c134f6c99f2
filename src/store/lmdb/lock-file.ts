/**
 * LMDB's lock file, its table of readers. LMDB maps it, and crashes the process if it cannot open
 * the file, or if the disk is full when it first touches an unallocated page.
 */
import { constants } from 'node:fs'
import { open, rm } from 'node:fs/promises'

const lock_page_bytes = 4096
const lock_pages = 3

export const lockPath = (path: string): string => `${path}-lock`

/** After the data file is closed; its lock is still held, so the table has no reader. */
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
