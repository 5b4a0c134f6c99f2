/**
 * Opening a file: the lock, the store, the format, the engine, and the admin socket if wanted. The
 * only place that says which store a path means.
 *
 * In this order, so that a refused opening leaves nothing behind: lock the data file, open the
 * tree, check the format, open the log or take over one that was left, with the word of who holds
 * the file (and the format of a new one), start the engine. Closing goes the same way back.
 */
import { realpath } from 'node:fs/promises'
import { type Key, keysOfType, metaKey } from './codec/keys.ts'
import { decodeRecord, encodeRecord, type OwnerRecord } from './codec/records.ts'
import { type Chance, systemChance, systemClock } from './core/clock.ts'
import { type Fault, fault } from './core/faults.ts'
import { type Limits, limitsWith } from './core/limits.ts'
import { version } from './core/version.ts'
import type { Engine, EngineOptions } from './engine/api.ts'
import { startEngine } from './engine/engine.ts'
import { newHandlers } from './engine/handlers.ts'
import { codeStart } from './executors/code-script.ts'
import { newExecutors } from './executors/executors.ts'
import { newBloomFilter } from './store/bloom-filter.ts'
import { storeOf } from './store/group-commit.ts'
import { checkpointScript } from './store/log/checkpoint-script.ts'
import { log_id_bytes } from './store/log/frame.ts'
import { manifest_key } from './store/log/manifest.ts'
import { memoryTree } from './store/memory-tree.ts'
import type { Tree } from './store/store.ts'

export type { OwnerRecord } from './codec/records.ts'

/** Files of a higher format were written by a newer program. */
const format = 1
const format_key = metaKey('format')
const file_id_key = metaKey('file_id')
const owner_key = metaKey('owner')
const file_id_bytes = 8
const id_middle_bytes = 5

/**
 * Opens a data file, made if missing, or `:memory:`. Rejects with an admin Fault: `file_held` where
 * another process has it, `not_a_database`, `newer_format`, `not_possible`, each with one sentence
 * that says what to do; with a RangeError for a limit that is none.
 */
