/**
 * The child that runs the engine: it creates data files, opens them with a server or none, generates
 * the load of in-process cells, and measures its own resource usage. It has one file open at a time.
 */
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { type Engine, openEngine } from '../../src/index.ts'
import { secretsOf } from '../support/secrets-of.ts'
import type { Refs, ServerName } from './cells.ts'
import { caller_binding } from './certificates.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import type { Load, OpenOptions } from './load.ts'
import { probeCalls } from './probe.ts'
import { cpuSeconds, footprintOf, removeFiles, waitUntilIdle } from './resource-usage.ts'
import type { Footprint, Slot } from './statistics.ts'
import { type Around, scrape, watch } from './watches.ts'
import {
  assertOk,
  assertRead,
  conv_id,
  definition,
  opOf,
  opSource,
  refOf,
  secret_key,
  user,
} from './workload.ts'

interface EngineOptions extends OpenOptions {
  readonly server: ServerName
  /** The certificates of the gRPC server. */
  readonly tls_folder: string
}

/** Of the process, before or after a slot. */
export interface EngineUsage {
  readonly footprint: Footprint
  /** How long the process took to become idle. */
  readonly settle_s: number
  /** CPU seconds of the process until it was idle, and until the end of this call. */
  readonly idle_cpu_s: number
  readonly cpu_s: number
}

export type EngineCalls = typeof calls

interface RunningServer {
  readonly port: number
  drain(): Promise<void>
}

let current:
  | {
      options: EngineOptions
      engine: Engine
      server: RunningServer | undefined
      around: Around
      stopScrapes(): void
    }
  | undefined

const calls = {
  ...probeCalls,

  /** Opens a file until `close`; the port is 0 without a server. */
  async open(options: EngineOptions): Promise<{ port: number; secret: string }> {
    const { path, is_new, tasks, refs, watches = [], replay } = options
    const { options: watched, around } = watch(watches)
    const engine = await openEngine(path, {
      ...{ secret_key, ...watched },
      ...(replay !== undefined && { replay }),
    })
    if (is_new) {
      await engine.processes.put(definition)
      await engine.users.add({ id: user })
      await engine.processes.share(conv_id, user)
      await engine.users.bind(user, caller_binding)
      await fill(engine, tasks, refs)
    }
    const server = await startServer(engine, options)
    current = { options, engine, server, around, stopScrapes: scrape(engine, watches) }
    return {
      port: server?.port ?? 0,
      secret: secretsOf(engine, user)[0] as string,
    }
  },

  run(load: Load): Promise<Slot> {
    const { engine, options, around } = currentFile()
    const { verb, ops } = load
    const { refs } = options
    const source = opSource(options.tasks, refs)
    if (verb === 'read')
      return closedLoop(load, () => read(engine, source.take(verb, 1)[0] as number))
    return closedLoop(load, async () => {
      const given = source.take(verb, ops).map((n) => opOf(verb, n, refs))
      assertOk(await around(() => engine.apply(given)))
    })
  },

  async usage(): Promise<EngineUsage> {
    const { engine, options } = currentFile()
    const settle_s = await waitUntilIdle()
    const idle_cpu_s = cpuSeconds()
    const [info] = await engine.processes.list()
    const footprint = await footprintOf(options.path, info?.tasks ?? 0)
    return { footprint, settle_s, idle_cpu_s, cpu_s: cpuSeconds() }
  },

  async close({ remove }: { remove: boolean }): Promise<void> {
    if (current === undefined) return
    const { engine, server, options, stopScrapes } = current
    current = undefined
    stopScrapes()
    await server?.drain()
    await engine.close()
    if (remove) await removeFiles(options.path)
  },
}

serveCalls(calls, () => calls.close({ remove: false }))

function currentFile(): NonNullable<typeof current> {
  if (current === undefined) throw new Error('no file is open')
  return current
}

async function read(engine: Engine, n: number): Promise<void> {
  const { refs } = currentFile().options
  const task = await engine.task({ conv_id, ref: refOf(n, refs) })
  assertRead(task?.data)
}

async function startServer(
  engine: Engine,
  options: EngineOptions,
): Promise<RunningServer | undefined> {
  const { server, tls_folder } = options
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
      assertOk(await engine.apply(numbers.map((n) => opOf('create', n, refs))))
    }
  }
  await Promise.all(Array.from({ length: fill_callers }, caller))
}
