/**
 * Races for one task that waits: a hundred modifies by all ways at once, alone, against the timer of
 * its node, and against a handler that comes meanwhile. Whoever is first resumes it, and nobody
 * else: each resumption raises a counter and comes to a node that waits for what never comes. A
 * modify that demands the wait (`is_sync`, `node_id`) is refused where the wait is over; any other
 * is merged.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Task } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { openEngine } from '../../src/open.ts'
import { fractionsOf } from './fractions.ts'
import { go } from './processes.ts'
import { type Answered, openWays, type RacingModify, type Way } from './race-ways.ts'

export const modifies = 100

/** Whom the modifies race with; the process has this id. */
const kinds = ['each other', 'the timer', 'a handler'] as const
type Kind = (typeof kinds)[number]

/** Modifies that ask for nothing, such that demand the wait, or some of both. */
const manners = ['plain', 'demanding', 'mixed'] as const

const timer_ms = 25
const refused = 'no_api_callback_in_node_with_task'

const node = (
  id: string,
  obj_type: number,
  logics: readonly object[],
  semaphors: object[] = [],
) => ({
  ...{ id, obj_type, title: id, condition: { logics, semaphors } },
})
const count = {
  ...{ type: 'set_param', extra: { resumed: '$.math({{resumed}}+1)' } },
  ...{ extra_type: { resumed: 'number' }, err_node_id: 'wrong' },
}

function processOf(kind: Kind): object {
  const timer = { type: 'time', value: timer_ms / 1_000, to_node_id: 'rung' }
  return {
    obj_id: kind,
    scheme: {
      nodes: [
        node('start', 1, [go('wait')]),
        node(
          'wait',
          0,
          [{ type: 'api_callback' }, go('count')],
          kind === 'the timer' ? [timer] : [],
        ),
        node('rung', 0, [{ type: 'set_param', extra: { rung: 'yes' } }, go('count')]),
        node('count', 0, [count, go('after')]),
        // Who resumes without a look at where the task is comes past this job, which nobody does.
        node('after', 0, [{ type: 'db_call' }, go('count')]),
        node('wrong', 2, []),
      ],
    },
  }
}

export interface Races {
  /** Resolves with what was wrong, if anything was. */
  race(seed: number): Promise<string | undefined>
  /** By whom a task was resumed, how many races each. */
  readonly won: Record<string, number>
  /** Resolves with the breaches that `check` finds. */
  close(): Promise<readonly string[]>
}

export async function openRaces(): Promise<Races> {
  const folder = mkdtempSync(join(tmpdir(), 'conveyor-race-'))
  const engine = await openEngine(join(folder, 'tasks.lmdb'))
  // The job behind the wait is one that is known, and that nobody does.
  const unregister = engine.handle('db_call', () => ({}))
  for (const kind of kinds) await engine.processes.put(processOf(kind))
  unregister()
  const ways = await openWays(engine, kinds)
  const won: Record<string, number> = {}
  let races = 0
  return {
    won,
    async race(seed) {
      const fraction = fractionsOf(seed)
      const one = { engine, ways: ways.all, fraction, ref: `${seed}/${races++}` }
      const { task, sent, kind } = await runRace(one)
      const wrong = wrongIn(task, sent)
      const winner = winnerOf(task, sent)
      won[winner] = (won[winner] ?? 0) + 1
      await engine.tasks.cancel({ conv_id: kind, obj_id: task.obj_id })
      return wrong.length === 0
        ? undefined
        : `${modifies} modifies and ${kind}: ${wrong.join('; ')}`
    },
    async close() {
      const { breaches } = await engine.check()
      await ways.close()
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
      return breaches
    },
  }
}

interface Sent extends Answered {
  readonly way: string
  readonly name: string
  readonly is_demanding: boolean
}

interface Race {
  readonly engine: Engine
  readonly ways: readonly Way[]
  readonly fraction: () => number
  readonly ref: string
}

