/**
 * A backup target in a folder of another disk or a network file system. The folder itself is never
 * made: where its disk is not mounted, a new folder would fill the wrong one. An object is written
 * under a hidden name, synced, and gets its name by a link, which fails if the name is taken.
 */
import { link, lstat, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { Chance } from '../core/clock.ts'
import { syncFolder } from '../store/disk/file-system.ts'
import type { BackupTarget, TargetObject } from './target.ts'

const hidden = '.new-'

export function folderTarget(folder: string, chance: Chance): BackupTarget {
  const top = resolve(folder)
  // Two servers may begin the same object.
  const own = `${hidden}${chance.bytes(6).toString('hex')}-`
  const pathOf = (name: string): string => join(top, ...name.split('/'))

  async function has(name: string): Promise<boolean> {
    return (await orMissing(lstat(pathOf(name)))) !== undefined
  }

  return {
    says: folder,
    has,
    async list(prefix) {
      await stat(top)
      return objectsIn(top, '', prefix)
    },
    read: (name) => orMissing(readFile(pathOf(name))),
    async create(name, bytes) {
      const path = pathOf(name)
      const temporary = join(dirname(path), own + basename(path))
      await makeFolder(top, dirname(path))
      try {
        await writeSynced(temporary, bytes)
        if (!(await giveName(temporary, path))) return false
      } finally {
        await rm(temporary, { force: true }).catch(() => {})
      }
      await syncFolder(path)
      return true
    },
    async remove(name) {
      await rm(pathOf(name), { force: true })
      await rm(dirname(pathOf(name)), { recursive: false }).catch(() => {})
    },
  }
}

async function objectsIn(top: string, at: string, prefix: string): Promise<TargetObject[]> {
  const found: TargetObject[] = []
  const entries = (await orMissing(readdir(join(top, at), { withFileTypes: true }))) ?? []
  for (const entry of entries) {
    const name = at + entry.name
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory()) {
      const inside = `${name}/`
      if (!inside.startsWith(prefix) && !prefix.startsWith(inside)) continue
      found.push(...(await objectsIn(top, inside, prefix)))
    } else if (name.startsWith(prefix)) {
      const about = await orMissing(stat(join(top, name)))
      if (about !== undefined) found.push({ name, bytes: about.size })
    }
  }
  return found
}

/** Makes the folders between `top`, which must exist, and the object. */
async function makeFolder(top: string, folder: string): Promise<void> {
  await stat(top)
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  for (let path = made && folder; path !== undefined; path = dirname(path)) {
    await syncFolder(path)
    if (path === made) return
  }
}

async function writeSynced(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** False if it is taken. A file system without links can only rename. */
async function giveName(from: string, path: string): Promise<boolean> {
  try {
    await link(from, path)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EEXIST') return false
    if ((await orMissing(lstat(path))) !== undefined) return false
    await rename(from, path)
  }
  return true
}

async function orMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined
    throw error
  }
}
