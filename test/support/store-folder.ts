/**
 * Folders for files that are written and thrown away by the thousand. In memory where the system
 * has a place for that: what a sync is worth is no question there.
 */
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'

const in_memory = '/dev/shm'

/** Names for files in such a folder, which is there while the tests of the calling file run. */
export function quickPaths(prefix: string): () => string {
  let folder: string
  let count = 0
  before(async () => {
    folder = await quickFolder(prefix)
  })
  after(() => rm(folder, { recursive: true, force: true }))
  return () => join(folder, `${count++}.lmdb`)
}

export function quickFolder(prefix: string): Promise<string> {
  return mkdtemp(join(isWritable(in_memory) ? in_memory : tmpdir(), prefix))
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}
