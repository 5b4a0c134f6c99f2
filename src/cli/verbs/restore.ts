/**
 * `restore`: puts a backup in the place of a data file. The backup, a file or what a target of
 * continuous backup has of one moment (cli/moment), is copied beside the data file
 * and checked there completely, with its key, before anything is replaced; what was there stays
 * under another name. The backup itself is never opened for writing.
 */
import { constants, existsSync } from 'node:fs'
import { chmod, copyFile, readdir, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { defined } from '../../core/defined.ts'
import { fault, isFault } from '../../core/faults.ts'
import type { CheckReport } from '../../engine/api/engine-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import { openEngine } from '../../open.ts'
import { syncPath, writeFault } from '../../store/disk/file-system.ts'
import { makePrivateFolder } from '../../store/disk/private-folder.ts'
import { magicOf } from '../../store/lmdb/open.ts'
import { keepAside, lockDataFile, putRestored } from '../../store/restored-file.ts'
import { connectOwner, engineOptionsFrom, heldFault } from '../admin-connection.ts'
import { type Exit, unreachableError } from '../exit-codes.ts'
import { fileVerb } from '../file-verb.ts'
import { type Io, unreadable } from '../io.ts'
import { type Moment, moment_flags, momentOf } from '../moment.ts'
import { printDone } from '../output.ts'
import { linesText, timeText } from '../text.ts'
import { dbOf, flag, type Given, isOn, text, word } from '../verb.ts'

export const restoreVerb = fileVerb('restore [BACKUP]', {
  flags: [
    ...moment_flags,
    flag(
      'key-file FILE',
      'the kept copy of the key (default: one beside the data file or the backup)',
      { no_env: true },
    ),
    flag('replace', 'where there is a data file: move it aside', { no_env: true }),
    flag('without-key', 'restore although no key fits', { no_env: true }),
  ],
  says: 'put a backup in the place of the data file',
  notes: [
    'The backup is checked completely, with its key, before anything is replaced. What was there',
    'gets a name with the time, and can be restored in turn. No server may have the file open.',
    'With --from, the moment comes from what `serve --backup-to FOLDER` has shipped.',
    'Without its key tasks and timers go on, and signed requests are refused until it is put back.',
  ],
  run: restore,
})

async function restore(given: Given, io: Io): Promise<Exit> {
  const began_ms = io.clock.now_ms()
  const moment = await momentOf(given, io)
  if (moment !== undefined && isOn(given, 'dry-run')) return await moment.dryRun()
  const backup = moment?.says ?? resolve(word(given, 0))
  const path = await realpath(dbOf(given)).catch(() => resolve(dbOf(given)))
  if (moment === undefined) await checkBackup(backup, path)
  await checkFile(path)
  const was_there = existsSync(path)
  const lock = await lockDataFile(path)
  if (lock === undefined) throw await heldFault(path, 'stop it first')
  let is_done = false
  try {
    await checkPlace(path, isOn(given, 'replace'))
    const folder = await makePrivateFolder(path, 'restore')
    try {
      const copy = join(folder.path, basename(path))
      await (moment === undefined ? copyAll(backup, copy) : moment.write(copy))
      const checked = await check(given, { backup, copy, path })
      const time = new Date(io.clock.now_ms()).toISOString().replace(/[-:.]/g, '')
      const aside = await keepAside(path, `${path}.${time}`)
      const is_key_new = checked.key_from !== undefined && checked.key_from !== `${path}.key`
      await putRestored(path, copy, is_key_new ? `${copy}.key` : undefined)
      is_done = true
      const restored = { path, backup, aside, began_ms, is_key_new, moment, ...checked }
      return await printRestored(given, io, restored)
    } finally {
      await folder.remove()
    }
  } finally {
    // The lock made an empty file where there was none.
    if (!was_there && !is_done) await rm(path, { force: true })
    await lock.release()
  }
}

async function checkBackup(backup: string, path: string): Promise<void> {
  const [from, to] = await Promise.all([
    stat(backup).catch((error) => Promise.reject(unreadable(backup, error))),
    stat(path).catch(() => undefined),
  ])
  if (from.ino === to?.ino && from.dev === to.dev) {
    throw fault('not_possible', `${backup} is the data file itself; name a backup of it`)
  }
  // A pipe would be waited for.
  if (from.isFile() && (await magicOf(backup)) !== 'none') return
  throw unreachableError(`${backup} is no backup: conveyor wrote no such file`, 'not_a_database')
}

/** A rename would put the backup in the place of a device or a pipe too. */
async function checkFile(path: string): Promise<void> {
  const to = await stat(path).catch(() => undefined)
  if (to === undefined || to.isFile() || to.isDirectory()) return
  throw fault('not_possible', `${path} is no file; name the data file`)
}

/** Refuses a place that is taken; its lock is held. */
async function checkPlace(path: string, may_replace: boolean): Promise<void> {
  // A server whose file was removed under it goes on for a moment, and has the log open.
  const server = await connectOwner(path)
  if (server !== undefined) {
    await server.close()
    throw await heldFault(path, 'stop it first')
  }
  if (may_replace || (await stat(path)).size === 0) return
  throw fault(
    'not_possible',
    `${path} exists; --replace moves it aside, under a name with the time`,
  )
}

/** With the commit log, which a file that was set aside may have. */
async function copyAll(backup: string, copy: string): Promise<void> {
  try {
    for (const end of ['', '-log-0', '-log-1']) {
      if (end !== '' && !existsSync(backup + end)) continue
      await copyFile(backup + end, copy + end, constants.COPYFILE_FICLONE)
      await chmod(copy + end, 0o600)
    }
  } catch (error) {
    throw writeFault(copy, error)
  }
}

interface Checked {
  readonly report: CheckReport
  readonly key_id: string | undefined
  /** The key file that fits; undefined where none is needed, or it comes from the environment. */
  readonly key_from: string | undefined
}

interface Places {
  readonly backup: string
  readonly copy: string
  readonly path: string
}

/** Opens the copy with each key that may be its own, checks it, and closes and syncs it. */
async function check(given: Given, places: Places): Promise<Checked> {
  const { backup, copy } = places
  const keys = given.env.CONVEYOR_KEY === undefined ? await keyFiles(given, places) : []
  for (let at = 0; ; at++) {
    const key_from = keys[at]
    try {
      if (key_from !== undefined) {
        await rm(`${copy}.key`, { force: true })
        await copyFile(key_from, `${copy}.key`).catch((error) => {
          throw unreadable(key_from, error)
        })
        await chmod(`${copy}.key`, 0o600)
      }
      const engine = await openEngine(copy, {
        background: false,
        probe: true,
        ...engineOptionsFrom(given.env),
      })
      try {
        const { problem, id: key_id } = servedEngine(engine).keyState()
        if (problem !== undefined && at + 1 < keys.length) continue
        if (problem !== undefined && !isOn(given, 'without-key')) {
          const tried = keys.length === 0 ? problem : `the key is not in ${keys.join(', ')}`
          const says = `${tried}; name its kept copy with --key-file, or restore --without-key`
          throw fault('key_missing', `${backup} needs its key: ${says}`)
        }
        const report = await engine.check()
        const [first] = report.breaches
        if (first !== undefined) {
          const says = `${report.breaches.length} breaches, the first: ${first}`
          throw fault('not_possible', `${backup} is damaged: ${says}; take an earlier backup`)
        }
        const is_needed = problem === undefined && key_id !== undefined
        return { report, key_id, key_from: is_needed ? key_from : undefined }
      } finally {
        await engine.close()
        await syncPath(copy)
      }
    } catch (error) {
      if (!isFault(error)) throw error
      throw fault(error.code, error.message.replaceAll(copy, backup))
    }
  }
}

/** The key files to try: the one that is named, or those beside the data file and the backup. */
async function keyFiles(given: Given, { backup, path }: Places): Promise<string[]> {
  const named = text(given, 'key-file')
  if (named !== undefined) return [resolve(named)]
  const begin = `${basename(path)}.key.`
  // The keys before each `user rekey`.
  const old = (await readdir(dirname(path)))
    .filter((name) => name.startsWith(begin) && /^[0-9a-f]{8}$/.test(name.slice(begin.length)))
    .map((name) => join(dirname(path), name))
  return [`${path}.key`, `${backup}.key`, ...old].filter((one) => existsSync(one))
}

interface Restored extends Checked {
  readonly path: string
  readonly backup: string
  readonly aside: readonly string[]
  readonly began_ms: number
  readonly is_key_new: boolean
  readonly moment: Moment | undefined
}

function printRestored(given: Given, io: Io, restored: Restored): Promise<Exit> {
  const { path, backup, aside, began_ms, report, key_id, key_from, is_key_new } = restored
  const { task: tasks = 0, process: processes = 0, user: users = 0 } = report.counts
  const took_ms = io.clock.now_ms() - began_ms
  const last = report.last_change_ms
  const json = JSON.stringify({
    ...{ path, backup, tasks, processes, users, last_change_ms: last ?? null, took_ms, aside },
    ...defined({ key_id }),
    ...restored.moment?.json,
  })
  const lines = [
    ...aside.map((one) => `kept what was there: ${one}`),
    ...(is_key_new ? [`put the key ${key_id} in place, from ${key_from}`] : []),
    `restored ${path}: ${tasks} tasks, ${processes} processes, ${users} users, ` +
      `last change ${last === undefined ? 'unknown' : timeText(last)}, in ${took_ms / 1_000} s`,
    ...(restored.moment === undefined ? [] : [restored.moment.line]),
  ]
  return printDone(given, io, json, linesText(lines))
}
