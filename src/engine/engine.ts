/**
 * The engine over a store: admission, the one write door `apply`, and what hangs on it.
 *
 * The way of a list of ops: each op parsed → admitted or refused as a whole → one transaction
 * applies them in order, with the lists that came in the same turn → the commit is on disk → timers
 * and watchers are told → results. Nothing is answered before that; a refused op is a result, and
 * only breakage rejects.
 */

import { bytesOf, objectOf } from '../codec/json.ts'
import { metaKey } from '../codec/keys.ts'
import { isOp, parseOp, parseTaskOp } from '../codec/op.ts'
import { docOfPlain } from '../codec/plain-value.ts'
import type { Chance, Clock } from '../core/clock.ts'
import { type Fault, fault, isStoreGone, type WholeFaultCode } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Caller, JsonValue, Op, OpResult, OpType, ShowOp, Task } from '../core/model.ts'
import type { Store, View } from '../store/store.ts'
import { newAdmission } from './admission.ts'
import type { Engine, EngineOptions, TargetInput } from './api.ts'
import { newCatalog } from './catalog.ts'
import { checkStore } from './check.ts'
import type { Handlers } from './handlers.ts'
import { type Executors, newJobDispatcher } from './job-dispatcher.ts'
import { applyOp, taskIn } from './ops.ts'
import { newProcesses } from './processes.ts'
import { rateLimit } from './rate-limit.ts'
import { cancelTask, listAll, retryTask } from './tasks.ts'
import { newTimers } from './timers.ts'
import {
  type CommitEvents,
  type EngineContext,
  newReadContext,
  newTransactionContext,
  type ReadContext,
} from './transaction-context.ts'
import { newTransactions } from './transactions.ts'
import { newAnswers } from './unread-answers.ts'
import { openUsers } from './users.ts'
import { newWatchers } from './watch.ts'

export interface EngineParts {
  readonly path: string
  readonly store: Store
  readonly limits: Limits
  readonly clock: Clock
  readonly chance: Chance
  /** Where the key of the secrets stands; undefined for a store in memory. */
  readonly key_path: string | undefined
  /** What the store told of its failed commit, if it has. */
  readonly failure: () => Fault | undefined
  readonly options: EngineOptions
  readonly executors: Executors
  readonly handlers: Handlers
}

