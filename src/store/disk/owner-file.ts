/**
 * The owner record: a file beside the data file with the process that holds the lock, and its admin
 * socket. It counts only while the lock is held, so it is not synced, and a stale one is ignored.
 */
import { readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { parsePlain } from '../../codec/json.ts'

export interface OwnerRecord {
  readonly pid: number
  /** `null` without an admin socket. */
  readonly socket: string | null
  readonly file_id: string
  readonly version: string
}

/** `real_path` is the data file without symbolic links. */
export async function writeOwner(real_path: string, owner: OwnerRecord): Promise<void> {
  await writeFile(ownerPath(real_path), JSON.stringify(owner), { mode: 0o600 }).catch(() => {})
}

/** The caller still holds the lock, so the record is its own. */
export async function removeOwner(real_path: string): Promise<void> {
  await rm(ownerPath(real_path), { force: true }).catch(() => {})
}

/** Undefined without a readable record. */
export async function readOwner(path: string): Promise<OwnerRecord | undefined> {
  try {
    const record = parsePlain(await readFile(ownerPath(await realpath(path)), 'utf8'))
    return isOwner(record) ? record : undefined
  } catch {
    return undefined
  }
}

function isOwner(record: unknown): record is OwnerRecord {
  const { pid, socket, file_id } = (record ?? {}) as Partial<OwnerRecord>
  const is_reachable = socket === null || typeof socket === 'string'
  return typeof pid === 'number' && is_reachable && typeof file_id === 'string'
}

function ownerPath(real_path: string): string {
  return `${real_path}-owner`
}
