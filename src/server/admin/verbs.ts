/**
 * THE table of admin verbs: what the command line can ask of whoever holds the file. Each takes the
 * engine and its arguments and gives a value that survives JSON; the same table is called in this
 * process or over the socket, so that a verb cannot behave differently with a server running.
 *
 * Nothing is decided here: refusals are the engine's.
 */
import type { Can, Engine } from '../../engine/api.ts'
import { importProcesses } from './import.ts'
import { applyTasks, cancelTask, listTasks, retryTask, showTask } from './task-verbs.ts'

interface ById {
  readonly id: string
}

interface Grant extends ById {
  readonly user: string
}

export const adminVerbs = {
  about: async (engine: Engine, _args: object) => ({
    path: engine.path,
    ops_max: engine.limits.ops_max,
  }),

  'user.add': (engine: Engine, args: { readonly id?: string; readonly name?: string }) =>
    engine.users.add(args),
  'user.list': (engine: Engine, _args: object) => engine.users.list(),
  'user.rotate': (engine: Engine, args: ById & { readonly grace_ms?: number }) =>
    engine.users.rotate(args.id, args.grace_ms === undefined ? {} : { grace_ms: args.grace_ms }),
  'user.remove': (engine: Engine, args: ById) => done(engine.users.remove(args.id)),
  'user.rekey': (engine: Engine, args: { readonly secret_key?: string }) =>
    engine.users.rekey(args),
  'user.bind': (engine: Engine, args: ById & { readonly name: string }) =>
    done(engine.users.bind(args.id, args.name)),
  'user.bindAll': (engine: Engine, args: { readonly name: string }) =>
    done(engine.users.bindAll(args.name)),
  'user.unbind': (engine: Engine, args: { readonly name: string }) =>
    done(engine.users.unbind(args.name)),
  'user.bindings': async (engine: Engine, _args: object) => engine.users.bindings(),

  'process.import': importProcesses,
  'process.list': (engine: Engine, _args: object) => engine.processes.list(),
  'process.show': (engine: Engine, args: ById) => engine.processes.show(args.id),
  'process.export': async (engine: Engine, args: ById) => ({
    definition_text: (await engine.processes.show(args.id)).definition_text,
  }),
  'process.share': (engine: Engine, args: Grant & { readonly can?: readonly Can[] }) =>
    done(engine.processes.share(args.id, args.user, args.can)),
  'process.unshare': (engine: Engine, args: Grant) =>
    done(engine.processes.unshare(args.id, args.user)),
  'process.pause': (engine: Engine, args: ById) => done(engine.processes.pause(args.id)),
  'process.resume': (engine: Engine, args: ById) => done(engine.processes.resume(args.id)),
  'process.remove': (engine: Engine, args: ById) => done(engine.processes.remove(args.id)),

  'task.apply': applyTasks,
  'task.show': showTask,
  'task.list': listTasks,
  'task.retry': retryTask,
  'task.cancel': cancelTask,

  backup: (engine: Engine, args: { readonly path: string }) => engine.backup(args.path),
  check: (engine: Engine, _args: object) => engine.check(),
}

export type AdminVerb = keyof typeof adminVerbs
export type AdminArgs<Verb extends AdminVerb> = Parameters<(typeof adminVerbs)[Verb]>[1]
export type AdminValue<Verb extends AdminVerb> = Awaited<ReturnType<(typeof adminVerbs)[Verb]>>

/** Whoever answers the verbs: this process, or the file's owner behind its socket. */
export interface Admin {
  /** Rejects with a Fault, the engine's own or `file_held` where the owner cannot be talked to. */
  call<Verb extends AdminVerb>(verb: Verb, args: AdminArgs<Verb>): Promise<AdminValue<Verb>>
  close(): Promise<void>
}

export function isAdminVerb(name: string): name is AdminVerb {
  return Object.hasOwn(adminVerbs, name)
}

/** The table on an engine of this process, which `close` closes. */
export function localAdmin(engine: Engine): Admin {
  return {
    call: (verb, args) => runVerb(engine, verb, args) as Promise<never>,
    close: () => engine.close(),
  }
}

/** `args` have the shape of the verb's: the caller is this version's own. */
export async function runVerb(engine: Engine, verb: AdminVerb, args: unknown): Promise<unknown> {
  const run = adminVerbs[verb] as (engine: Engine, args: unknown) => Promise<unknown>
  return run(engine, args)
}

async function done(work: Promise<void>): Promise<null> {
  await work
  return null
}
