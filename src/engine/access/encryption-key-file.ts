/**
 * The key file beside the data file: 64 hex digits, mode 0600. A key is written under a second name
 * and renamed, never overwritten, so one of the two files always has the key of the store. The
 * previous key keeps a third name for older backups. Reads are synchronous: a request must know at
 * once whether there is a key.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { keyId, parseKey } from '../../codec/encryption.ts'
import {
  isOpenToOthers,
  settledUninterrupted,
  syncFolder,
  uninterrupted,
} from '../../store/disk/file-system.ts'

export interface KeyFile {
  readonly key: Buffer | undefined
  readonly trouble?: KeyTrouble
  /** The system's error code of an `unreadable` file. */
  readonly cause?: string
  readonly is_open: boolean
}

export type KeyTrouble = 'missing' | 'unreadable' | 'no_key'

const text_bytes_max = 1_024

export function readKeyFile(path: string): KeyFile {
  const none = { key: undefined, is_open: false }
  let fd: number | undefined
  try {
    // A pipe, for example, must not block the engine.
    const opened = uninterrupted(() => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK))
    fd = opened
    const stats = fstatSync(opened)
    if (!stats.isFile()) return { ...none, trouble: 'no_key' }
    const bytes = Buffer.alloc(text_bytes_max)
    const length = uninterrupted(() => readSync(opened, bytes, 0, text_bytes_max, 0))
    const key = parseKey(bytes.toString('latin1', 0, length))
    if (key === undefined) return { ...none, trouble: 'no_key' }
    return { key, is_open: isOpenToOthers(stats.mode) }
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { ...none, trouble: 'missing' }
    return { ...none, trouble: 'unreadable', cause: code }
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** Synced to disk. Rejects if the file exists. */
export async function makeKeyFile(path: string, key: Buffer): Promise<void> {
  const file = await open(
    path,
    constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW,
    0o600,
  )
  try {
    await file.writeFile(`${key.toString('hex')}\n`)
    await settledUninterrupted(() => file.sync())
  } finally {
    await file.close()
  }
  await syncFolder(path)
}

/** The name of a replaced key. */
export const oldKeyPath = (path: string, key: Buffer): string => `${path}.${keyId(key)}`

/** Renames the file; the replaced key gets its third name. */
export async function replaceKeyFile(from: string, to: string): Promise<void> {
  const { key } = readKeyFile(to)
  if (key !== undefined) await rename(to, oldKeyPath(to, key))
  await rename(from, to)
  await syncFolder(to)
}

export async function removeKeyFile(path: string): Promise<void> {
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}
