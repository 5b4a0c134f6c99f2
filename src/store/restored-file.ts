/**
 * The last steps of a restore: a checked copy takes the place of a data file and of its commit log.
 *
 * The copy waits under a second name beside the data file. The rename that gives it this name
 * decides: before it the old file is the one, with its commit log; after it the new one is, because
 * each opening first finishes what was decided. So a kill at any step leaves one of the two, whole,
 * and never the new file with the commit log of the old one.
 */
import { existsSync } from 'node:fs'
import { link, rename, rm, stat } from 'node:fs/promises'
import { removeSegments } from './commit-log/recovery.ts'
import { type FileLock, lockFile } from './file-lock.ts'
import { fileFault, syncFolder } from './file-system.ts'

/** What belongs to a data file; LMDB's table of readers does not outlive its process. */
const ends = ['', '-log-0', '-log-1', '-owner', '.key', '.key.new']

const restoredPath = (path: string): string => `${path}-restored`
const restoredKeyPath = (path: string): string => `${restoredPath(path)}.key`

/**
 * Locks the data file at `path` as `lockFile` does, after a restore that was cut off is finished.
 */
export async function lockDataFile(path: string): Promise<FileLock | undefined> {
  for (;;) {
    const lock = await lockFile(path)
    if (lock === undefined || !existsSync(restoredPath(path))) return lock
    try {
      await finishRestore(path)
    } catch (error) {
      throw fileFault(path, error)
    } finally {
      await lock.release()
    }
  }
}

/**
 * Gives the data file and what belongs to it a second name each, which begins with `aside`; answers
 * with these names. Nothing is removed. The caller must hold the lock.
 */
export async function linkAside(path: string, aside: string): Promise<string[]> {
  const linked: string[] = []
  for (const end of ends) {
    // An empty data file is the lock's.
    const size = await stat(path + end).then(
      ({ size }) => size,
      () => undefined,
    )
    if (size === undefined || (end === '' && size === 0)) continue
    try {
      await link(path + end, aside + end)
    } catch (error) {
      throw fileFault(aside + end, error)
    }
    linked.push(aside + end)
  }
  await syncFolder(path)
  return linked
}

/**
 * Decides for the copy at `from`, closed and synced, and for the key file at `key_from`, unless the
 * one in place fits; and finishes. All must be in one file system. The caller must hold the lock.
 */
export async function putRestored(
  path: string,
  from: string,
  key_from: string | undefined,
): Promise<void> {
  await rm(restoredKeyPath(path), { force: true })
  if (key_from !== undefined) await rename(key_from, restoredKeyPath(path))
  await rename(from, restoredPath(path))
  await syncFolder(path)
  await finishRestore(path)
}

async function finishRestore(path: string): Promise<void> {
  await removeSegments(path)
  const key_path = restoredKeyPath(path)
  if (existsSync(key_path)) await rename(key_path, `${path}.key`)
  await rename(restoredPath(path), path)
  await syncFolder(path)
}
