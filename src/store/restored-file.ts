/**
 * The last steps of a restore: a checked copy replaces a data file and its commit log. The copy
 * waits under a second name beside the data file. Its rename to this name decides: before it the
 * old file counts, after it the new one, because each opening first finishes a decided restore. A
 * kill at any step leaves one of the two whole.
 */
import { constants, existsSync } from 'node:fs'
import { copyFile, link, realpath, rename, rm, stat } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { removeSegments } from './commit-log/recovery.ts'
import { type FileLock, lockFile } from './disk/file-lock.ts'
import { fileFault, syncFolder, syncPath, writeFault } from './disk/file-system.ts'
import { type OwnerRecord, readOwner } from './disk/owner-file.ts'

/** The files of a data file that outlive its process. */
const ends = ['', '-log-0', '-log-1', '.key', '.key.new']

/** Replaces the data file at the next opening. */
const restoredPath = (path: string): string => `${path}.restore-decided`
const restoredKeyPath = (path: string): string => `${restoredPath(path)}.key`

/** A killed owner's child process ends after one commit at most. */
const left_behind = { ms_max: 10_000, pause_ms: 20 }

/**
 * Like `lockFile`, after finishing an interrupted restore. Waits for the child process of an owner
 * that has ended.
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

/** False if nothing is known of the owner. */
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
 * Links the data file and its companions to names that begin with `aside`, and returns them.
 * Nothing is removed; a key is copied, because another is written into its file. The caller must
 * hold the lock.
 */
export async function keepAside(path: string, aside: string): Promise<string[]> {
  const kept: string[] = []
  for (const end of ends) {
    const size = await bytesOf(path + end)
    // The lock creates an empty data file.
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
 * Replaces the data file by the closed, synced copy at `from`, and the key file by `key_from`
 * unless the present one fits. All in one file system. The caller must hold the lock.
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