/** Starts an engine on a store whose format has been checked (open.ts). */
export async function startEngine(parts: EngineParts): Promise<Engine> {
  const { path, store, limits, clock, chance, options, handlers } = parts
  const watchers = newWatchers(limits.watch_changes_max)
  const catalog = newCatalog()
  const engine_context: EngineContext = {
    catalog,
    limits,
    id_middle: await store.view(idMiddle),
    fraction: () => chance.fraction(),
    variables: variablesOf(options.variables, limits),
    isHandled: (name) => handlers.has(name),
    isWatched: watchers.isWatched,
  }
  const admission = newAdmission({ limits, store, failure: parts.failure })
  const transactions = newTransactions({
    store,
    clock,
    workspace: newTransactionContext(engine_context),
    publish,
  })
  /** What an administrator changes comes behind what was asked for before it. */
  const inTurn: Store = { ...store, update: transactions.change }
  const users = await openUsers({
    store: inTurn,
    clock,
    chance,
    key_path: parts.key_path,
    given_key: options.secret_key,
    certificate_name_bytes_max: limits.certificate_name_bytes_max,
  })
  const timers = newTimers({
    clock,
    slice_tasks_max: limits.slice_tasks_max,
    ended_kept_ms: limits.ended_kept_ms,
    transact: transactions.run,
    view: (fn) => store.view(fn),
    hasRoom: admission.hasRoom,
    onError: (error) => options.onBug?.(error),
  })
  const jobs = newJobDispatcher({
    clock,
    limits,
    fraction: engine_context.fraction,
    transact: transactions.run,
    hasRoom: admission.hasRoom,
    read: readDurable,
    executors: parts.executors,
    onError: (error) => {
      if (!isStoreGone(error)) options.onBug?.(error)
    },
  })
  const processes = newProcesses({
    store: inTurn,
    catalog,
    limits,
    isHandled: engine_context.isHandled,
    noteProcess: (conv_id) => {
      timers.noteProcess(conv_id)
      jobs.noteProcess()
    },
  })
  const rate = rateLimit(limits.rate_ops_per_s, () => clock.now_ms())
  let closing: Promise<void> | undefined

  function readDurable<T>(fn: (context: ReadContext) => T): Promise<T> {
    return store.view((view) => fn(newReadContext(view, engine_context, clock.now_ms())))
  }

  function publish({ timers: set_timers, has_ended, job_ms, changes }: CommitEvents): void {
    if (set_timers.size > 0) timers.noteArmed(set_timers)
    if (has_ended) timers.noteEnded()
    if (job_ms !== undefined) jobs.note(job_ms)
    if (changes.length > 0) watchers.publish(changes)
  }

  async function apply(ops: readonly unknown[], caller: Caller = {}): Promise<OpResult[]> {
    if (ops.length === 0) throw fault('format_error', 'ops is empty')
    if (ops.length > limits.ops_max) {
      throw fault('too_many_ops', `${ops.length} ops, at most ${limits.ops_max} in one request`)
    }
    return request(
      ops.map((raw) => parseOp(raw, limits)),
      caller,
    )
  }

  async function one(type: OpType, raw: object, caller: Caller = {}): Promise<OpResult> {
    const [result] = await request([parseTaskOp(type, raw, limits)], caller)
    return result as OpResult
  }

  /** The results, one for each op, once they are on disk. Throws where nothing may come in now. */
  function request(ops: readonly (Op | OpResult)[], caller: Caller): Promise<OpResult[]> {
    let bytes = 0
    for (const op of ops) bytes += weightOf(op)
    if (caller.user !== undefined) rate.check(caller.user)
    admission.enter(ops.length, bytes)
    if (caller.user !== undefined) rate.take(caller.user, ops.length)
    return transactions
      .run((context) => ops.map((op) => (isOp(op) ? applyOp(context, op, caller) : op)))
      .then(
        (results) => {
          admission.leave(ops.length, bytes)
          return results
        },
        (error: unknown) => {
          admission.leave(ops.length, bytes)
          if (isStoreGone(error)) throw error
          options.onBug?.(error)
          throw fault('internal_error', undefined, { cause: error })
        },
      )
  }

  /** The show op of a target; a malformed one is a programmer's mistake and throws. */
  function targetOp(target: TargetInput): ShowOp {
    const op = parseTaskOp('show', target, limits)
    if (isOp(op)) return op as ShowOp
    throw new TypeError(`${op.key}: ${op.description}`)
  }

  /** Inside the view also what throws at once is a rejection, with one promise in all. */
  function task(target: TargetInput): Promise<Task | undefined> {
    return store.view((view) => taskIn(view, targetOp(target)))
  }

  async function close(): Promise<void> {
    admission.close()
    transactions.flush()
    await timers.stop()
    await jobs.stop()
    transactions.flush()
    await store.close()
    watchers.close()
  }

  if (options.timers !== false) {
    await timers.start()
    jobs.start()
  }

  const engine: Engine = {
    path,
    limits,
    clock,
    apply,
    create: (op, caller) => one('create', op, caller),
    modify: (op, caller) => one('modify', op, caller),
    task,
    watch: (filter = {}) =>
      watchers.watch(filter.conv_id === undefined ? undefined : String(filter.conv_id)),
    putProcess: processes.put,
    putProcesses: processes.putMany,
    processes,
    tasks: {
      list: (conv_id, filter = {}) => listAll(store, catalog, String(conv_id), filter),
      retry: async (target, node_id) => {
        const op = targetOp(target)
        return transactions.run((context) => retryTask(context, op, node_id))
      },
      cancel: async (target) => {
        const op = targetOp(target)
        return transactions.run((context) => cancelTask(context, op))
      },
    },
    users,
    handle(name, handler, how) {
      const forget = handlers.add(name, handler, how)
      jobs.noteProcess()
      return forget
    },
    health: (): 'ok' | WholeFaultCode => admission.refusal()?.code ?? 'ok',
    checkRate: rate.check,
    answerAccount: newAnswers(limits),
    flush: () =>
      transactions
        .change(() => {})
        .then(
          () => {},
          () => {},
        ),
    check: () => checkStore(store),
    backup: async (to) => ({ path: to, bytes: await store.backup(to) }),
    close: () => {
      closing ??= close()
      return closing
    },
    [Symbol.asyncDispose]: () => engine.close(),
  }
  return engine
}

/** Variables as exact data; one that is no plain JSON value is the embedder's mistake. */
function variablesOf(
  given: EngineOptions['variables'],
  limits: Limits,
): EngineContext['variables'] {
  const variables: Record<string, JsonValue> = Object.create(null) as Record<string, JsonValue>
  for (const [name, value] of Object.entries(given ?? {})) {
    const doc = docOfPlain({ value }, limits.nesting_max)
    const read = typeof doc === 'string' ? undefined : objectOf(doc).value
    if (read === undefined) {
      throw new TypeError(`variable ${name}: ${typeof doc === 'string' ? doc : 'is undefined'}`)
    }
    variables[name] = read
  }
  return variables
}

/** Roughly the bytes an op holds in memory until it is on disk. */
function weightOf(op: Op | OpResult): number {
  return isOp(op) && op.type !== 'show' ? bytesOf(op.data.text) : 0
}

function idMiddle(view: View): string {
  const bytes = view.get(metaKey('id_middle'))
  if (bytes === undefined) throw new Error('the file has no id bytes')
  return bytes.toString('hex')
}
