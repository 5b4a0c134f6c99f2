/**
 * The last steps of a restore: a checked copy takes the place of a data file and of its commit log.
 *
 * The copy waits under a second name beside the data file. Its rename to this name decides: before
 * it the old file counts, with its commit log; after it the new one, because each opening first
 * finishes a decided restore. A kill at any step leaves one of the two whole.
 */
import { constants, existsSync } from 'node:fs'
import { copyFile, link, realpath, rename, rm, stat } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { removeSegments } from './commit-log/recovery.ts'
import { type FileLock, lockFile } from './disk/file-lock.ts'
import { fileFault, syncFolder, syncPath, writeFault } from './disk/file-system.ts'
import { type OwnerRecord, readOwner } from './disk/owner-file.ts'

/**
 * What belongs to a data file. The owner record and LMDB's table of readers say nothing once their
 * process has ended.
 */
const ends = ['', '-log-0', '-log-1', '.key', '.key.new']

/** A file of this name takes the place of the data file at the next opening. */
const restoredPath = (path: string): string => `${path}.restore-decided`
const restoredKeyPath = (path: string): string => `${restoredPath(path)}.key`

/** The child process of an owner that was killed ends after one commit at most. */
const left_behind = { ms_max: 10_000, pause_ms: 20 }

/**
 * Locks the data file at `path` as `lockFile` does, after a restore that was cut off is finished.
 * Waits for what an owner that has ended left behind.
 */
export async function lockDataFile(path: string): Promise<FileLock | undefined> {
  const until_ms = performance.now() + left_behind.ms_max
  for (;;) {
    const lock = await lockFile(path)
    if (lock === undefined) {
      if (performance.now() >= until_ms || !hasEnded(await readOwner(path))) return undefined
      await pause(left_behind.pause_ms)
      continue
    }
    // The second name is beside the file itself, not beside a link to it.
    const real_path = await realpath(path)
    if (!existsSync(restoredPath(real_path))) return lock
    try {
      await finishRestore(real_path)
    } catch (error) {
      throw fileFault(path, error)
    } finally {
      await lock.release()
    }
  }
}

/** False where nothing is known of the owner. */
function hasEnded(owner: OwnerRecord | undefined): boolean {
  if (owner === undefined) return false
  try {
    process.kill(owner.pid, 0)
    return false
  } catch (error) {
    return (error as { code?: unknown }).code === 'ESRCH'
  }
}

/**
 * Keeps the data file and what belongs to it under names that begin with `aside`, and answers with
 * them. Nothing is removed: each gets a second name, but a key a copy, because another key is
 * written into the file. The caller must hold the lock.
 */
export async function keepAside(path: string, aside: string): Promise<string[]> {
  const kept: string[] = []
  for (const end of ends) {
    const size = await bytesOf(path + end)
    // An empty data file is the lock's.
    if (size === undefined || (end === '' && size === 0)) continue
    try {
      if (end.startsWith('.key')) await copyFile(path + end, aside + end, constants.COPYFILE_EXCL)
      else await link(path + end, aside + end)
    } catch (error) {
      throw writeFault(aside + end, error)
    }
    await syncPath(aside + end)
    kept.push(aside + end)
  }
  await syncFolder(path)
  return kept
}

async function bytesOf(path: string): Promise<number | undefined> {
  return existsSync(path) ? (await stat(path)).size : undefined
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
