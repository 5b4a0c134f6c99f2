/**
 * Opens an engine on a data file: locks the file, opens LMDB, checks the format, recovers or starts
 * the commit log, writes the owner record, starts the engine and opens the admin socket. `close`,
 * and a refused open, undo this in reverse order while they still hold the lock.
 */
import { realpath } from 'node:fs/promises'
import { keysOfType, metaKey, replaysOf } from './codec/keys.ts'
import { type Chance, onNextTurn, systemChance, systemClock } from './core/clock.ts'
import { defined } from './core/defined.ts'
import type { EventName } from './core/event-table.ts'
import { type Emit, newEvents } from './core/events.ts'
import { type Fault, fault } from './core/faults.ts'
import { type Limits, limitsWith } from './core/limits.ts'
import { version } from './core/version.ts'
import { nodeKeyFault } from './engine/access/encryption-key.ts'
import { keyCheckIn } from './engine/access/secrets.ts'
import type { GivenDatabases } from './engine/api/database-api.ts'
import type { Engine, EngineOptions } from './engine/api/engine-api.ts'
import { startEngine } from './engine/engine.ts'
import { checkFormat, format, format_key, formatIn } from './engine/file/format.ts'
import { newHandlers } from './engine/jobs/handlers.ts'
import { standbyReads } from './engine/standby-reader.ts'
import { codeStart } from './executors/code-script.ts'
import { newExecutors } from './executors/executors.ts'
import type { AdminServer } from './server/admin/server.ts'
import { newBloomFilter } from './store/bloom-filter.ts'
import { type ChangeBuffer, newChangeBuffer } from './store/changes/change-buffer.ts'
import { checkMayStart } from './store/commit-log/checkpoint-process.ts'
import { checkpointScript } from './store/commit-log/checkpoint-script.ts'
import { commit_log_id_bytes } from './store/commit-log/frame.ts'
import { readLogMark } from './store/commit-log/log-mark.ts'
import { nodeFileFault } from './store/commit-log/node-mark.ts'
import type { CommitLogOpening, Standby } from './store/commit-log/source.ts'
import { openingError } from './store/disk/file-system.ts'
import { readOwner, removeOwner, writeOwner } from './store/disk/owner-file.ts'
import { storeOf } from './store/group-commit.ts'
import { memoryTree } from './store/memory-tree.ts'
import type { Tree } from './store/tree.ts'

const file_id_key = metaKey('file_id')
const file_id_bytes = 8
const id_middle_bytes = 5

/**
 * Opens a data file, which is created if missing, or `:memory:`. One process at a time has it.
 *
 *     const engine = await openEngine('tasks.lmdb')
 *     await engine.processes.put(order)
 *     await engine.create({ conv_id: order.obj_id, ref: 'order-1', data: { amount: 120 } })
 *     await engine.close()
 *
 * Rejects with an admin Fault: `file_held` if another process has it, `not_a_database`,
 * `older_format`, `newer_format`, `native_not_loaded` or `not_possible`, each with a sentence that
 * says what to do; with a RangeError for an invalid limit, and a TypeError for a logger without one
 * of the levels.
 */
