/**
 * A node of a cluster, in a process of its own: it waits as a standby until it is the owner, puts a
 * load on itself where asked, and notes its position and its ops again and again. The clock of these
 * notes is the system's, which all processes of a run share.
 */
import { type Engine, openEngine } from '../../../src/index.ts'
import { type PostgresLog, postgresLog } from '../../../src/postgres.ts'
import { serveCalls } from '../child.ts'
import { assertOk, type BenchOp, lives_definition, opOf, secret_key } from '../workload.ts'
import { initForBench } from './init.ts'

/** What a node has at a time. */
export interface NodeSample {
  readonly at_ms: number
  readonly seq: number
  /** Ops of the load that are done. */
  readonly ops: number
}

interface Load {
  readonly callers: number
  /** Ops in one request: creates, and in the next callbacks of them. */
  readonly ops: number
  /** Requests start at this rate; without one, each when the one before is answered. */
  readonly ops_per_s?: number
}

export type NodeCalls = typeof calls

const sample_every_ms = 20
const fill_batch = 200
const fill_callers = 8

let commit_log: PostgresLog | undefined
let opening: Promise<Engine> | undefined
let samples: NodeSample[] = []
let ops_done = 0
let next = 0
let load: { is_over: boolean; readonly done: Promise<unknown> } | undefined

const calls = {
  async init({ url }: { url: string }): Promise<void> {
    await initForBench(url)
  },

  /** Opens, and so waits to be the owner; does not wait for it here. */
  open({ url, node, path }: { url: string; node: string; path: string }): void {
    commit_log = postgresLog({ url, node })
    opening = openEngine(path, { secret_key, commit_log: commit_log })
    opening.catch(({ code, stack }) => code === 'shutting_down' || console.error(stack))
    setInterval(() => {
      const { seq = 0 } = commit_log?.status() ?? {}
      samples.push({ at_ms: Date.now(), seq, ops: ops_done })
    }, sample_every_ms)
  },

  async own(): Promise<void> {
    const engine = await owned()
    await engine.processes.put(lives_definition)
  },

  /** Creates waiting tasks with so many bytes more each. */
  async fill({ tasks, more_bytes }: { tasks: number; more_bytes: number }): Promise<void> {
    const engine = await owned()
    const until = next + tasks
    const more = 'x'.repeat(more_bytes)
    const caller = async (): Promise<void> => {
      while (next < until) {
        const ops = opsOf('create', take(Math.min(fill_batch, until - next)))
        assertOk(await engine.apply(ops.map((op) => ({ ...op, data: { ...op.data, more } }))))
      }
    }
    await Promise.all(Array.from({ length: fill_callers }, caller))
  },

  async startLoad(given: Load): Promise<void> {
    const engine = await owned()
    const state = { is_over: false }
    const callers = Array.from({ length: given.callers }, () => callerOf(engine, given, state))
    load = Object.assign(state, { done: Promise.all(callers) })
  },

  async stopLoad(): Promise<void> {
    if (load === undefined) return
    load.is_over = true
    await load.done
  },

  takeSamples(): NodeSample[] {
    const taken = samples
    samples = []
    return taken
  },

  async close(): Promise<void> {
    await calls.stopLoad()
    commit_log?.leave()
    await opening?.then((engine) => engine.close()).catch(() => undefined)
  },
}

serveCalls(calls)

function owned(): Promise<Engine> {
  if (opening === undefined) throw new Error('not open')
  return opening
}

async function callerOf(
  engine: Engine,
  { callers, ops, ops_per_s }: Load,
  state: { readonly is_over: boolean },
): Promise<void> {
  const every_ms = ops_per_s === undefined ? 0 : (1_000 * ops * callers) / ops_per_s
  let created: readonly number[] | undefined
  for (let due_ms = performance.now(); !state.is_over; due_ms += every_ms) {
    const wait_ms = due_ms - performance.now()
    if (wait_ms > 0) await new Promise((resolve) => setTimeout(resolve, wait_ms))
    const numbers = created ?? take(ops)
    assertOk(await engine.apply(opsOf(created === undefined ? 'create' : 'modify', numbers)))
    created = created === undefined ? numbers : undefined
    ops_done += ops
  }
}

function take(count: number): number[] {
  return Array.from({ length: count }, () => next++)
}

function opsOf(verb: BenchOp['type'], numbers: readonly number[]): BenchOp[] {
  return numbers.map((n) => opOf(verb, n, 'random'))
}
