/**
 * The work under which backups are made, in lanes: a lane is the sequence of one caller's requests.
 * Each request counts in two processes, makes a task in each, and ends in each the one that the lane
 * made `tasks_each` requests before. So what a lane has done can be told from any state of it: of its
 * tasks those of the last requests are there, and where not all of a request is there, it shows.
 */
import { after, callback, defineProcess, end, go, when } from '../../src/define.ts'
import type { Engine, Task } from '../../src/index.ts'
import { tasksOf } from './tasks-of.ts'

const sides = ['left', 'right'] as const
const tasks_each = 4

export const backup_processes: readonly object[] = sides.map((id) =>
  defineProcess({
    id,
    nodes: {
      start: go('wait'),
      wait: [
        callback(),
        when('kind', 'eq', 'counter').go('wait'),
        go('done'),
        after({ hours: 1 }).go('done'),
      ],
      done: end(),
    },
  }),
)

interface Data {
  readonly kind: 'counter' | 'task'
  readonly lane: number
  readonly n: number
}

export const counterOp = (conv_id: string, lane: number): object => ({
  ...{ type: 'create', obj: 'task', conv_id, ref: `counter-${lane}` },
  data: { kind: 'counter', lane, n: 0 } satisfies Data,
})

/** The ops that must be there before the first request of a lane. */
export const countersOf = (lane: number): object[] => sides.map((side) => counterOp(side, lane))

/** The n-th request of a lane, from 1; `fill` is text for the data of its tasks. */
export function requestOf(lane: number, n: number, fill: string): object[] {
  return sides.flatMap((conv_id) => {
    const op = { obj: 'task', conv_id }
    const data: Data = { kind: 'task', lane, n }
    return [
      { ...op, type: 'modify', ref: `counter-${lane}`, data: { n } },
      { ...op, type: 'create', ref: `${lane}/${n}`, data: { ...data, fill } },
      ...(n > tasks_each
        ? [{ ...op, type: 'modify', ref: `${lane}/${n - tasks_each}`, data: {} }]
        : []),
    ]
  })
}

/** What is wrong with a state that has all requests up to `acked` of each lane, and none after `sent`. */
export async function wrongIn(
  engine: Engine,
  acked: readonly number[],
  sent: readonly number[],
): Promise<string[]> {
  const { breaches } = await engine.check()
  const [left, right] = await Promise.all(sides.map((side) => tasksOf(engine, side)))
  const wrong = [...breaches]
  for (const [lane, least] of acked.entries()) {
    const [one, other] = [left, right].map((tasks = []) => shownBy(tasks, lane))
    const count = one?.count ?? -1
    if (one?.text !== other?.text) wrong.push(`lane ${lane}: ${one?.text} and ${other?.text}`)
    else if (one?.text !== textOf(count, lane)) wrong.push(`lane ${lane}: ${one?.text}`)
    if (count < least) wrong.push(`lane ${lane}: ${count} of ${least} requests that were answered`)
    if (count > (sent[lane] ?? 0)) wrong.push(`lane ${lane}: ${count} of ${sent[lane]} requests`)
  }
  return wrong
}

function shownBy(all: readonly Task[], lane: number): { count: number; text: string } {
  const own = all.map(({ data }) => data as unknown as Data).filter((data) => data.lane === lane)
  const counters = own.filter(({ kind }) => kind === 'counter')
  const ns = own.filter(({ kind }) => kind === 'task').map(({ n }) => n)
  const text = `${counters.map(({ n }) => n)} with ${ns.sort((one, more) => one - more)}`
  return { count: counters[0]?.n ?? -1, text }
}

function textOf(count: number, _lane: number): string {
  const first = Math.max(1, count - tasks_each + 1)
  return `${count} with ${Array.from({ length: count - first + 1 }, (_, at) => first + at)}`
}