async function runRace({ engine, ways, fraction, ref }: Race) {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(fraction() * values.length)] as T
  const kind = pick(kinds)
  // Embedded calls are always first, so some races are without them.
  const taken = shuffled(ways, fraction).slice(0, 1 + Math.floor(fraction() * ways.length))
  const manner = pick(manners)
  const conv_id = kind
  const { obj_id } = await engine.create({ conv_id, ref, data: { resumed: 0 } })
  const send = async (name: string): Promise<Sent> => {
    const is_demanding = manner === 'demanding' || (manner === 'mixed' && fraction() < 0.5)
    const demand = fraction() < 0.5 ? { is_sync: true as const } : { node_id: 'wait' }
    const one: RacingModify = { conv_id, ref, data: { [name]: ref }, ...(is_demanding && demand) }
    const way = pick(taken)
    return { ...(await way.modify(one)), way: way.name, name, is_demanding }
  }
  const registered: (() => void)[] = []
  const handle = (): void => {
    registered.push(engine.handle(`${kind}/wait`, () => ({ handled: 'yes' })))
  }
  const racers: (() => unknown)[] = Array.from(
    { length: modifies },
    (_, at) => () => send(`m${at}`),
  )
  if (kind === 'a handler') racers.push(handle)
  // The timer rings before, among or behind them.
  if (kind === 'the timer') await sleep(fraction() * 2 * timer_ms)
  const sent: Sent[] = []
  const under_way: Promise<unknown>[] = []
  const burst = 1 + Math.floor(fraction() * modifies)
  for (const [at, begin] of shuffled(racers, fraction).entries()) {
    const begun = begin()
    if (begun instanceof Promise) under_way.push(begun.then((one: Sent) => sent.push(one)))
    if (at % burst === burst - 1) await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(under_way)
  const target = { conv_id, obj_id: obj_id as string }
  let task = (await engine.task(target)) as Task
  // The timer or the handler may have lost, and then nobody comes any more.
  while (task.node_id === 'wait') {
    await sleep(1)
    task = (await engine.task(target)) as Task
  }
  for (const end of registered) end()
  return { task, sent, kind }
}

/** The same values in an order of chance. */
function shuffled<T>(values: readonly T[], fraction: () => number): T[] {
  return values
    .map((value) => ({ value, at: fraction() }))
    .sort((one, other) => one.at - other.at)
    .map(({ value }) => value)
}

const dataOf = ({ data }: Task) => data as Readonly<Record<string, unknown>>

function winnerOf(task: Task, sent: readonly Sent[]): string {
  const { rung, handled } = dataOf(task)
  if (rung !== undefined) return 'timer'
  if (handled !== undefined) return 'handler'
  const known = sent.find((one) => one.resumed === true || (one.is_demanding && one.proc === 'ok'))
  return known?.way ?? 'a plain modify'
}

function wrongIn(task: Task, sent: readonly Sent[]): string[] {
  const data = dataOf(task)
  const wrong: string[] = []
  if (data.resumed !== 1) wrong.push(`resumed ${data.resumed} times`)
  if (task.node_id !== 'after') wrong.push(`ended at ${task.node_id}`)
  if (sent.length !== modifies) wrong.push(`${sent.length} of ${modifies} answered`)
  for (const { way, name, proc, is_demanding } of sent) {
    const is_stated = proc === 'ok' || (is_demanding && proc === refused)
    if (!is_stated) wrong.push(`${way} was answered ${proc}`)
    if ((proc === 'ok') !== (data[name] !== undefined))
      wrong.push(`${way}: ${proc}, but not merged so`)
  }
  const resumed = sent.filter((one) => one.resumed || (one.is_demanding && one.proc === 'ok'))
  const others = [data.rung, data.handled].filter((one) => one !== undefined)
  if (resumed.length + others.length > 1) {
    const all = [...resumed.map(({ way }) => way), ...(data.rung ? ['timer'] : [])]
    wrong.push(`resumed by ${all.join(' and ')}${data.handled ? ' and a handler' : ''}`)
  }
  return wrong
}
