/**
 * The engine over a store. An op goes through its parts in this order:
 *
 *     task-calls           parses an embedder's input; servers parse their own
 *     submission           takes the ops of a request
 *     admission            refuses or delays requests; bounds what waits
 *     transaction-queue    runs the requests of one turn in one store transaction
 *     ops                  checks each op, then creates, modifies or shows a task
 *     advance              runs the logics of the task until it waits, ends or fails
 *     task-store           writes the task and its index keys
 *     run-queue            runs the other tasks that became ready
 *
 * Results return, and effects reach the timers, the job dispatcher and the change feed, once the
 * transaction is durable. Timers, schedules, job outcomes, retry and cancel enter at
 * transaction-queue.
 */
import { type Key, metaKey } from '../codec/keys.ts'
import { plainBounds } from '../codec/plain-value.ts'
import { type Chance, type Clock, systemClock } from '../core/clock.ts'
import { newCounters } from '../core/counters.ts'
import type { EventName } from '../core/event-table.ts'
import { bugReporter, type Emit, type Events } from '../core/events.ts'
import { type Fault, fault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Task } from '../core/model.ts'
import type { DbCallKinds } from '../process/logic.ts'
import type { Store, View } from '../store/store.ts'
import { newAddresses } from './access/addresses.ts'
import { openBindings } from './access/certificate-bindings.ts'
import { openSecrets } from './access/secrets.ts'
import { openUsers } from './access/users.ts'
import type { Drafts, ProcessDraft } from './api/draft-api.ts'
import type { EngineOptions } from './api/engine-api.ts'
import { openChangeWindow } from './changes/change-window.ts'
import { newChangeFeed } from './changes/changes.ts'
import { newImporter } from './definitions/imports.ts'
import { newProcesses, type ProcessParts } from './definitions/processes.ts'
import { checkStore } from './file/check.ts'
import { newDiagnosis } from './file/diagnosis.ts'
import { newFlow } from './flow/flow.ts'
import { newFlowCounters } from './flow/flow-counters.ts'
import { newHandOver } from './jobs/hand-over.ts'
import type { Handlers } from './jobs/handlers.ts'
import { type Executors, newJobDispatcher } from './jobs/job-dispatcher.ts'
import { newReadiness, newStatisticsReader } from './readiness.ts'
import { openReplays } from './replays/replays.ts'
import { newResults } from './requests/results.ts'
import { newSubmission } from './requests/submission.ts'
import { newTraces } from './requests/traces.ts'
import { newAnswerAccounts } from './requests/unread-answers.ts'
import { newSchedules } from './schedules/schedules.ts'
import type { ServedEngine } from './served-engine.ts'
import { newTaskCalls } from './task-calls.ts'
import { newTimers } from './timers/due-work.ts'
import { newAdmission } from './transactions/admission.ts'
import { newBackground, type Work } from './transactions/background.ts'
import { newCatalog } from './transactions/catalog.ts'
import type { Parts } from './transactions/parts.ts'
import type { CommitEffects, EngineContext, Slots } from './transactions/transaction.ts'
import { newTransactionQueue } from './transactions/transaction-queue.ts'
import { newVariables } from './transactions/variables.ts'
import { typedProcess } from './typed-process.ts'

export interface EngineParts {
  readonly path: string
  readonly store: Store
  readonly limits: Limits
  readonly clock: Clock
  readonly chance: Chance
  readonly key_path: string | undefined
  readonly failure: () => Fault | undefined
  readonly failed: Promise<Fault>
  readonly options: EngineOptions
  readonly events: Events
  /** Emitted before the engine can count them. */
  readonly early_events?: readonly EventName[]
  readonly executors: Executors
  readonly handlers: Handlers
  /** Where there are databases. */
  readonly db_call?: DbCallKinds | undefined
}

