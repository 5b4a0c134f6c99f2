/**
 * The work under which backups are made, as sequences: each holds the requests of one caller.
 * Each request counts in two processes, makes a task in each, and ends in each the one that the sequence
 * made `tasks_each` requests before. So what a sequence has done can be told from any state of it: of its
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
  readonly sequence: number
  readonly n: number
}

export const counterOp = (conv_id: string, sequence: number): object => ({
  ...{ type: 'create', obj: 'task', conv_id, ref: `counter-${sequence}` },
  data: { kind: 'counter', sequence, n: 0 } satisfies Data,
})

/** The ops that must be there before the first request of a sequence. */
export const countersOf = (sequence: number): object[] =>
  sides.map((side) => counterOp(side, sequence))

/** The n-th request of a sequence, from 1; `fill` is text for the data of its tasks. */
export function requestOf(sequence: number, n: number, fill: string): object[] {
  return sides.flatMap((conv_id) => {
    const op = { obj: 'task', conv_id }
    const data: Data = { kind: 'task', sequence, n }
    return [
      { ...op, type: 'modify', ref: `counter-${sequence}`, data: { n } },
      { ...op, type: 'create', ref: `${sequence}/${n}`, data: { ...data, fill } },
      ...(n > tasks_each
        ? [{ ...op, type: 'modify', ref: `${sequence}/${n - tasks_each}`, data: {} }]
        : []),
    ]
  })
}

/** What is wrong with a state that has all requests up to `acked` of each sequence, and none after `sent`. */
export async function wrongIn(
  engine: Engine,
  acked: readonly number[],
  sent: readonly number[],
): Promise<string[]> {
  const { breaches } = await engine.check()
  const [left, right] = await Promise.all(sides.map((side) => tasksOf(engine, side)))
  const wrong = [...breaches]
  for (const [sequence, least] of acked.entries()) {
    const [one, other] = [left, right].map((tasks = []) => shownBy(tasks, sequence))
    const count = one?.count ?? -1
    if (one?.text !== other?.text)
      wrong.push(`sequence ${sequence}: ${one?.text} and ${other?.text}`)
    else if (one?.text !== textOf(count, sequence)) wrong.push(`sequence ${sequence}: ${one?.text}`)
    if (count < least)
      wrong.push(`sequence ${sequence}: ${count} of ${least} requests that were answered`)
    if (count > (sent[sequence] ?? 0))
      wrong.push(`sequence ${sequence}: ${count} of ${sent[sequence]} requests`)
  }
  return wrong
}

function shownBy(all: readonly Task[], sequence: number): { count: number; text: string } {
  const own = all
    .map(({ data }) => data as unknown as Data)
    .filter((data) => data.sequence === sequence)
  const counters = own.filter(({ kind }) => kind === 'counter')
  const ns = own.filter(({ kind }) => kind === 'task').map(({ n }) => n)
  const text = `${counters.map(({ n }) => n)} with ${ns.sort((one, more) => one - more)}`
  return { count: counters[0]?.n ?? -1, text }
}

function textOf(count: number, _sequence: number): string {
  const first = Math.max(1, count - tasks_each + 1)
  return `${count} with ${Array.from({ length: count - first + 1 }, (_, at) => first + at)}`
}
