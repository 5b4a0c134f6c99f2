/**
 * Checks what a crash left: each acknowledged batch against the tasks that are there, and each
 * batch that left a mark, acknowledged or not, against itself.
 */

import type { Task } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api.ts'
import { type Ack, counterRef, type Mark, pairs, timed, waiting } from './crash-work.ts'
import { tasksOf } from './tasks-of.ts'

export interface Verdict {
  /** What was acknowledged and is not there. */
  readonly lost: readonly string[]
  /** Batches that are there in part. */
  readonly half: readonly string[]
  /** What the engine's own check says. */
  readonly breaches: readonly string[]
}

const all = 10_000_000

/** `forgotten` are batches whose tasks were removed after an earlier judgement. */
export async function judge(
  engine: Engine,
  acks: readonly Ack[],
  forgotten: ReadonlySet<string>,
): Promise<Verdict> {
  const tasks = new Map<string, Task>()
  for (const conv_id of [timed, waiting]) {
    for (const status of ['delayed', 'failed', 'processing', 'processed', 'canceled'] as const) {
      const found = await tasksOf(engine, conv_id, { status, limit: all })
      for (const task of found) tasks.set(task.obj_id, task)
    }
  }
  const { breaches } = await engine.check()
  const counters = countersOf(tasks)
  return {
    breaches,
    lost: acks.flatMap((ack) => (forgotten.has(ack.batch) ? [] : lostOf(ack, tasks, counters))),
    half: halves(tasks, counters, forgotten),
  }
}

type Data = Partial<Mark> & { readonly by?: string; readonly late?: string }
const dataOf = (task: Task | undefined): Data => (task?.data ?? {}) as Data

/** By ref, the batch that a counter was last changed by. */
function countersOf(tasks: ReadonlyMap<string, Task>): Map<string, string> {
  const counters = new Map<string, string>()
  for (const task of tasks.values()) {
    if (dataOf(task).batch === undefined && task.conv_id === waiting) {
      counters.set(task.ref ?? '', dataOf(task).by ?? '')
    }
  }
  return counters
}

function lostOf(
  { batch, pair, made, woke }: Ack,
  tasks: ReadonlyMap<string, Task>,
  counters: ReadonlyMap<string, string>,
): string[] {
  const lost = made
    .filter((obj_id) => dataOf(tasks.get(obj_id)).batch !== batch)
    .map((obj_id) => `${batch}: task ${obj_id} that it made`)
  for (const obj_id of woke) {
    const task = tasks.get(obj_id)
    const is_woken = task?.status === 'processed' && dataOf(task).by === batch
    if (!is_woken) lost.push(`${batch}: task ${obj_id} that it woke`)
  }
  if ((counters.get(counterRef('left', pair)) ?? '') < batch) lost.push(`${batch}: its counters`)
  return lost
}

function halves(
  tasks: ReadonlyMap<string, Task>,
  counters: ReadonlyMap<string, string>,
  forgotten: ReadonlySet<string>,
): string[] {
  const half: string[] = []
  const made = new Map<string, { readonly mark: Mark; count: number }>()
  for (const task of tasks.values()) {
    const mark = dataOf(task)
    if (mark.batch === undefined) continue
    const entry = made.get(mark.batch) ?? { mark: mark as Mark, count: 0 }
    entry.count++
    made.set(mark.batch, entry)
  }
  for (const [batch, { mark, count }] of made) {
    if (count !== mark.parts) half.push(`${batch}: ${count} tasks of ${mark.parts}`)
    if ((counters.get(counterRef('left', mark.pair)) ?? '') < batch) {
      half.push(`${batch}: without its counters`)
    }
    for (const obj_id of mark.wakes) {
      const data = dataOf(tasks.get(obj_id))
      const is_woken = data.by === batch || data.late !== undefined
      if (!is_woken && !forgotten.has(data.batch ?? batch)) half.push(`${batch}: without a wake`)
    }
  }
  const isThere = (batch: string): boolean => made.has(batch) || forgotten.has(batch)
  for (const task of tasks.values()) {
    const { by } = dataOf(task)
    if (by !== undefined && !isThere(by)) half.push(`${by}: without its tasks`)
  }
  for (let pair = 0; pair < pairs; pair++) {
    const [left, right] = ['left', 'right'].map((side) => counters.get(counterRef(side, pair)))
    if (left !== right) half.push(`pair ${pair}: "${left}" and "${right}"`)
  }
  return half
}

/**
 * Ends and removes all tasks but the counters, so that a long test does not grow; names the
 * batches.
 */
export async function clear(engine: Engine): Promise<string[]> {
  const batches = new Set<string>()
  for (const conv_id of [timed, waiting]) {
    const live = await tasksOf(engine, conv_id, { limit: all })
    const ended = await tasksOf(engine, conv_id, { status: 'processed', limit: all })
    for (const task of [...live, ...ended]) {
      const { batch } = dataOf(task)
      if (batch !== undefined) batches.add(batch)
    }
    const marked = live.filter((task) => dataOf(task).batch !== undefined)
    await Promise.all(marked.map(({ obj_id }) => engine.tasks.cancel({ conv_id, obj_id })))
  }
  return [...batches]
}
