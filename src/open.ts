/**
 * Opening a file: the lock, the store, the format, the engine, and the admin socket if wanted. The
 * only place that says which store a path means.
 *
 * In this order, so that a refused opening leaves nothing behind: lock the data file, open the tree
 * and fold in a log that was left, check the format (or write it into a new file) and tell who
 * holds it, start a log if wanted, start the engine. Closing goes the same way back.
 */
import { realpath } from 'node:fs/promises'
import { familySpan, metaKey } from './bytes/keys.ts'
import { decodeRecord, encodeRecord, type OwnerRecord } from './bytes/records.ts'
import { newDoers } from './doers/doers.ts'
import type { Engine, EngineOptions } from './engine/api.ts'
import { startEngine } from './engine/engine.ts'
import { newHandlers } from './engine/handlers.ts'
import { newAbsence } from './store/absence.ts'
import { storeOf } from './store/group.ts'
import type { LmdbTree } from './store/lmdb-tree.ts'
import { log_id_bytes } from './store/log/frame.ts'
import { head_key } from './store/log/head.ts'
import { recoverLog } from './store/log/recover.ts'
import { memoryTree } from './store/memory-tree.ts'
import type { Tree } from './store/store.ts'
import { type Chance, systemChance, systemClock } from './words/clock.ts'
import { type Fault, fault } from './words/faults.ts'
import { limitsWith } from './words/limits.ts'
import { version } from './words/version.ts'

export type { OwnerRecord } from './bytes/records.ts'

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
  const limits = limitsWith(options.limits)
  const { clock = systemClock, chance = systemChance } = options
  let failure: Fault | undefined
  const place = path === ':memory:' ? memoryPlace() : await lockPlace(path)
  try {
    const tree = await place.openTree()
    place.onLeave(() => tree.close())
    const is_new = checkFormat(tree, path)
    await place.foldLog()
    const socket = options.admin === true ? await adminSocket(place.path, options) : null
    const file_id = await signIn(tree, is_new, chance, socket)
    // The tree alone: what stands in a log was put from here on, and noted.
    const absence = newAbsence(tree, familySpan('ref'))
    const store = storeOf(options.log === true ? await place.startLog(chance) : tree, {
      absence,
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
      doers: newDoers({ limits, clock, allow_hosts: options.allow_hosts ?? [], handlers }),
    })
    place.onLeave(() => engine.close())
    if (socket !== null) {
      const { serveAdmin } = await import('./doors/admin/serve.ts')
      const door = await serveAdmin(engine, { socket, file_id, version })
      place.onLeave(() => door.close())
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
  const { peekLmdb } = await import('./store/lmdb-file.ts')
  const bytes = await peekLmdb(path, owner_key)
  return bytes === undefined ? undefined : decodeRecord<OwnerRecord>(bytes)
}

/** Where the data stands, and what to undo when leaving it, last first. */
interface Place {
  readonly path: string
  readonly key_path: string | undefined
  openTree(): Promise<Tree>
  /** Brings what a log beside the tree holds into it. */
  foldLog(): Promise<void>
  /** The tree behind a log of its own. */
  startLog(chance: Chance): Promise<Tree>
  onLeave(step: () => Promise<void>): void
  leave(): Promise<void>
}

function memoryPlace(): Place {
  const tree = memoryTree()
  return {
    path: ':memory:',
    key_path: undefined,
    openTree: async () => tree,
    foldLog: async () => {},
    startLog: async () => tree,
    ...leaving(),
  }
}

async function lockPlace(path: string): Promise<Place> {
  const { lockFile } = await import('./store/lock.ts')
  const lock = await lockFile(path)
  if (lock === undefined) {
    const owner = await readOwner(path)
    const who = owner === undefined ? 'another process' : `process ${owner.pid}`
    throw fault('file_held', `${path} is held by ${who}; one process owns a file`)
  }
  const steps = leaving()
  steps.onLeave(() => lock.release())
  const real_path = await realpath(path)
  let tree: LmdbTree
  return {
    path: real_path,
    key_path: `${real_path}.key`,
    openTree: async () => {
      const { openLmdbTree } = await import('./store/lmdb-tree.ts')
      tree = await openLmdbTree(real_path, { not_copied: [head_key] })
      return tree
    },
    foldLog: () => recoverLog(tree, real_path),
    startLog: async (chance) => {
      const { openLogTree } = await import('./store/log/tree.ts')
      return openLogTree(tree, real_path, { id: chance.bytes(log_id_bytes) })
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
  const { adminSocketPath } = await import('./doors/admin/place.ts')
  return adminSocketPath(real_path, { runtime_dir: options.runtime_dir }).socket
}

/** Whether the file is a new one; a file that is not ours, or not yet, is refused. */
function checkFormat(tree: Tree, path: string): boolean {
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

/**
 * Makes a new file ours, and writes down who holds it: into the tree itself, where a look from
 * outside finds it. Answers the file id.
 */
async function signIn(
  tree: Tree,
  is_new: boolean,
  chance: Chance,
  socket: string | null,
): Promise<string> {
  const id = is_new ? chance.bytes(file_id_bytes) : (tree.get(file_id_key) as Buffer)
  const file_id = id.toString('hex')
  const owner = encodeRecord({ pid: process.pid, socket, file_id, version })
  const writes = new Map([[owner_key, owner]])
  if (is_new) {
    writes.set(format_key, Buffer.from(String(format)))
    writes.set(file_id_key, id)
    writes.set(metaKey('id_middle'), chance.bytes(id_middle_bytes))
  }
  await tree.commit(writes)
  return file_id
}
