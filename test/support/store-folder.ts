/**
 * Folders for files that are written and deleted by the thousand: in memory if the system has such
 * a file system, because these tests do not depend on syncs.
 */
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'

const in_memory = '/dev/shm'

/** Returns new paths in such a folder, which is removed after the tests of the calling file. */
export function quickPaths(prefix: string): () => string {
  let folder: string
  let count = 0
  before(async () => {
    folder = await quickFolder(prefix)
  })
  after(() => rm(folder, { recursive: true, force: true }))
  return () => join(folder, `${count++}.lmdb`)
}

export const quick_place =
  process.env.CONVEYOR_QUICK_PLACE ?? (isWritable(in_memory) ? in_memory : tmpdir())

export function quickFolder(prefix: string): Promise<string> {
  return mkdtemp(join(quick_place, prefix))
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}
