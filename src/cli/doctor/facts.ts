/**
 * Collects the facts that `doctor` judges: of the machine, the data file and its holder. Changes
 * nothing. A file that no process holds is locked while it is read, and not checkpointed; the
 * holder of an open file answers over its admin socket. Unknown facts are undefined.
 */
import { realpath, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { within } from '../../core/clock.ts'
import { defined } from '../../core/defined.ts'
import { isFault } from '../../core/faults.ts'
import { type Limits, limitsWith } from '../../core/limits.ts'
import { keyFits } from '../../engine/access/encryption-key.ts'
import { type KeyFile, readKeyFile } from '../../engine/access/encryption-key-file.ts'
import { keyCheckIn } from '../../engine/access/secrets.ts'
import { checkStore } from '../../engine/file/check.ts'
import { type Diagnosis, diagnose, type EngineDiagnosis } from '../../engine/file/diagnosis.ts'
import { format, formatIn } from '../../engine/file/format.ts'
import type { NodeMark } from '../../store/commit-log/node-mark.ts'
import { loadFileLock, lockFile } from '../../store/disk/file-lock.ts'
import { type OwnerRecord, readOwner } from '../../store/disk/owner-file.ts'
import { loadLmdb } from '../../store/lmdb/database.ts'
import { openReadOnly } from '../../store/read-only.ts'
import { connectOwner } from '../admin-connection.ts'
import type { Io } from '../io.ts'
import { readingStore } from '../stopped-node.ts'
import { type ClusterFacts, clusterFacts } from './cluster-facts.ts'
import {
  type CertificateFacts,
  certificateFacts,
  type SystemLimits,
  systemLimits,
} from './machine-facts.ts'

export interface FileFacts {
  readonly path: string
  readonly mode: number
  readonly bytes: number
  readonly at_ms: number
}

/** What was read of the file, by its holder or here. */
export interface Inside {
  readonly diagnosis: Diagnosis | EngineDiagnosis
  readonly limits: Limits
  /** Of a closed file: commits in the commit log alone. */
  readonly commits?: number
  /** Of a walk with --full. */
  readonly breaches?: readonly string[]
  /** Of the secrets' key, where the file is not held. */
  readonly key?: KeyFile & { readonly fits: boolean; readonly is_given: boolean }
}

export interface Facts {
  readonly now_ms: number
  readonly node: string
  /** Why native files do not load; missing where they do. */
  readonly native_faults?: readonly string[]
  readonly is_full: boolean
  readonly public_url?: string
  readonly db: string
  readonly file?: FileFacts
  readonly key_file?: FileFacts
  readonly disk?: { readonly type: number; readonly free_bytes: number }
  readonly owner?: OwnerRecord & { readonly is_alive: boolean }
  /**
   * `held`: by a process that cannot be asked; `refused`: an opening would be, with `fault`;
   * `node`: the copy of a node that is closed, or of one that is not the owner, with `fault`.
   */
  readonly state: 'missing' | 'closed' | 'served' | 'node' | 'held' | 'refused' | 'unreadable'
  /** Of the copy of a node that is closed, and what it has in words. */
  readonly node_mark?: NodeMark
  readonly node_has?: string
  /** Of the secrets' key, of the copy of a node that is closed; undefined where it needs none. */
  readonly node_key?: NonNullable<Inside['key']>
  /** Where its database was named. */
  readonly cluster?: ClusterFacts
  readonly fault?: { readonly code: string; readonly message: string }
  /** Of a closed file. */
  readonly format?: number
  readonly inside?: Inside
  readonly certificates?: readonly CertificateFacts[]
  readonly system: SystemLimits
  readonly backup?: FileFacts | 'missing'
  /** Of the file of databases: its names, or what is wrong with it. */
  readonly databases?: readonly string[] | { readonly wrong: string }
}

export interface DoctorOptions {
  readonly db: string
  readonly is_full: boolean
  readonly tls: string | undefined
  readonly backup: string | undefined
  readonly public_url: string | undefined
  readonly commit_log: string | undefined
  readonly partition: number
  readonly secret_key: string | undefined
  /** Undefined where none was named. */
  readonly databases: Facts['databases'] | undefined
}

export async function collectFacts(options: DoctorOptions, io: Io): Promise<Facts> {
  const { db, is_full, tls, public_url } = options
  const file = await fileAt(db)
  const path = file?.path ?? db
  const found = file === undefined ? ({ state: 'missing' } as const) : await look(path, options, io)
  const pid = found.state === 'served' || found.state === 'held' ? found.owner?.pid : undefined
  const key_file = await fileAt(`${path}.key`)
  const disk = await diskOf(dirname(path))
  const native_faults = await nativeFaults()
  const backup = options.backup === undefined ? undefined : await fileAt(options.backup)
  return {
    ...{ now_ms: io.clock.now_ms(), node: io.node, native_faults, is_full, db },
    ...defined({ public_url, file, key_file, disk, databases: options.databases }),
    ...found,
    ...(tls === undefined ? {} : { certificates: await certificateFacts(tls) }),
    ...(options.commit_log === undefined
      ? {}
      : { cluster: await clusterFacts(options.commit_log, options.partition, io) }),
    system: await systemLimits(pid),
    ...(options.backup === undefined ? {} : { backup: backup ?? 'missing' }),
  }
}

async function nativeFaults(): Promise<string[]> {
  const loads = await Promise.allSettled([loadLmdb(), loadFileLock()])
  return loads.flatMap((load) => (load.status === 'rejected' ? [load.reason.message] : []))
}

type Looked =
  | ('state' | 'fault' | 'owner' | 'inside')
  | ('format' | 'node_mark' | 'node_has' | 'node_key')
type Found = Pick<Facts, Looked>

const ask_ms_max = 10_000

async function look(path: string, options: DoctorOptions, io: Io): Promise<Found> {
  const record = await readOwner(path)
  const owner = record && { ...record, is_alive: io.isAlive(record.pid) }
  const known = owner === undefined ? {} : { owner }
  try {
    const lock = await lockFile(path)
    if (lock === undefined) return { ...known, ...(await askHolder(path, options, io)) }
    try {
      return { ...known, ...(await lookInside(path, options, io)) }
    } finally {
      await lock.release()
    }
  } catch (error) {
    return { ...known, ...refusal(error) }
  }
}

function refusal(error: unknown): Pick<Found, 'state' | 'fault'> {
  const { code = 'internal_error', message } = error as NodeJS.ErrnoException
  const is_refused = isFault(error) && (error.cause === undefined || code === 'not_a_database')
  return { state: is_refused ? 'refused' : 'unreadable', fault: { code, message } }
}

async function askHolder(path: string, { is_full }: DoctorOptions, io: Io): Promise<Found> {
  const held = { state: 'held' } as const
  try {
    const asked = await within(io.clock, ask_ms_max, connectOwner(path))
    if (asked === 'late') return { ...held, fault: { code: 'late', message: 'it does not answer' } }
    if (asked === undefined) return held
    try {
      const answer = await within(io.clock, ask_ms_max, asked.call('doctor', {}))
      if (answer === 'late') {
        return { ...held, fault: { code: 'late', message: 'it does not answer' } }
      }
      const { limits, ...diagnosis } = answer
      const checked = is_full ? await asked.call('check', {}) : {}
      return { state: 'served', inside: { diagnosis, limits, ...checked } }
    } finally {
      await asked.close()
    }
  } catch (error) {
    const { code = 'internal_error', message } = error as NodeJS.ErrnoException
    // A standby answers `not_possible`, a node whose database is away `overloaded`.
    const is_node = code === 'not_possible' || code === 'overloaded'
    if (is_node) return { state: 'node', fault: { code, message } }
    return { ...held, fault: { code, message } }
  }
}

async function lookInside(path: string, options: DoctorOptions, io: Io): Promise<Found> {
  const { secret_key } = options
  const view = await openReadOnly(path, { takes_nodes: true })
  try {
    const { node } = view
    const check = keyCheckIn(view)
    const key = keyOf(`${path}.key`, secret_key, check)
    const of_node = node && {
      ...{ state: 'node' as const, node_mark: node.mark, node_has: node.says },
      ...(check === undefined ? {} : { node_key: key }),
    }
    const found = formatIn(view) ?? 0
    if (found !== format) return of_node ?? { state: 'closed', format: found }
    const walked = options.is_full ? await checkStore(readingStore(view), new Set()) : {}
    const inside = {
      diagnosis: diagnose(view, io.clock.now_ms()),
      limits: limitsWith({}),
      ...{ commits: view.commits, ...walked, ...(check === undefined ? {} : { key }) },
    }
    // What is late in a copy is not late where the cluster goes on.
    if (of_node !== undefined) return { ...of_node, ...(options.is_full && { inside }) }
    return { state: 'closed', format, inside }
  } finally {
    await view.close()
  }
}

function keyOf(path: string, given: string | undefined, check = ''): NonNullable<Inside['key']> {
  const file = readKeyFile(path)
  const fits = keyFits(given ?? file.key, check)
  return { ...file, fits, is_given: given !== undefined }
}

async function fileAt(path: string): Promise<FileFacts | undefined> {
  try {
    const real = await realpath(path)
    const { mode, size, mtimeMs } = await stat(real)
    return { path: real, mode, bytes: size, at_ms: mtimeMs }
  } catch {
    return undefined
  }
}

async function diskOf(folder: string): Promise<Facts['disk']> {
  try {
    const { type, bavail, bsize } = await statfs(folder)
    return { type, free_bytes: bavail * bsize }
  } catch {
    return undefined
  }
}