export async function openEngine(path: string, options: EngineOptions = {}): Promise<Engine> {
  // A bundle without the scripts of the threads is refused here, not when it first needs one.
  checkpointScript()
  codeStart()
  const limits = limitsWith(options.limits)
  const { clock = systemClock, chance = systemChance } = options
  const events = newEvents(options.logger, clock)
  const { emit } = events
  // What happens before the engine can count it, such as a recovery.
  const early_events: EventName[] = []
  const endEarly = events.on((event) => void early_events.push(event))
  const began_ms = clock.now_ms()
  const handlers = newHandlers({ clock, limits, given: options.handlers })
  const is_memory = path === ':memory:'
  let failure: Fault | undefined
  let emitFailed = (_failure: Fault): void => {}
  const failed = new Promise<Fault>((resolve) => {
    emitFailed = resolve
  })
  // The commit log of a node is at servers, whose errors say whether to try again.
  const refused = (error: unknown): unknown =>
    options.commit_log === undefined ? openingError(path, error) : error
  checkBackup(path, options)
  const file = is_memory
    ? memoryFile()
    : await lockedFile(path, chance, limits, options).catch((error) => {
        throw refused(error)
      })
  try {
    const socket = options.admin === true ? await adminSocket(file.path, options) : null
    const standby = is_memory ? undefined : options.commit_log?.standby
    const admin = standby && (await adminOfNode(file, { ...standby, emit }, socket, chance))
    const databases = options.databases && (await withDatabases(options.databases))
    const executors = newExecutors({
      ...{ limits, clock, chance, handlers },
      allow_hosts: options.allow_hosts ?? [],
      databases: databases?.instances,
    })
    const parts = {
      ...{ path: file.path, clock, chance, key_path: file.key_path, handlers, executors },
      db_call: databases?.db_call,
      failure: () => failure,
      failed,
    }
    const tree = await file.openTree((found) => claimOf(found, path, chance), {
      emit,
      reads: standbyReads({ ...parts, limits, options, events }),
    })
    const file_id = (tree.get(file_id_key) as Buffer).toString('hex')
    if (!is_memory && standby === undefined) {
      await writeOwner(file.path, { pid: process.pid, socket, file_id, version })
    }
    const store = storeOf(tree, {
      filter: newBloomFilter(tree, keysOfType('ref')),
      emit,
      slow_commit_ms: limits.slow_commit_ms,
      free_bytes_min: limits.disk_free_bytes_min,
      onFail: (store_failure) => {
        failure = store_failure
        emitFailed(store_failure)
        // Not called within the commit, so that a throw of the embedder does not reach the store.
        onNextTurn(() => options.onFailure?.(store_failure))
      },
    })
    file.onClose(() => store.close())
    endEarly()
    const engine = await startEngine({ ...parts, early_events, store, limits, options, events })
    file.onClose(() => engine.close())
    if (admin !== undefined) {
      admin.use(engine)
      file.onClose(admin.close)
    } else if (socket !== null) {
      const { serveAdmin } = await import('./server/admin/server.ts')
      const server = await serveAdmin(engine, { socket, file_id, version })
      file.onClose(() => server.close())
    }
    let closing: Promise<void> | undefined
    const close = (): Promise<void> => {
      // The admin server answers what it has first, and no job starts meanwhile.
      engine.drain().catch(() => {})
      tree.endWithin?.(limits.drain_ms_max)
      closing ??= file
        .close()
        .then(() => emit('closed', { path: file.path }))
        .finally(events.close)
      return closing
    }
    emit('opened', { path: file.path, version, ms: clock.now_ms() - began_ms })
    return { ...engine, close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await file.close().finally(events.close)
    throw refused(error)
  }
}

/** Throws a RangeError, or `not_possible` for data that has no commit log beside its file. */
function checkBackup(path: string, { backup_to, backup_lag_ms, commit_log }: EngineOptions): void {
  const is_lag =
    backup_lag_ms === undefined || (Number.isInteger(backup_lag_ms) && backup_lag_ms > 0)
  if (!is_lag) throw new RangeError('backup_lag_ms is a positive integer')
  if (backup_to === undefined) return
  if (path === ':memory:') throw fault('not_possible', 'a store in memory has no backup')
  if (commit_log === undefined) return
  const helps = 'back that database up, or leave out backup_to'
  throw fault('not_possible', `the commit log of a node is in PostgreSQL: ${helps}`)
}

/** Loads what only an engine with databases needs. */
async function withDatabases(given: GivenDatabases) {
  const { databasesOf } = await import('./executors/databases/instances.ts')
  return databasesOf(given)
}

/** Where the data is, and what to undo at the close, the last step first. */
interface DataFile {
  readonly path: string
  readonly key_path: string | undefined
  /** `claim` returns the changes that make a new file one of the engine's. */
  openTree(
    claim: (found: Reads) => ChangeBuffer | undefined,
    opening: Pick<CommitLogOpening, 'emit' | 'reads'>,
  ): Promise<Tree>
  onClose(step: () => Promise<void>): void
  close(): Promise<void>
}

type Reads = Pick<Tree, 'get' | 'range'>

function memoryFile(): DataFile {
  return {
    path: ':memory:',
    key_path: undefined,
    async openTree(claim) {
      const tree = memoryTree()
      await tree.commit(claim(tree) ?? newChangeBuffer())
      return tree
    },
    ...closingSteps(),
  }
}

async function lockedFile(
  path: string,
  chance: Chance,
  limits: Limits,
  options: EngineOptions,
): Promise<DataFile> {
  const { loadLmdb } = await import('./store/lmdb/database.ts')
  const { openDataFile } = await import('./store/data-file.ts')
  checkMayStart(path)
  const { lockDataFile } = await import('./store/restored-file.ts')
  // Before the lock makes a file that then could not be opened.
  await loadLmdb()
  const lock = await lockDataFile(path)
  if (lock === undefined) {
    const owner = await readOwner(path)
    const who = owner === undefined ? 'another process' : `process ${owner.pid}`
    throw fault('file_held', `${path} is held by ${who}; one process owns a file`)
  }
  const steps = closingSteps()
  steps.onClose(() => lock.release())
  const real_path = await realpath(path)
  steps.onClose(async () => {
    const { removeLockFile } = await import('./store/lmdb/lock-file.ts')
    await removeLockFile(real_path)
    await removeOwner(real_path)
  })
  return {
    path: real_path,
    key_path: `${real_path}.key`,
    async openTree(claim, { emit, reads }) {
      const { openCommitLogTree } = await import('./store/commit-log/open.ts')
      const below = await openDataFile(real_path, {
        lock_fd: lock.fd,
        growing: [replaysOf('signed_at'), replaysOf('keyed_at')],
        probe: options.probe,
      })
      steps.onClose(() => below.close())
      const { commit_log: source, secret_key: given_key } = options
      if (source !== undefined) {
        const tree = await source.open({
          ...{ tree: below, path: real_path, emit, claim, bytes: chance.bytes, reads },
          reserve_bytes: limits.disk_free_bytes_min,
          checkpoint_bytes: limits.checkpoint_bytes,
          slow_commit_ms: limits.slow_commit_ms,
          blocking: options.blocking_commits ?? true,
          async checkKey(found) {
            const key_path = `${real_path}.key`
            const key_fault = nodeKeyFault(keyCheckIn(found), { key_path, given_key })
            if (key_fault !== undefined) throw key_fault
          },
        })
        steps.onClose(() => tree.close())
        return tree
      }
      const is_alone = (await readLogMark(real_path)) !== undefined
      const node_file = is_alone ? undefined : nodeFileFault(below, real_path)
      if (node_file !== undefined) throw node_file
      const tree = await openCommitLogTree(below, real_path, {
        id: chance.bytes(commit_log_id_bytes),
        claim,
        blocking: options.blocking_commits ?? true,
        reserve_bytes: limits.disk_free_bytes_min,
        checkpoint_bytes: limits.checkpoint_bytes,
        slow_commit_ms: limits.slow_commit_ms,
        emit,
      })
      steps.onClose(() => tree.close())
      if (options.backup_to !== undefined) {
        const { startBackup } = await import('./backups/backup.ts')
        const { clock = systemClock, backup_to: to, backup_lag_ms: lag_ms } = options
        const backup = startBackup({
          ...{ tree, path: real_path, to, clock, chance, emit, options: defined({ lag_ms }) },
        })
        // Between the last commit and the close of the tree.
        steps.onClose(backup.close)
      }
      return tree
    },
    ...steps,
  }
}

function closingSteps(): Pick<DataFile, 'onClose' | 'close'> {
  const steps: (() => Promise<void>)[] = []
  return {
    onClose: (step) => steps.unshift(step),
    async close() {
      // A failed step does not stop the others, so the lock is always released.
      const ends = []
      for (const step of steps)
        ends.push(await step().then(undefined, (error: unknown) => ({ error })))
      const failed = ends.find((end) => end !== undefined)
      if (failed !== undefined) throw failed.error
    },
  }
}

/** A node is asked before it is the owner too, so its socket opens with its data file. */
async function adminOfNode(
  file: DataFile,
  { backup, refusal, emit }: Standby & { readonly emit: Emit },
  socket: string | null,
  chance: Chance,
): Promise<AdminServer | undefined> {
  const { path } = file
  // That of the state is the same at all nodes.
  const file_id = chance.bytes(file_id_bytes).toString('hex')
  await writeOwner(path, { pid: process.pid, socket, file_id, version })
  if (socket === null) return undefined
  const { serveAdmin } = await import('./server/admin/server.ts')
  const server = await serveAdmin({ backup, refusal, emit, path }, { socket, file_id, version })
  file.onClose(server.close)
  return server
}

async function adminSocket(real_path: string, options: EngineOptions): Promise<string> {
  if (real_path === ':memory:') throw fault('not_possible', 'a store in memory has no admin socket')
  const { adminSocketPath } = await import('./server/admin/socket-path.ts')
  return adminSocketPath(real_path, { runtime_dir: options.runtime_dir }).socket
}

/**
 * What makes a new file one of the engine's. Throws for a file of another program or format.
 */
function claimOf(found: Reads, path: string, chance: Chance): ChangeBuffer | undefined {
  const found_format = formatIn(found)
  if (found_format !== undefined) {
    checkFormat(found_format, path)
    return undefined
  }
  for (const _entry of found.range('', '\xff', false)) {
    throw fault('not_a_database', `${path} holds something else; name another file`)
  }
  const changes = newChangeBuffer()
  changes.put(format_key, Buffer.from(String(format)))
  changes.put(file_id_key, chance.bytes(file_id_bytes))
  changes.put(metaKey('id_middle'), chance.bytes(id_middle_bytes))
  return changes
}
