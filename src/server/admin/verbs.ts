/**
 * The table of admin verbs: the operations that the command line runs on a data file. Each takes
 * the engine and its arguments and returns a value that JSON preserves. The same table serves calls
 * in this process and calls over the socket. Refusals are the engine's.
 */
import { rawJson } from '../../codec/json.ts'
import type { Overview } from '../../console/overview/messages.ts'
import { newOverviews, type Overviews } from '../../console/overview/overview.ts'
import { defined } from '../../core/defined.ts'
import { fault, isFault } from '../../core/faults.ts'
import type { BackupResult, Engine } from '../../engine/api/engine-api.ts'
import type { Can, ExportFile, WebhookChange } from '../../engine/api/process-api.ts'
import type {
  PutScheduleResult,
  ScheduleDetails,
  ScheduleInput,
} from '../../engine/api/schedule-api.ts'
import type { BulkAction, CountFilter } from '../../engine/api/search-api.ts'
import type { TargetInput } from '../../engine/api/task-api.ts'
import type { ConsoleRight, Sign } from '../../engine/api/user-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import { maskedPaths, maskTask } from '../../task-operations/hidden-params.ts'
import { listTasks, resumeBulk, startBulk } from '../../task-operations/searches.ts'
import {
  actAndShow,
  applyTasks,
  type ResultView,
  viewOfResult,
} from '../../task-operations/task-actions.ts'
import { showTask } from '../../task-operations/task-view.ts'

interface ById {
  readonly id: string
}

interface ImportArgs {
  /** All of them are stored, or none. */
  readonly files: readonly ExportFile[]
  /** Replaces the definition's own id; only where there is one definition. */
  readonly id?: string
  readonly moves?: Readonly<Record<string, string>>
  /** New ids for the processes and the references to them. */
  readonly map?: Readonly<Record<string, string>>
  readonly dry_run?: boolean
}

/** Of all stages where none is named. */
interface ExportChoice {
  readonly stage?: string
  readonly project?: string
}

interface Has {
  /** Of a node without an engine: what it has, in words. */
  readonly has: string
}

interface Named {
  readonly name: string
  readonly stage_id?: string
}

interface Grant extends ById {
  readonly user: string
}

export const adminVerbs = {
  about: async (engine: Engine, _args: object) => ({
    path: engine.path,
    ops_max: engine.limits.ops_max,
  }),

  'user.add': (
    engine: Engine,
    args: { readonly id?: string; readonly name?: string; readonly sign?: Sign },
  ) => engine.users.add(args),
  'user.list': (engine: Engine, _args: object) => engine.users.list(),
  'user.rotate': (engine: Engine, args: ById & { readonly grace_ms?: number }) =>
    engine.users.rotate(args.id, defined({ grace_ms: args.grace_ms })),
  'user.sign': (engine: Engine, args: ById & { readonly sign: Sign }) =>
    done(engine.users.sign(args.id, args.sign)),
  'user.console': (engine: Engine, args: ById & { readonly right?: ConsoleRight }) =>
    done(engine.users.console(args.id, args.right)),
  'user.administer': (engine: Engine, args: ById & { readonly may: boolean }) =>
    done(engine.users.administer(args.id, args.may)),
  'user.remove': (engine: Engine, args: ById) => done(engine.users.remove(args.id)),
  'user.rekey': (engine: Engine, args: Parameters<Engine['users']['rekey']>[0]) =>
    engine.users.rekey(args),
  'user.bind': (engine: Engine, args: ById & { readonly name: string }) =>
    done(engine.users.bind(args.id, args.name)),
  'user.bindAll': (engine: Engine, args: { readonly name: string }) =>
    done(engine.users.bindAll(args.name)),
  'user.unbind': (engine: Engine, args: { readonly name: string }) =>
    done(engine.users.unbind(args.name)),
  'user.bindings': async (engine: Engine, _args: object) => engine.users.bindings(),

  'process.import': (engine: Engine, { files, id, ...options }: ImportArgs) =>
    engine.processes.importFiles(files, { ...defined({ conv_id: id }), ...options }),
  'process.list': (engine: Engine, _args: object) => engine.processes.list(),
  'process.show': (engine: Engine, args: ById) => engine.processes.show(args.id),
  'process.export': async (engine: Engine, args: ById) => ({
    definition_text: (await engine.processes.show(args.id)).definition_text,
  }),
  'process.exportAll': async (engine: Engine, args: ExportChoice) => {
    const { exportAll } = await import('../../management/export-all.ts')
    return exportAll(servedEngine(engine), args)
  },
  'process.share': (engine: Engine, args: Grant & { readonly can?: readonly Can[] }) =>
    done(engine.processes.share(args.id, args.user, args.can)),
  'process.unshare': (engine: Engine, args: Grant) =>
    done(engine.processes.unshare(args.id, args.user)),
  'process.webhook': (engine: Engine, { id, ...change }: ById & WebhookChange) =>
    engine.processes.webhook(id, change),
  'process.pause': (engine: Engine, args: ById) => done(engine.processes.pause(args.id)),
  'process.resume': (engine: Engine, args: ById) => done(engine.processes.resume(args.id)),
  'process.remove': (engine: Engine, args: ById) => done(engine.processes.remove(args.id)),
  'process.aliases': (engine: Engine, _args: object) => engine.processes.aliases(),
  'process.setAlias': (engine: Engine, args: ById & Named) =>
    engine.processes.setAlias(args.name, args.id, args),
  'process.removeAlias': (engine: Engine, args: Named) =>
    done(engine.processes.removeAlias(args.name, args)),

  'task.apply': applyTasks,
  'task.show': showTask,
  'task.list': listTasks,
  'task.count': (engine: Engine, args: CountFilter) => engine.tasks.count(args),
  'task.retry': taskVerb('retry'),
  'task.move': taskVerb('move'),
  'task.cancel': taskVerb('cancel'),
  'task.bulk': startBulk,
  'task.resumeBulk': resumeBulk,
  'task.bulkJobs': (engine: Engine, _args: object) => engine.tasks.bulkJobs(),

  'console.link': consoleLinks,

  'schedule.put': putSchedule,
  'schedule.list': (engine: Engine, _args: object) => engine.schedules.list(),
  'schedule.show': showSchedule,
  'schedule.run': runSchedule,
  'schedule.pause': (engine: Engine, args: ById) => done(engine.schedules.pause(args.id)),
  'schedule.resume': (engine: Engine, args: ById) => done(engine.schedules.resume(args.id)),
  'schedule.remove': (engine: Engine, args: ById) => done(engine.schedules.remove(args.id)),

  overview: showOverview,
  backup: (engine: Engine, args: { readonly path: string }): Promise<BackupResult & Partial<Has>> =>
    engine.backup(args.path),
  check: (engine: Engine, _args: object) => engine.check(),
  doctor: async (engine: Engine, _args: object) => ({
    ...(await servedEngine(engine).diagnose()),
    limits: engine.limits,
  }),
}

