/**
 * Checks what a kill of the servers left: each request that was sent is there completely or not at
 * all, and completely if it was acknowledged; nothing else is there; no task was resumed twice by one
 * request; and the engine's check finds nothing.
 */

import type { Task } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { tasksOf } from './tasks-of.ts'
import {
  ledger,
  type Mark,
  markOf,
  orders,
  paced,
  placeOf,
  refOf,
  requestOf,
  resumesOf,
  type Seen,
  type Sequence,
} from './workload.ts'

export interface Verdict {
  /** Requests that were answered and are not there. */
  readonly lost: readonly string[]
  /** Requests that are there in part, or without one that came before them. */
  readonly half: readonly string[]
  /** Tasks that no request can have made. */
  readonly strange: readonly string[]
  /** Tasks that were resumed more or less often than their requests say. */
  readonly double: readonly string[]
  readonly breaches: readonly string[]
}

/** What is wrong by a verdict, if anything is; each list in it names what is. */
export function wrongBy(found: Readonly<Record<string, readonly string[]>>): string | undefined {
  const wrong = Object.entries(found).filter(([, all]) => all.length > 0)
  return wrong.length === 0 ? undefined : JSON.stringify(Object.fromEntries(wrong))
}

/** With the verdict: by sequence, how many of its requests are there. */
export interface Judgement {
  readonly verdict: Verdict
  readonly there: ReadonlyMap<Sequence, number>
}

const all = 10_000_000

/** `known` are all sequences that have ever sent, where those are more than are judged. */
export async function judgeWorkload(
  engine: Engine,
  sequences: readonly Sequence[],
  known = sequences,
): Promise<Judgement> {
  const tasks = await allTasks(engine)
  const seen = look(tasks)
  const lost: string[] = []
  const half: string[] = []
  const there = new Map<Sequence, number>()
  for (const sequence of sequences) {
    let whole = 0
    for (let n = 1; n <= sequence.sent; n++) {
      const signs = signsOf(sequence, n, seen)
      const is_whole = signs.every((sign) => sign)
      if (is_whole && whole === n - 1) whole = n
      else if (signs.includes(true)) half.push(`${refOf(sequence.name, n)}: ${signs}`)
      const is_kept =
        is_whole && requestOf(sequence, n).every((one) => one.isAnswerable?.(seen) ?? true)
      if (!is_kept && n <= sequence.acked) lost.push(refOf(sequence.name, n))
    }
    there.set(sequence, whole)
  }
  const { breaches } = await engine.check()
  return {
    verdict: {
      ...{ lost, half, strange: unexpected(tasks, known), breaches },
      double: tasks.flatMap(wronglyResumed),
    },
    there,
  }
}

function wronglyResumed({ ref, obj_id, data, data_text }: Task): string[] {
  const mark = data as Mark
  const is_right = mark.resumed === undefined || mark.resumed === resumesOf(mark)
  return is_right ? [] : [`${ref ?? obj_id} ${data_text}`]
}

async function allTasks(engine: Engine): Promise<Task[]> {
  const found: Task[] = []
  for (const conv_id of [orders, ledger, paced]) {
    found.push(...(await tasksOf(engine, conv_id, { limit: all })))
    for (const status of ['processed', 'canceled'] as const) {
      found.push(...(await tasksOf(engine, conv_id, { status, limit: all })))
    }
  }
  return found
}

function look(tasks: readonly Task[]): Seen {
  const named = new Map<string, Task>()
  const unnamed = new Map<string, number>()
  for (const task of tasks) {
    if (task.ref !== null) named.set(placeOf(task.conv_id, task.ref), task)
    else {
      const { sequence = '', n = 0 } = markOf(task)
      const made_by = refOf(sequence, n)
      unnamed.set(made_by, (unnamed.get(made_by) ?? 0) + 1)
    }
  }
  return { named, unnamed }
}

function signsOf(sequence: Sequence, n: number, seen: Seen): boolean[] {
  const told = sequence.told.get(n)
  return requestOf(sequence, n).flatMap(({ isThere }, at) => isThere?.(seen, told?.[at]) ?? [])
}

/** A second task in one place is no request's either. */
function unexpected(tasks: readonly Task[], sequences: readonly Sequence[]): string[] {
  const sent = new Map(sequences.map((sequence) => [sequence.name, sequence.sent]))
  const taken = new Set<string>()
  return tasks.flatMap((task) => {
    const { sequence = task.ref ?? '', n = 0, count } = markOf(task)
    const place = placeOf(task.conv_id, task.ref ?? task.obj_id)
    const is_known =
      count === undefined ? n >= 1 && n <= (sent.get(sequence) ?? 0) : sent.has(sequence) && n === 0
    const is_second = taken.has(place)
    taken.add(place)
    return is_known && !is_second ? [] : [`${place} ${task.data_text}`]
  })
}