export async function openEngine(path: string, options: EngineOptions = {}): Promise<Engine> {
  // Else a bundle would find out that it has no threads when it first needs one.
  checkpointScript()
  codeStart()
  const limits = limitsWith(options.limits)
  const { clock = systemClock, chance = systemChance } = options
  let failure: Fault | undefined
  const place = path === ':memory:' ? memoryPlace() : await lockPlace(path, chance, limits, options)
  try {
    const socket = options.admin === true ? await adminSocket(place.path, options) : null
    let file_id = ''
    const tree = await place.openTree((found) => {
      const claim = claimOf(found, path, chance, socket)
      file_id = claim.file_id
      return claim.writes
    })
    const store = storeOf(tree, {
      filter: newBloomFilter(tree, keysOfType('ref')),
      onFail: (told) => {
        failure = told
        // The embedder's code runs in a turn of its own, so that its throw is its own.
        setImmediate(() => options.onFailure?.(told))
      },
    })
    place.onLeave(() => store.close())
    const handlers = newHandlers({ clock, limits })
    const engine = await startEngine({
      path: place.path,
      store,
      limits,
      clock,
      chance,
      key_path: place.key_path,
      failure: () => failure,
      options,
      handlers,
      executors: newExecutors({ limits, clock, allow_hosts: options.allow_hosts ?? [], handlers }),
    })
    place.onLeave(() => engine.close())
    if (socket !== null) {
      const { serveAdmin } = await import('./server/admin/server.ts')
      const server = await serveAdmin(engine, { socket, file_id, version })
      place.onLeave(() => server.close())
    }
    let leaving: Promise<void> | undefined
    const close = (): Promise<void> => {
      leaving ??= place.leave()
      return leaving
    }
    return { ...engine, close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await place.leave()
    throw error
  }
}

/** Who holds the file, by its own word; undefined where nobody has told or it cannot be read. */
export async function readOwner(path: string): Promise<OwnerRecord | undefined> {
  const { peekLmdb } = await import('./store/lmdb/file.ts')
  const bytes = await peekLmdb(path, owner_key)
  return bytes === undefined ? undefined : decodeRecord<OwnerRecord>(bytes)
}

/** Where the data stands, and what to undo when leaving it, last first. */
interface Place {
  readonly path: string
  readonly key_path: string | undefined
  /** `claim` answers what to write first into the tree it is given. Leaving closes the tree. */
  openTree(claim: (found: Reads) => Claim['writes']): Promise<Tree>
  onLeave(step: () => Promise<void>): void
  leave(): Promise<void>
}

type Reads = Pick<Tree, 'get' | 'range'>

function memoryPlace(): Place {
  return {
    path: ':memory:',
    key_path: undefined,
    async openTree(claim) {
      const tree = memoryTree()
      await tree.commit(claim(tree))
      return tree
    },
    ...leaving(),
  }
}

async function lockPlace(
  path: string,
  chance: Chance,
  limits: Limits,
  options: EngineOptions,
): Promise<Place> {
  const { lockFile } = await import('./store/file-lock.ts')
  const lock = await lockFile(path)
  if (lock === undefined) {
    const owner = await readOwner(path)
    const who = owner === undefined ? 'another process' : `process ${owner.pid}`
    throw fault('file_held', `${path} is held by ${who}; one process owns a file`)
  }
  const steps = leaving()
  steps.onLeave(() => lock.release())
  const real_path = await realpath(path)
  return {
    path: real_path,
    key_path: `${real_path}.key`,
    async openTree(claim) {
      const { openLmdbTree } = await import('./store/lmdb/tree.ts')
      const { openLogTree } = await import('./store/log/open.ts')
      const { probeLmdb } = await import('./store/lmdb/probe.ts')
      const below = await openLmdbTree(real_path, {
        not_copied: [manifest_key],
        probe: options.probe === true ? probeLmdb : undefined,
      })
      steps.onLeave(() => below.close())
      const tree = await openLogTree(below, real_path, {
        id: chance.bytes(log_id_bytes),
        claim: claim(below),
        blocking: options.blocking_commits ?? true,
        reserve_bytes: limits.disk_free_bytes_min,
        ...(options.onNotice === undefined ? {} : { onNotice: options.onNotice }),
      })
      steps.onLeave(() => tree.close())
      return tree
    },
    ...steps,
  }
}

function leaving(): Pick<Place, 'onLeave' | 'leave'> {
  const steps: (() => Promise<void>)[] = []
  return {
    onLeave: (step) => steps.unshift(step),
    async leave() {
      // Each step is taken whatever the others do, so that the lock never stays behind.
      const ends = []
      for (const step of steps)
        ends.push(await step().then(undefined, (error: unknown) => ({ error })))
      const failed = ends.find((end) => end !== undefined)
      if (failed !== undefined) throw failed.error
    },
  }
}

async function adminSocket(real_path: string, options: EngineOptions): Promise<string> {
  if (real_path === ':memory:') throw fault('not_possible', 'a store in memory has no admin socket')
  const { adminSocketPath } = await import('./server/admin/socket-path.ts')
  return adminSocketPath(real_path, { runtime_dir: options.runtime_dir }).socket
}

interface Claim {
  readonly writes: Map<Key, Buffer>
  readonly file_id: string
}

/**
 * What makes a new file ours, and who holds it: in the tree itself, where a look from outside finds
 * it. Throws for a file that is not ours, or not yet.
 */
function claimOf(found: Reads, path: string, chance: Chance, socket: string | null): Claim {
  const is_new = isNew(found, path)
  const id = is_new ? chance.bytes(file_id_bytes) : (found.get(file_id_key) as Buffer)
  const file_id = id.toString('hex')
  const owner = encodeRecord({ pid: process.pid, socket, file_id, version })
  const writes = new Map([[owner_key, owner]])
  if (is_new) {
    writes.set(format_key, Buffer.from(String(format)))
    writes.set(file_id_key, id)
    writes.set(metaKey('id_middle'), chance.bytes(id_middle_bytes))
  }
  return { writes, file_id }
}

function isNew(tree: Reads, path: string): boolean {
  const found = tree.get(format_key)
  if (found !== undefined) {
    if (Number(found.toString('utf8')) <= format) return false
    throw fault('newer_format', `${path} was written by a newer conveyor; use that one`)
  }
  for (const _entry of tree.range('', '\xff', false)) {
    throw fault('not_a_database', `${path} holds something else; name another file with --db`)
  }
  return true
}