export type AdminVerb = keyof typeof adminVerbs
export type AdminArgs<Verb extends AdminVerb> = Parameters<(typeof adminVerbs)[Verb]>[1]
export type AdminValue<Verb extends AdminVerb> = Awaited<ReturnType<(typeof adminVerbs)[Verb]>>

/** Runs the verbs, in this process or over the socket of the process that holds the file. */
export interface Admin {
  /** Rejects with a Fault of the engine, or `file_held` where the holder cannot be called. */
  call<Verb extends AdminVerb>(verb: Verb, args: AdminArgs<Verb>): Promise<AdminValue<Verb>>
  close(): Promise<void>
}

export function isAdminVerb(name: string): name is AdminVerb {
  return Object.hasOwn(adminVerbs, name)
}

/** The verbs on an engine of this process; `close` closes the engine. */
export function localAdmin(engine: Engine): Admin {
  return {
    call: (verb, args) => runVerb(engine, verb, args) as Promise<never>,
    close: () => engine.close(),
  }
}

/** `args` are trusted to have the verb's shape: the caller has the same version. */
export async function runVerb(engine: Engine, verb: AdminVerb, args: unknown): Promise<unknown> {
  const run = adminVerbs[verb] as (engine: Engine, args: unknown) => Promise<unknown>
  return run(engine, args)
}

interface TaskArgs {
  readonly target: TargetInput
  /** Of a retry or a move: the node to go to. */
  readonly node_id?: string
}

function taskVerb(action: BulkAction) {
  return (engine: Engine, { target, node_id }: TaskArgs) =>
    actAndShow(engine, target, { action, ...defined({ to_node_id: node_id }) })
}

async function done(work: Promise<void>): Promise<null> {
  await work
  return null
}

/** A one-time link to each of the operator's pages that the process of this engine serves. */
async function consoleLinks(engine: Engine, { right }: { readonly right: ConsoleRight }) {
  const links = [...servedEngine(engine).consoles].map((link) => link(right))
  if (links.length > 0) return { links }
  const text =
    "no operator's page is served of this file: `npx conveyor serve --operator HOST:PORT`"
  throw fault('not_possible', text)
}

export type ScheduleArgs = Omit<ScheduleInput, 'data'> & { readonly data_text: string }

export function putSchedule(
  engine: Engine,
  { data_text, ...schedule }: ScheduleArgs,
): Promise<PutScheduleResult> {
  return engine.schedules.put({ ...schedule, data: rawJson(data_text) })
}

export async function showSchedule(
  engine: Engine,
  { id }: { readonly id: string },
): Promise<ScheduleDetails> {
  const schedule = await engine.schedules.show(id)
  try {
    const { definition_text } = await engine.processes.show(schedule.conv_id)
    return { ...schedule, ...maskTask(schedule, maskedPaths(definition_text)) }
  } catch (error) {
    if (isFault(error) && error.code === 'conv_not_found') return schedule
    throw error
  }
}

export async function runSchedule(
  engine: Engine,
  { id }: { readonly id: string },
): Promise<ResultView> {
  return viewOfResult(await engine.schedules.run(id))
}

const kept_ms = 60_000

interface Kept {
  readonly overviews: Overviews
  cancel(): void
}

const kept = new WeakMap<Engine, Kept>()

export async function showOverview(engine: Engine, _args: object): Promise<Overview> {
  const served = servedEngine(engine)
  const { clock } = served
  const { overviews, cancel } = kept.get(engine) ?? begin()
  cancel()
  const end = (): void => {
    kept.delete(engine)
    overviews.close()
  }
  kept.set(engine, { overviews, cancel: clock.wake_at(clock.now_ms() + kept_ms, end) })
  const watch = overviews.watch()
  return watch.next().finally(watch.close)

  function begin(): Kept {
    const overviews = newOverviews(served)
    // One that stays has commits measured between the calls.
    overviews.watch()
    return { overviews, cancel() {} }
  }
}
