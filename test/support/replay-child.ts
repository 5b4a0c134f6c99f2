/**
 * An engine of the proof of replays in a process of its own: it is called by its parent, any number
 * of calls at once, serves HTTP and gRPC, and dies between a commit and its answer when told.
 */
import type { ReplayMode } from '../../src/engine/api/engine-api.ts'
import { type ServedEngine, servedEngine } from '../../src/engine/served-engine.ts'
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { openEngine } from '../../src/open.ts'
import { definition, node } from './http-server.ts'

const user = '13000'
const conv_id = '1234'
/** More than a task is modified in a round. */
const waits = 150

export type ReplayCalls = typeof calls

let engine: ServedEngine
let offset_ms = 0
/** Dies once so many more requests are committed; 0: never. */
let left = 0

const calls = {
  async open(path: string, replay: ReplayMode): Promise<{ port: number; grpc: string }> {
    const clock = {
      now_ms: () => Date.now() + offset_ms,
      wake_at(at_ms: number, fn: () => void) {
        const timer = setTimeout(fn, Math.min(Math.max(at_ms - Date.now() - offset_ms, 0), 1_000))
        return () => clearTimeout(timer)
      },
    }
    engine = servedEngine(await openEngine(path, { clock, replay, blocking_commits: false }))
    const submit: ServedEngine['submit'] = async (ops, caller) => {
      const results = await engine.submit(ops, caller)
      if (left > 0 && --left === 0) process.kill(process.pid, 'SIGKILL')
      return results
    }
    const served: ServedEngine = { ...engine, submit }
    const http = await serveHttp(served, { port: 0 })
    const grpc = await serveGrpc(served, { port: 0, plain: true })
    return { port: http.address.port, grpc: grpc.address }
  },

  /** The process whose tasks tell by their node how often they were modified. */
  async prepare(refs: readonly string[]): Promise<string> {
    const process = definition(1234, [
      node('start', 1, [{ type: 'go', to_node_id: '0' }]),
      ...Array.from({ length: waits }, (_, n) =>
        node(`${n}`, 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: `${n + 1}` }]),
      ),
      node(`${waits}`, 2, []),
    ])
    await engine.processes.put(process)
    const { secret } = await engine.users.add({ id: user })
    await engine.processes.share(conv_id, user)
    for (const ref of refs) await engine.create({ conv_id, ref, data: {} })
    return secret
  },

  dieAfter(commits: number): void {
    left = commits
  },

  setClock(ms: number): void {
    offset_ms = ms
  },

  async apply(ops: readonly object[], request_key: string): Promise<string> {
    return JSON.stringify(await engine.apply(ops, { request_key }))
  },

  /** How often each task was modified; how many tasks there are; what the check finds. */
  async read(refs: readonly string[]): Promise<{
    counts: number[]
    tasks: number
    breaches: readonly string[]
  }> {
    const counts = []
    for (const ref of refs) {
      counts.push(Number((await engine.task({ conv_id, ref }))?.node_id))
    }
    const { breaches, counts: of_keys } = await engine.check()
    return { counts, tasks: of_keys.task as number, breaches }
  },
}

interface Message {
  readonly id: number
  readonly name: keyof ReplayCalls
  readonly args: never[]
}

process.on('message', async ({ id, name, args }: Message) => {
  const call = calls[name] as (...args: never[]) => unknown
  try {
    process.send?.({ id, value: await call(...args) })
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? error.message : String(error) })
  }
})
process.on('disconnect', () => process.exit())
