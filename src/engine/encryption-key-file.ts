/**
 * The key file beside the data file: 64 hex digits, mode 0600. It is never overwritten: a new key
 * is written under a second name and then renamed, so at any time one of the two files has the key
 * of the store.
 */
import { constants } from 'node:fs'
import { open, readFile, rename, unlink } from 'node:fs/promises'
import { syncFolder } from '../store/file-system.ts'

/** The text of a key file; undefined where it is missing or cannot be read. */
export async function readKeyFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Makes the file and syncs it to disk. Rejects if it exists. */
export async function makeKeyFile(path: string, key: Buffer): Promise<void> {
  const file = await open(
    path,
    constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW,
    0o600,
  )
  try {
    await file.writeFile(`${key.toString('hex')}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await syncFolder(path)
}

export async function replaceKeyFile(from: string, to: string): Promise<void> {
  await rename(from, to)
  await syncFolder(to)
}

export async function removeKeyFile(path: string): Promise<void> {
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}
