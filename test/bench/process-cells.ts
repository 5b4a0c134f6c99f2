/**
 * The cells of whole processes: `npm run bench -- --only process`. Four callers create tasks, 100 in a
 * request, in a new data file; the clock stops when every task has ended on disk.
 *
 * `pure/N` executes N nodes in one transaction, set_param and go_if_const alternating. `wide/N`
 * executes ten nodes in a graph of N. `call` is a call with its reply: two tasks. `handler` and `code`
 * execute a logic outside the transaction: two commits a task. The cost of `pure` should grow with N,
 * that of `wide` should not.
 */
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
import { type Engine, type EngineOptions, openEngine } from '../../src/index.ts'
import type { BenchFolder } from './folder.ts'
import type { OnOffLine } from './lives.ts'
import { removeFiles } from './resource-usage.ts'
import { summaryOf } from './statistics.ts'
import { assertOk, switched_off } from './workload.ts'

interface ProcessCell {
  readonly name: string
  readonly tasks: number
  readonly definitions: readonly ProcessDefinition[]
}

const process_id = '1'

/** A chain of `nodes` nodes, of which a task enters `entered`, with start and end. */
function chain(entered: number, nodes = entered): ProcessDefinition {
  const bodies: Record<string, NodeGiven<string>> = { end: end() }
  for (let at = 0; at < nodes - 2; at++) {
    const to = at === entered - 3 || at === nodes - 3 ? 'end' : `n${at + 1}`
    bodies[`n${at}`] =
      at % 2 === 0
        ? [setData({ sum: '$.math({{sum}}+{{amount}})' }, { types: { sum: 'number' } }), go(to)]
        : [when('sum', 'less', 0).go('end'), go(to)]
  }
  return defineProcess<string>({ id: process_id, nodes: { start: go('n0'), ...bodies } })
}

const called = defineProcess({
  id: '2',
  nodes: { start: go('reply'), reply: [reply({ price: '{{amount}}' }), go('end')], end: end() },
})

const calling = defineProcess({
  id: process_id,
  nodes: {
    start: go('call'),
    call: [callProcess(called, { data: { amount: '{{amount}}' }, error: 'end' }), go('end')],
    end: end(),
  },
})

const handling = defineProcess({
  id: process_id,
  nodes: { start: go('work'), work: [handled('db_call'), go('end')], end: end() },
})

const coding = defineProcess({
  id: process_id,
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

const ops_per_request = 100
const callers = 4

async function create(engine: Engine, tasks: number): Promise<void> {
  let left = tasks
  const caller = async (): Promise<void> => {
    while (left > 0) {
      const count = Math.min(ops_per_request, left)
      left -= count
      const data = { amount: 1, sum: 0 }
      const op = { type: 'create', obj: 'task', conv_id: process_id, data }
      assertOk(await engine.apply(Array.from({ length: count }, () => op)))
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

/** Measures tasks a second. */
async function run(
  path: string,
  definitions: ProcessCell['definitions'],
  tasks: number,
  limits: EngineOptions['limits'] = {},
): Promise<number> {
  try {
    await using engine = await openEngine(path, { limits })
    engine.handle('db_call', ({ data }) => ({ sum: (data as { amount: number }).amount }), {
      threads_max: 64,
    })
    await engine.processes.putMany(definitions)
    const start_ms = performance.now()
    await create(engine, tasks)
    await allEnded(engine)
    return (tasks / (performance.now() - start_ms)) * 1_000
  } finally {
    await removeFiles(path)
  }
}

interface ProcessRun {
  readonly folder: BenchFolder
  readonly isChosen: (name: string) => boolean
  readonly is_quick: boolean
}

/** Measures the chosen cells. */
export async function* processCells(given: ProcessRun): AsyncGenerator<ProcessLine> {
  for (const { cell, tasks, rateOf } of chosenCells(given)) {
    await rateOf(0.1)
    const rates: number[] = []
    for (let rep = 0; rep < (given.is_quick ? 1 : 3); rep++) rates.push(await rateOf())
    const { median, min, max } = summaryOf(rates)
    yield { kind: 'process', cell, tasks, tasks_per_s: median, min, max }
  }
}

/** The chosen cells with history and feed, and without, alternately. */
export async function* processesOnAndOff(given: ProcessRun): AsyncGenerator<OnOffLine> {
  for (const { cell, rateOf } of chosenCells(given)) {
    for (const limits of [{}, switched_off]) await rateOf(0.1, limits)
    const rates: (readonly [on: number, off: number])[] = []
    for (let rep = 0; rep < (given.is_quick ? 1 : 9); rep++) {
      const first = await rateOf(1, rep % 2 === 0 ? {} : switched_off)
      const second = await rateOf(1, rep % 2 === 0 ? switched_off : {})
      rates.push(rep % 2 === 0 ? [first, second] : [second, first])
    }
    const on_per_s = summaryOf(rates.map(([on]) => on)).median
    const off_per_s = summaryOf(rates.map(([, off]) => off)).median
    const ratio = summaryOf(rates.map(([on, off]) => on / off))
    yield { kind: 'on-off', cell, on_per_s, off_per_s, ratio }
  }
}

interface ChosenCell {
  readonly cell: string
  readonly tasks: number
  /** Runs a part of the cell in a new file; returns tasks a second. */
  rateOf(part?: number, limits?: EngineOptions['limits']): Promise<number>
}

function chosenCells({ folder, isChosen, is_quick }: ProcessRun): ChosenCell[] {
  return cells
    .map(({ name, definitions, tasks: full }) => {
      const tasks = is_quick ? Math.ceil(full / 100) : full
      const rateOf = async (part = 1, limits: EngineOptions['limits'] = {}): Promise<number> =>
        Math.round(await run(folder.newPath(), definitions, Math.ceil(tasks * part), limits))
      return { cell: `process/${name}`, tasks, rateOf }
    })
    .filter(({ cell }) => isChosen(cell))
}

export interface ProcessLine {
  readonly kind: 'process'
  readonly cell: string
  readonly tasks: number
  readonly tasks_per_s: number
  readonly min: number
  readonly max: number
}