/** Starts an engine on a store whose format was checked (open.ts). */
export async function startEngine(parts: EngineParts): Promise<ServedEngine> {
  const { path, store, limits, clock, chance, options, executors, handlers, failure } = parts
  const { emit } = parts.events
  const counters = newCounters(store.onCommit)
  for (const event of parts.early_events ?? []) counters.countEvent(event)
  parts.events.on(counters.countEvent)
  const { tracing } = options
  const onBug = bugReporter(emit, options.onBug)
  if (tracing !== undefined && !tracing.hasSdk()) emit('traces_without_sdk', {})
  const end_listeners = new Set<(task: Task) => void>()
  const count_listeners = new Set<(key: Key) => void>()
  const catalog = newCatalog(parts.db_call)
  const flow_counters = newFlowCounters(clock.now_ms, () => chance.fraction())
  const secretOf = (owner: string): string | undefined => secrets.known(owner)[0]
  const engine_context: EngineContext = {
    catalog,
    limits,
    id_middle: await store.view(idMiddle),
    fraction: () => chance.fraction(),
    variables: newVariables(plainBounds(limits), options.variables, secretOf),
    handlerName: handlers.nameFor,
    callbackUrl: (process, node_id) => addresses.callbackUrl(process, node_id),
    areEndsWatched: () => end_listeners.size > 0,
    count_listeners,
    is_traced: tracing !== undefined,
    db_call: parts.db_call,
    flow: flow_counters,
    get slots() {
      return slots
    },
    loadSlots,
  }
  let slots: Slots | undefined
  let loading: Promise<void> | undefined
  function loadSlots(): Promise<void> {
    loading ??= import('./limits/slots.ts').then(async ({ newSlots }) => {
      const made = newSlots(shared)
      await made.read()
      slots = made
      background.wake()
    })
    loading.catch(() => {
      loading = undefined
    })
    return loading
  }
  const slots_work: Work = {
    due_ms: () => slots?.work.due_ms() ?? Number.POSITIVE_INFINITY,
    step: async () => slots?.work.step(),
  }
  const { variables } = engine_context
  const admission = newAdmission({ limits, store, clock, failure })
  const transactions = newTransactionQueue({ store, clock, engine: engine_context, publish })
  const shared: Parts = {
    ...{ store, clock, chance, limits, emit, counters, catalog, admission, transactions, onBug },
    engine: engine_context,
    wake: () => background.wake(),
  }
  const window = await openChangeWindow(shared, clock.now_ms())
  const feed = newChangeFeed(shared, window, await store.view(fileId))
  const traces = tracing === undefined ? undefined : newTraces(tracing, variables.masked)
  const replays = await openReplays(shared, options.replay)
  const submission = newSubmission(shared, replays, traces)
  const { schedules, due_schedules } = newSchedules(shared, submission.submit)
  const timers = newTimers(shared, due_schedules)
  const jobs = newJobDispatcher(shared, executors, traces)
  const hand_over = newHandOver(shared, handlers)
  const has_background = options.background !== false
  const background = newBackground({
    ...shared,
    works: has_background
      ? [...timers.works, slots_work, hand_over.work, window.work, replays.work]
      : [window.work],
  })
  /** Administration waits for the ops queued before it. */
  const ordered: Parts = { ...shared, store: { ...store, update: transactions.update } }
  const given_key = options.secret_key
  const secrets = await openSecrets(ordered, { key_path: parts.key_path, given_key })
  const bindings = await openBindings(ordered.store, limits.certificate_name_bytes_max)
  const users = await openUsers(ordered, secrets, bindings)
  const addresses = newAddresses(shared, secrets, options.public_url)
  const onChanged = (conv_id: string): void => {
    addresses.onProcessChanged(conv_id)
    timers.onProcessChanged(conv_id)
    jobs.onProcessChanged()
    hand_over.onProcessChanged(conv_id)
    slots?.onProcessChanged(conv_id)
  }
  const process_parts = { ...ordered, addresses, handlers, onChanged }
  const importer = newImporter(process_parts)

  const onEnd = (listener: (task: Task) => void): (() => void) => {
    end_listeners.add(listener)
    return () => end_listeners.delete(listener)
  }
  const results = newResults(shared, onEnd)
  void parts.failed.then(results.close)
  const reportFull = newFullProcessReport(emit, clock, limits.process_tasks_max)

  function publish(effects: CommitEffects): void {
    const { ends, entry, flow, full, has_ended, job_ms, limit_ms, needs_slots, runs } = effects
    counters.countTasks(effects)
    if (flow !== undefined) flow_counters.onCommitted(flow)
    if (runs !== undefined) traces?.onCommitted(runs)
    if (effects.timers !== undefined) timers.onSet(effects.timers)
    if (has_ended) timers.onEnded()
    if (needs_slots) loadSlots().catch(onBug)
    if (limit_ms !== undefined) slots?.onDue(limit_ms)
    if (job_ms !== undefined) jobs.onListed(job_ms)
    if (entry !== undefined) feed.onCommitted(entry)
    for (const one of effects.failures ?? []) {
      emit('task_failed', { ...one, ...jobs.failureOf(one) })
    }
    if (full !== undefined) reportFull(full)
    if (ends === undefined) return
    for (const listener of end_listeners) for (const task of ends) listener(task)
  }

  let draining: Promise<unknown> | undefined
  async function drain(): Promise<void> {
    if (draining === undefined) {
      emit('draining', { ops: admission.waiting().ops, jobs: jobs.counts().in_flight })
      draining = Promise.all([background.stop(), jobs.drain()])
    }
    await draining
  }

  let closing: Promise<void> | undefined
  async function close(): Promise<void> {
    admission.drain()
    transactions.flush()
    await drain()
    admission.close()
    transactions.flush()
    await store.close().finally(() => {
      feed.close()
      results.close(fault('shutting_down'))
    })
  }

  if (await store.view(hasLimits)) await loadSlots()
  if (has_background) {
    await timers.read()
    jobs.start()
  }
  background.start()

  const engine: ServedEngine = {
    path,
    limits,
    clock,
    chance,
    emit,
    counters,
    statistics: newStatisticsReader(shared, { timers, jobs, results, feed, handlers, replays }),
    flow: newFlow(shared, flow_counters),
    tracing,
    drain,
    isBusy: () => background.isBusy() || jobs.isBusy(),
    diagnose: newDiagnosis(shared, has_background, secrets.keyState),
    ...newTaskCalls(shared, submission, results, has_background),
    changesSeenBy: feed.seenBy,
    changes: feed.changes,
    process: (definition) => typedProcess(engine, definition),
    processes: { ...newProcesses(process_parts), ...importer, ...lazyDrafts(process_parts) },
    process_parts,
    schedules,
    users,
    setVariables: variables.give,
    handle(name, handler, how) {
      const unregister = handlers.add(name, handler, how)
      jobs.onProcessChanged()
      hand_over.onHandler(name)
      return unregister
    },
    allowCalls: executors.allowCalls,
    onEnd,
    health: admission.health,
    ready: newReadiness({
      ...{ store, limits, clock: systemClock, health: admission.health },
      ...{ keyState: secrets.keyState, isBroken: background.isBroken },
    }),
    checkRate: admission.checkRate,
    payForRead: admission.payForRead,
    replays,
    consoles: new Set(),
    addresses,
    onProcessChanged: onChanged,
    keyState: secrets.keyState,
    answerAccount: newAnswerAccounts(limits),
    callerOf: bindings.boundCaller,
    flush: submission.flush,
    check: () => checkStore(store, count_listeners),
    backup: async (to) => {
      const { id } = secrets.keyState()
      const made = await store.backup(to)
      // After a concurrent rekey the copy may need either key.
      const is_known = id !== undefined && id === secrets.keyState().id
      return { ...made, ...(is_known ? { key_id: id } : {}) }
    },
    close: () => {
      closing ??= close()
      return closing
    },
    [Symbol.asyncDispose]: () => engine.close(),
  }
  return engine
}

