/**
 * The child that runs the engine: makes files, opens them with a door or none, runs the
 * in-process load itself, and tells what it cost. It has one file open at a time.
 */
import { readFileSync } from 'node:fs'
import { open as openFile, rm } from 'node:fs/promises'
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { type Engine, openEngine } from '../../src/index.ts'
import { readSnapshot } from '../../src/store/lmdb-pages.ts'
import type { ServerName, Verb } from './cells.ts'
import { caller_binding } from './certificates.ts'
import { answerCalls } from './child.ts'
import { loop } from './loop.ts'
import type { Slot } from './samples.ts'
import { conv_id, definition, opOf, opSource, secret_key, user } from './work.ts'

export interface Opening {
  readonly path: string
  /** Tasks under the numbers from 0 on: stored already, or made now if `fresh`. */
  readonly tasks: number
  readonly fresh: boolean
  readonly server: ServerName
  /** What a gRPC door takes its certificates from. */
  readonly tls_folder: string
}

export interface Stats {
  readonly rss_bytes: number
  /** Of rss what is no mapped file; 0 where the system does not tell. */
  readonly anonymous_bytes: number
  readonly heap_bytes: number
  readonly file_bytes: number
  readonly tasks: number
  /** Commits of the file since it was made. */
  readonly commits: number
}

interface Load {
  readonly verb: Verb
  readonly ops: number
  readonly callers: number
  readonly slot_s: number
}

export type EngineCalls = typeof calls

interface RunningDoor {
  readonly port: number
  drain(): Promise<void>
}

let at: { opening: Opening; engine: Engine; door: RunningDoor | undefined } | undefined
const sources = new Map<number, ReturnType<typeof opSource>>()

const calls = {
  /** Opens a file, which stays open until `close`. */
  async open(opening: Opening): Promise<{ port: number; secret: string }> {
    const { path, fresh, tasks } = opening
    const engine = await openEngine(path, { secret_key })
    if (fresh) {
      await engine.putProcess(definition)
      await engine.users.add({ id: user })
      await engine.processes.share(conv_id, user)
      await engine.users.bind(user, caller_binding)
      await fill(engine, tasks)
    }
    const door = await openDoor(engine, opening)
    at = { opening, engine, door }
    return { port: door?.port ?? 0, secret: engine.users.secrets(user)[0] as string }
  },

  async run(load: Load): Promise<Slot> {
    const { engine, opening } = opened()
    const { verb, ops } = load
    const source = sources.get(opening.tasks) ?? opSource(opening.tasks)
    sources.set(opening.tasks, source)
    return loop(load, async () => {
      const results = await engine.apply(source.take(verb, ops).map((n) => opOf(verb, n)))
      for (const { proc } of results) if (proc !== 'ok') throw new Error(`${verb}: ${proc}`)
    })
  },

  /** Collects garbage first: the heap is what lives, and the next slot starts even. */
  async stats(): Promise<Stats> {
    const { engine, opening } = opened()
    globalThis.gc?.()
    const { rss, heapUsed } = process.memoryUsage()
    const file = await openFile(opening.path, 'r')
    const [info] = await engine.processes.list()
    try {
      return {
        rss_bytes: rss,
        anonymous_bytes: anonymousBytes(),
        heap_bytes: heapUsed,
        file_bytes: (await file.stat()).size,
        tasks: info?.tasks ?? 0,
        commits: (await readSnapshot(file))?.transaction ?? 0,
      }
    } finally {
      await file.close()
    }
  },

  async close({ remove }: { remove: boolean }): Promise<void> {
    if (at === undefined) return
    const { engine, door, opening } = at
    at = undefined
    await door?.drain()
    await engine.close()
    if (!remove) return
    for (const end of ['', '-lock']) await rm(`${opening.path}${end}`, { force: true })
  },
}

answerCalls(calls, () => calls.close({ remove: false }))

function opened(): NonNullable<typeof at> {
  if (at === undefined) throw new Error('no file is open')
  return at
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
const fill_callers = 4

async function fill(engine: Engine, tasks: number): Promise<void> {
  let next = 0
  const caller = async (): Promise<void> => {
    while (next < tasks) {
      const first = next
      next = Math.min(tasks, first + fill_batch)
      const numbers = Array.from({ length: next - first }, (_, n) => first + n)
      const results = await engine.apply(numbers.map((n) => opOf('create', n)))
      for (const { proc } of results) if (proc !== 'ok') throw new Error(`create: ${proc}`)
    }
  }
  await Promise.all(Array.from({ length: fill_callers }, caller))
}

function anonymousBytes(): number {
  try {
    const [, kib] = /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    return Number(kib ?? 0) * 1024
  } catch {
    return 0
  }
}
