/**
 * The engine of the proof of the operator's page, in a process of its own: it serves the page and
 * loads itself, by calls of its parent (test/bench/child.ts).
 *
 * A life of a task is two ops: a create, which waits for a callback, and the callback.
 */
import { join } from 'node:path'
import { pause, steadyClock } from '../../src/core/clock.ts'
import { callback, defineProcess, end, go, node } from '../../src/define.ts'
import { type Engine, openEngine } from '../../src/index.ts'
import { type OperatorServer, serveOperator } from '../../src/operator.ts'
import { serveCalls } from '../bench/child.ts'

const callers = 64
const fill_batch = 100

const nodes = {
  start: node(go('wait'), { title: 'Start' }),
  wait: node([callback(), go('done')], { title: 'Wait' }),
  done: end({ title: 'Done' }),
}

export interface Ids {
  /** Of the process that gets the load, and of the one with many tasks. */
  readonly loaded_id: string
  readonly large_id: string
}

let ids: Ids
let engine: Engine
let operator: OperatorServer

export type EngineCalls = typeof calls

const calls = {
  async open(folder: string, given: Ids): Promise<void> {
    ids = given
    engine = await openEngine(join(folder, 'tasks.lmdb'), { blocking_commits: false })
    operator = await serveOperator(engine, { port: 0 })
  },

  /** The address of the page, which signs in whoever opens it first. */
  link: (): string => operator.link('operate'),

  async putProcesses(count: number): Promise<void> {
    for (const id of Object.values(ids)) await engine.processes.put(defineProcess({ id, nodes }))
    for (let n = 0; n < count - 2; n++) {
      const title = `Process number ${n}`
      await engine.processes.put(defineProcess({ id: 1_000 + n, title, nodes }))
      await engine.create({ conv_id: 1_000 + n, data: {} })
    }
  },

  async fill(tasks: number): Promise<void> {
    let next = 0
    const caller = async (): Promise<void> => {
      while (next < tasks) {
        const first = next
        next = Math.min(tasks, first + fill_batch)
        const ops = Array.from({ length: next - first }, (_, n) => ({
          ...{ type: 'create', obj: 'task', conv_id: ids.large_id, ref: `task-${first + n}` },
          data: { number: first + n },
        }))
        const results = await engine.apply(ops)
        if (results.some(({ proc }) => proc !== 'ok')) throw new Error('a task was refused')
      }
    }
    await Promise.all(Array.from({ length: 8 }, caller))
    await engine.flush()
  },

  /** Loads for so long; answers ops a second, and the processor time of each in microseconds. */
  async load(ms: number, rate_max: number | undefined): Promise<{ rate: number; cpu_us: number }> {
    const began_ms = steadyClock.now_ms()
    const began_cpu = process.cpuUsage()
    let ops = 0
    const caller = async (_: unknown, number: number): Promise<void> => {
      const ref = `load-${number}`
      while (steadyClock.now_ms() - began_ms < ms) {
        if (rate_max !== undefined) {
          const early_ms = (1_000 * ops) / rate_max - (steadyClock.now_ms() - began_ms)
          if (early_ms > 1) await pause(steadyClock, early_ms)
        }
        await engine.create({ conv_id: ids.loaded_id, ref, data: { amount: 120 } })
        const { proc } = await engine.modify({ conv_id: ids.loaded_id, ref, data: { paid: true } })
        if (proc !== 'ok') throw new Error(`an op was answered ${proc}`)
        ops += 2
      }
    }
    await Promise.all(Array.from({ length: callers }, caller))
    const { user, system } = process.cpuUsage(began_cpu)
    const s = (steadyClock.now_ms() - began_ms) / 1_000
    return { rate: ops / s, cpu_us: (user + system) / ops }
  },
}

serveCalls(calls, async () => {
  await operator.drain()
  await engine.close()
})
