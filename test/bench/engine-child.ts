/**
 * The child that runs the engine: makes files, opens them with a door or none, runs the
 * in-process load itself, and tells what it cost. It has one file open at a time.
 */
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { type Engine, openEngine } from '../../src/index.ts'
import type { Refs, ServerName, Verb } from './cells.ts'
import { caller_binding } from './certificates.ts'
import { answerCalls } from './child.ts'
import { loop } from './loop.ts'
import { cpuSeconds, footprintOf, removeFiles, settled } from './process-state.ts'
import type { Footprint, Slot } from './samples.ts'
import type { Span } from './stopwatch.ts'
import { conv_id, definition, opOf, opSource, refOf, secret_key, user } from './work.ts'

export interface Opening {
  readonly path: string
  /** Tasks under the numbers from 0 on: stored already, or made now if `fresh`. */
  readonly tasks: number
  readonly fresh: boolean
  readonly refs: Refs
  readonly server: ServerName
  /** What a gRPC door takes its certificates from. */
  readonly tls_folder: string
}

/** How the process stands before or after a slot. */
export interface Standing {
  readonly footprint: Footprint
  /** How long it was not idle before it could answer this. */
  readonly settle_s: number
  /** Processor seconds used until it was idle, and until it answered. */
  readonly idle_cpu_s: number
  readonly cpu_s: number
}

interface Load extends Span {
  readonly verb: Verb
  readonly ops: number
  readonly callers: number
}

export type EngineCalls = typeof calls

interface RunningDoor {
  readonly port: number
  drain(): Promise<void>
}

let at: { opening: Opening; engine: Engine; door: RunningDoor | undefined } | undefined

const calls = {
  /** Opens a file, which stays open until `close`. */
  async open(opening: Opening): Promise<{ port: number; secret: string }> {
    const { path, fresh, tasks, refs } = opening
    const engine = await openEngine(path, { secret_key })
    if (fresh) {
      await engine.putProcess(definition)
      await engine.users.add({ id: user })
      await engine.processes.share(conv_id, user)
      await engine.users.bind(user, caller_binding)
      await fill(engine, tasks, refs)
    }
    const door = await openDoor(engine, opening)
    at = { opening, engine, door }
    return { port: door?.port ?? 0, secret: engine.users.secrets(user)[0] as string }
  },

  run(load: Load): Promise<Slot> {
    const { engine, opening } = opened()
    const { verb, ops } = load
    const { refs } = opening
    const source = opSource(opening.tasks, refs)
    if (verb === 'read') return loop(load, () => read(engine, source.take(verb, 1)[0] as number))
    return loop(load, async () => {
      const results = await engine.apply(source.take(verb, ops).map((n) => opOf(verb, n, refs)))
      for (const { proc } of results) if (proc !== 'ok') throw new Error(`${verb}: ${proc}`)
    })
  },

  async stand(): Promise<Standing> {
    const { engine, opening } = opened()
    const settle_s = await settled()
    const idle_cpu_s = cpuSeconds()
    const [info] = await engine.processes.list()
    const footprint = await footprintOf(opening.path, info?.tasks ?? 0)
    return { footprint, settle_s, idle_cpu_s, cpu_s: cpuSeconds() }
  },

  async close({ remove }: { remove: boolean }): Promise<void> {
    if (at === undefined) return
    const { engine, door, opening } = at
    at = undefined
    await door?.drain()
    await engine.close()
    if (remove) await removeFiles(opening.path)
  },
}

answerCalls(calls, () => calls.close({ remove: false }))

function opened(): NonNullable<typeof at> {
  if (at === undefined) throw new Error('no file is open')
  return at
}

async function read(engine: Engine, n: number): Promise<void> {
  const { refs } = opened().opening
  const task = await engine.task({ conv_id, ref: refOf(n, refs) })
  if ((task?.data as { amount?: number } | undefined)?.amount !== 120.5) throw new Error('read')
}

async function openDoor(engine: Engine, opening: Opening): Promise<RunningDoor | undefined> {
  const { server, tls_folder } = opening
  if (server === 'in-process') return undefined
  if (server === 'http') {
    const { address, drain } = await serveHttp(engine, { host: '127.0.0.1', port: 0 })
    return { port: address.port, drain }
  }
  const { address, drain } = await serveGrpc(engine, { port: 0, tls: { folder: tls_folder } })
  return { port: Number(address.split(':')[1]), drain }
}

const fill_batch = 1_000
const fill_callers = 8

async function fill(engine: Engine, tasks: number, refs: Refs): Promise<void> {
  let next = 0
  const caller = async (): Promise<void> => {
    while (next < tasks) {
      const first = next
      next = Math.min(tasks, first + fill_batch)
      const numbers = Array.from({ length: next - first }, (_, n) => first + n)
      const results = await engine.apply(numbers.map((n) => opOf('create', n, refs)))
      for (const { proc } of results) if (proc !== 'ok') throw new Error(`create: ${proc}`)
    }
  }
  await Promise.all(Array.from({ length: fill_callers }, caller))
}