/** Their code is loaded by the first call of one. */
function lazyDrafts(parts: ProcessParts): Drafts {
  const load = (): Promise<typeof import('./drafts/process-draft.ts')> =>
    import('./drafts/process-draft.ts')
  return {
    draft(conv_id, { user } = {}) {
      const of = { conv_id: String(conv_id), user: user === undefined ? '' : String(user) }
      const open = async (): Promise<ProcessDraft> => (await load()).newProcessDraft(parts, of)
      return {
        show: async () => (await open()).show(),
        put: async (definition) => (await open()).put(definition),
        putNode: async (node) => (await open()).putNode(node),
        removeNode: async (node_id) => (await open()).removeNode(node_id),
        check: async () => (await open()).check(),
        confirm: async (options) => (await open()).confirm(options),
        rebase: async () => (await open()).rebase(),
        discard: async () => (await open()).discard(),
      }
    },
    drafts: async (conv_id) => (await load()).listDrafts(parts, String(conv_id)),
  }
}

/** Whether a definition with limits was ever stored. */
function hasLimits(view: View): boolean {
  return view.get(metaKey('limits')) !== undefined
}

function idMiddle(view: View): string {
  const bytes = view.get(metaKey('id_middle'))
  if (bytes === undefined) throw new Error('the file has no id bytes')
  return bytes.toString('hex')
}

function fileId(view: View): string {
  return view.get(metaKey('file_id'))?.toString('hex') ?? ''
}

/** Emits the processes at their limit of live tasks, each at most once a minute. */
function newFullProcessReport(
  emit: Emit,
  clock: Clock,
  tasks_max: number,
): (conv_ids: ReadonlySet<string>) => void {
  const emitted_ms = new Map<string, number>()
  return (conv_ids) => {
    const now_ms = clock.now_ms()
    for (const conv_id of conv_ids) {
      // Absolute, for a clock that was set back.
      const since_ms = Math.abs(now_ms - (emitted_ms.get(conv_id) ?? Number.NEGATIVE_INFINITY))
      if (since_ms < full_pause_ms) continue
      emitted_ms.set(conv_id, now_ms)
      emit('process_full', { conv_id, tasks: tasks_max })
    }
  }
}

const full_pause_ms = 60_000
