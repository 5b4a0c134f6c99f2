/**
 * A temporary folder beside a target file, in which the file is made before it gets its name. A
 * kernel lock in it shows whether its process lives; the next process removes those of killed ones.
 */
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type FileLock, lockFile } from './file-lock.ts'
import { fileFault } from './file-system.ts'

export interface PrivateFolder {
  readonly path: string
  remove(): Promise<void>
}

/** Throws `not_possible`. `target` is the absolute path of the file. */
export async function makePrivateFolder(
  target: string,
  what: 'backup' | 'restore',
): Promise<PrivateFolder> {
  const begin = `.conveyor-${what}-`
  await removeLeft(dirname(target), begin)
  try {
    const path = await mkdtemp(join(dirname(target), begin))
    const lock = await lockIn(path)
    return {
      path,
      async remove() {
        await rm(path, { recursive: true, force: true })
        await lock?.release()
      },
    }
  } catch (error) {
    throw fileFault(target, error)
  }
}

async function removeLeft(parent: string, begin: string): Promise<void> {
  const names = await readdir(parent).catch(() => [])
  for (const name of names.filter((one) => one.startsWith(begin))) {
    const path = join(parent, name)
    // Without a lock file it is just being made, or belongs to another program.
    if (!existsSync(lockPath(path))) continue
    const lock = await lockIn(path)
    if (lock === undefined) continue
    await rm(path, { recursive: true, force: true }).catch(() => {})
    await lock.release()
  }
}

const lockPath = (folder: string): string => join(folder, 'lock')

/** Undefined if another process has it, or the disk does not support locks. */
function lockIn(folder: string): Promise<FileLock | undefined> {
  return lockFile(lockPath(folder)).catch(() => undefined)
}
