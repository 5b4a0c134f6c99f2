/**
 * The child that runs the engine: makes files, opens them with a server or none, runs the
 * in-process load itself, and tells what it cost. It has one file open at a time.
 */
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { type Engine, openEngine } from '../../src/index.ts'
import type { Refs, ServerName, Verb } from './cells.ts'
import { caller_binding } from './certificates.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { cpuSeconds, footprintOf, removeFiles, waitUntilIdle } from './resource-usage.ts'
import type { Footprint, Slot } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import { conv_id, definition, opOf, opSource, refOf, secret_key, user } from './workload.ts'

export interface OpenOptions {
  readonly path: string
  /** Tasks under the numbers from 0 on: stored already, or made now if `is_new`. */
  readonly tasks: number
  readonly is_new: boolean
  readonly refs: Refs
  readonly server: ServerName
  /** What a gRPC server takes its certificates from. */
  readonly tls_folder: string
}

/** How the process stands before or after a slot. */
export interface EngineUsage {
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

interface RunningServer {
  readonly port: number
  drain(): Promise<void>
}

let current: { opening: OpenOptions; engine: Engine; server: RunningServer | undefined } | undefined

const calls = {
  /** Opens a file, which stays open until `close`. */
  async open(opening: OpenOptions): Promise<{ port: number; secret: string }> {
    const { path, is_new, tasks, refs } = opening
    const engine = await openEngine(path, { secret_key })
    if (is_new) {
      await engine.putProcess(definition)
      await engine.users.add({ id: user })
      await engine.processes.share(conv_id, user)
      await engine.users.bind(user, caller_binding)
      await fill(engine, tasks, refs)
    }
    const server = await startServer(engine, opening)
    current = { opening, engine, server }
    return { port: server?.port ?? 0, secret: engine.users.secrets(user)[0] as string }
  },

  run(load: Load): Promise<Slot> {
    const { engine, opening } = currentFile()
    const { verb, ops } = load
    const { refs } = opening
    const source = opSource(opening.tasks, refs)
    if (verb === 'read')
      return closedLoop(load, () => read(engine, source.take(verb, 1)[0] as number))
    return closedLoop(load, async () => {
      const results = await engine.apply(source.take(verb, ops).map((n) => opOf(verb, n, refs)))
      for (const { proc } of results) if (proc !== 'ok') throw new Error(`${verb}: ${proc}`)
    })
  },

  async usage(): Promise<EngineUsage> {
    const { engine, opening } = currentFile()
    const settle_s = await waitUntilIdle()
    const idle_cpu_s = cpuSeconds()
    const [info] = await engine.processes.list()
    const footprint = await footprintOf(opening.path, info?.tasks ?? 0)
    return { footprint, settle_s, idle_cpu_s, cpu_s: cpuSeconds() }
  },

  async close({ remove }: { remove: boolean }): Promise<void> {
    if (current === undefined) return
    const { engine, server, opening } = current
    current = undefined
    await server?.drain()
    await engine.close()
    if (remove) await removeFiles(opening.path)
  },
}

serveCalls(calls, () => calls.close({ remove: false }))

function currentFile(): NonNullable<typeof current> {
  if (current === undefined) throw new Error('no file is open')
  return current
}

async function read(engine: Engine, n: number): Promise<void> {
  const { refs } = currentFile().opening
  const task = await engine.task({ conv_id, ref: refOf(n, refs) })
  if ((task?.data as { amount?: number } | undefined)?.amount !== 120.5) throw new Error('read')
}

async function startServer(
  engine: Engine,
  opening: OpenOptions,
): Promise<RunningServer | undefined> {
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
