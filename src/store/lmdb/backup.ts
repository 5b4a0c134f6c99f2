/**
 * A copy of the durable state of a running store. It is made page by page in a private folder
 * beside the target, synced, read completely, and only then named. A failure leaves nothing, and no
 * file is replaced. A copy with damaged pages or records gets a name that says so.
 */
import { closeSync, openSync } from 'node:fs'
import { chmod, type FileHandle, link, lstat, open, rename } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { atNodeOfKey, type Key, keysOfType, taskOfKey, timeOfKey } from '../../codec/keys.ts'
import { isDamagedTask } from '../../codec/task-bytes.ts'
import { nextTurn } from '../../core/clock.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { fileFault, syncFolder, syncPath, writeFault } from '../disk/file-system.ts'
import { makePrivateFolder } from '../disk/private-folder.ts'
import type { BackupFile, Damage } from '../store.ts'
import { damageOf } from './damage.ts'
import { readMark, writeMark } from './marks.ts'
import { checkedPages, metasOf, summed } from './page-sums.ts'

const slice_bytes = 1024 * 1024
const slice_entries = 512
/** Further damage is only counted. */
const listed_max = 10
const damaged_end = '.damaged'

/**
 * Copies the file to `path` (mode 0600), or to `path.damaged`, with this record `commit_log`
 * (lmdb/marks); no commit may run meanwhile. Throws `not_possible` if the file exists or the copy
 * cannot be written or read, `no_space` if its disk is full.
 */
export async function copyDatabase(
  from: string,
  path: string,
  log_mark: Buffer | undefined,
): Promise<BackupFile> {
  const target = resolve(path)
  if (await exists(target)) throw taken(path)
  const folder = await makePrivateFolder(target, 'backup')
  try {
    const copy = join(folder.path, 'copy')
    const bytes = await copyPages(from, copy, log_mark)
    await syncPath(copy)
    const damage = await damageIn(copy)
    const end = damage === undefined ? '' : damaged_end
    await giveName(copy, target + end, path + end)
    await syncFolder(target)
    return { path: path + end, bytes, ...(damage === undefined ? {} : { damage }) }
  } catch (error) {
    throw isFault(error) ? error : writeFault(path, error)
  } finally {
    await folder.remove()
  }
}

async function copyPages(from: string, to: string, log_mark: Buffer | undefined): Promise<number> {
  const source = await open(from, 'r')
  try {
    const target = await open(to, 'wx+', 0o600)
    try {
      await chmod(to, 0o600)
      const before = metasOf(source.fd)?.[1]
      const { size } = await source.stat()
      const slice = Buffer.allocUnsafeSlow(Math.min(slice_bytes, size))
      for (let at = 0; at < size; ) {
        const { bytesRead } = await source.read(slice, 0, slice.length, at)
        if (bytesRead === 0) throw new Error('it was cut short meanwhile')
        await writeAll(target, slice.subarray(0, bytesRead), at)
        at += bytesRead
      }
      if (before === undefined) throw fault('not_possible', `${from}: a meta page is damaged`)
      if (metasOf(source.fd)?.[1].txn !== before.txn) throw new Error('it was written meanwhile')
      if (log_mark !== undefined) {
        const { generation = 0 } = readMark(target.fd, before.page_bytes, 'commit_log') ?? {}
        const mark = { generation: generation + 1, payload: log_mark }
        writeMark(target.fd, before.page_bytes, 'commit_log', mark)
      }
      return size
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function writeAll(target: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await target.write(bytes, done, bytes.length - done, at + done)).bytesWritten
  }
}

/** Damaged pages and task records of the copy. */
async function damageIn(copy: string): Promise<Damage | undefined> {
  const tasks: string[] = []
  const onValue = (key: Key, value: Buffer): void => {
    if (isDamagedTask(value)) tasks.push(taskOfKey(key))
  }
  const pages = await damageOf(copy, Number.POSITIVE_INFINITY, { ...summed, onValue })
  const count = pages.length + tasks.length
  if (count === 0) return undefined
  const listed = tasks.slice(0, Math.max(0, listed_max - pages.length))
  const process = await processesOf(copy, new Set(listed))
  const says = listed.map((obj_id) => {
    const conv = process.get(obj_id)
    return `task ${obj_id}${conv === undefined ? '' : ` of process ${conv}`} is damaged`
  })
  return { count, says: [...pages.slice(0, listed_max), ...says] }
}

/** A damaged record does not name its process; the keys of its index do. */
async function processesOf(copy: string, tasks: ReadonlySet<string>): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const file = openSync(copy, 'r')
  try {
    const { entries } = checkedPages(file)
    for (const [type, read] of [
      ['at_node', atNodeOfKey],
      ['ended', timeOfKey],
    ] as const) {
      const { from, to } = keysOfType(type)
      let count = 0
      for (const { key } of entries.range(from, to, false)) {
        if (found.size === tasks.size) return found
        const { conv, obj_id } = read(key)
        if (tasks.has(obj_id)) found.set(obj_id, conv)
        if (++count % slice_entries === 0) await nextTurn()
      }
    }
  } catch {
    // The pages of the index are damaged too and reported.
  } finally {
    closeSync(file)
  }
  return found
}

/** A link fails if the name is taken; a file system without links can only rename. */
async function giveName(copy: string, target: string, path: string): Promise<void> {
  try {
    await link(copy, target)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EEXIST') throw taken(path)
    if (await exists(target)) throw taken(path)
    await rename(copy, target)
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return false
    throw fileFault(path, error)
  }
}

function taken(path: string): Fault {
  return fault('not_possible', `${path} exists already; name a file that does not`)
}
