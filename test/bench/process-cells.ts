/**
 * What a process costs: `npm run bench -- --only process`. Each cell creates tasks in requests of a
 * hundred, four callers at a time, on a data file of its own, and counts until the last of them has
 * ended on disk.
 *
 * `pure`: all of N nodes are passed in one transaction, set_param and go_if_const in turn. `wide`:
 * ten nodes are passed in a graph of N. `call`: a call with its reply, two tasks. `handler` and
 * `code`: work outside the transaction, so two commits a task. How `pure` grows with N and `wide`
 * does not is the point.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  callProcess,
  defineProcess,
  end,
  go,
  handled,
  type NodeGiven,
  type ProcessDefinition,
  reply,
  runCode,
  setData,
  when,
} from '../../src/define.ts'
import { type Engine, openEngine } from '../../src/index.ts'

interface ProcessCell {
  readonly name: string
  readonly tasks: number
  readonly definitions: readonly ProcessDefinition[]
}

const work = '1'

/** start, `passed` nodes of logics, end; the rest of `nodes` is there and never entered. */
function chain(passed: number, nodes = passed): ProcessDefinition {
  const bodies: Record<string, NodeGiven<string>> = { end: end() }
  for (let at = 0; at < nodes - 2; at++) {
    const to = at === passed - 3 || at === nodes - 3 ? 'end' : `n${at + 1}`
    bodies[`n${at}`] =
      at % 2 === 0
        ? [setData({ sum: '$.math({{sum}}+{{amount}})' }, { types: { sum: 'number' } }), go(to)]
        : [when('sum', 'less', 0).go('end'), go(to)]
  }
  return defineProcess<string>({ id: work, nodes: { start: go('n0'), ...bodies } })
}

const called = defineProcess({
  id: '2',
  nodes: { start: go('reply'), reply: [reply({ price: '{{amount}}' }), go('end')], end: end() },
})

const calling = defineProcess({
  id: work,
  nodes: {
    start: go('call'),
    call: [callProcess(called, { data: { amount: '{{amount}}' }, error: 'end' }), go('end')],
    end: end(),
  },
})

const handling = defineProcess({
  id: work,
  nodes: { start: go('work'), work: [handled('db_call'), go('end')], end: end() },
})

const coding = defineProcess({
  id: work,
  nodes: { start: go('work'), work: [runCode('data.sum += data.amount'), go('end')], end: end() },
})

const cells: readonly ProcessCell[] = [
  { name: 'pure/10', tasks: 40_000, definitions: [chain(10)] },
  { name: 'pure/100', tasks: 8_000, definitions: [chain(100)] },
  { name: 'pure/1000', tasks: 800, definitions: [chain(1_000)] },
  { name: 'wide/100', tasks: 40_000, definitions: [chain(10, 100)] },
  { name: 'wide/1000', tasks: 40_000, definitions: [chain(10, 1_000)] },
  { name: 'wide/10000', tasks: 40_000, definitions: [chain(10, 10_000)] },
  { name: 'call', tasks: 20_000, definitions: [calling, called] },
  { name: 'handler', tasks: 20_000, definitions: [handling] },
  { name: 'code', tasks: 2_000, definitions: [coding] },
]

const ops_a_request = 100
const callers = 4

async function create(engine: Engine, tasks: number): Promise<void> {
  let left = tasks
  const caller = async (): Promise<void> => {
    while (left > 0) {
      const count = Math.min(ops_a_request, left)
      left -= count
      const data = { amount: 1, sum: 0 }
      const op = { type: 'create', obj: 'task', conv_id: work, data }
      const results = await engine.apply(Array.from({ length: count }, () => op))
      const refused = results.find(({ proc }) => proc !== 'ok')
      if (refused !== undefined) throw new Error(`${refused.proc}: ${refused.description}`)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
}

async function allEnded(engine: Engine): Promise<void> {
  for (;;) {
    const processes = await engine.processes.list()
    if (processes.every(({ tasks }) => tasks === 0)) return
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

async function run(definitions: ProcessCell['definitions'], tasks: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'conveyor-bench-'))
  try {
    await using engine = await openEngine(join(folder, 'tasks.lmdb'))
    engine.handle('db_call', ({ data }) => ({ sum: (data as { amount: number }).amount }), {
      threads_max: 64,
    })
    await engine.putProcesses(definitions)
    const start_ms = performance.now()
    await create(engine, tasks)
    await allEnded(engine)
    return (tasks / (performance.now() - start_ms)) * 1_000
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Measures the cells whose name, `process/…`, holds one of the texts. */
export async function* processCells(
  only: readonly string[],
  is_quick: boolean,
): AsyncGenerator<ProcessLine> {
  for (const { name, definitions, ...given } of cells) {
    const cell = `process/${name}`
    if (!only.some((text) => cell.includes(text))) continue
    const tasks = is_quick ? Math.ceil(given.tasks / 100) : given.tasks
    await run(definitions, Math.ceil(tasks / 10))
    const rates: number[] = []
    for (let rep = 0; rep < (is_quick ? 1 : 3); rep++) rates.push(await run(definitions, tasks))
    const sorted = rates.sort((a, b) => a - b).map(Math.round)
    const tasks_per_s = sorted[sorted.length >> 1] as number
    yield { kind: 'process', cell, tasks, tasks_per_s, min: sorted[0], max: sorted.at(-1) }
  }
}

export interface ProcessLine {
  readonly kind: 'process'
  readonly cell: string
  readonly tasks: number
  readonly tasks_per_s: number
  readonly min: number | undefined
  readonly max: number | undefined
}
