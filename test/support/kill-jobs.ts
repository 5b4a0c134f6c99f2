/**
 * Tasks whose work is cut off: a process whose tasks wait for a timer, make a call, run code and
 * call a handler, and leave a mark of each step. A step that was made twice shows twice: in the
 * counter of the task's data, and in the task that it creates in the process of marks.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import type { Handler } from '../../src/engine/api/handler-api.ts'
import { go } from './processes.ts'
import { tasksOf } from './tasks-of.ts'

export const work = 'work'
const marks = 'marks'
/** In order; each is marked by the node behind it. */
const steps = ['timer', 'call', 'code', 'handler'] as const
/** A kind that is not run here, so the embedder's handler does it. */
export const handled = 'db_call'
const timer_s = 0.02

const node = (
  id: string,
  obj_type: number,
  logics: readonly object[],
  semaphors: object[] = [],
) => ({
  ...{ id, obj_type, title: id, options: '{"save_task":true}' },
  condition: { logics, semaphors },
})

/** `url` is of the server that counts calls. The kind `handled` must have a handler. */
export async function putJobProcesses(engine: Engine, url: string): Promise<void> {
  const jobs = {
    call: { type: 'api', url, method: 'POST', extra: { id: '{{root.task_id}}' } },
    code: { type: 'api_code', lang: 'js', src: 'data.code = data.answer + 1' },
    handler: { type: handled },
  }
  const nodes = steps.flatMap((step, at) => [
    step === 'timer'
      ? node(step, 0, [], [{ type: 'time', value: timer_s, to_node_id: `${step} done` }])
      : node(step, 0, [{ ...jobs[step], err_node_id: 'failed' }, go(`${step} done`)]),
    node(`${step} done`, 0, [
      {
        ...{ type: 'set_param', extra: { changes: '$.math({{changes}}+1)' } },
        ...{ extra_type: { changes: 'number' }, err_node_id: 'failed' },
      },
      {
        ...{ type: 'api_copy', mode: 'create', conv_id: marks, err_node_id: 'failed' },
        ...{ data: { of: '{{root.task_id}}', step }, data_type: { of: 'string', step: 'string' } },
      },
      go(steps[at + 1] ?? 'end'),
    ]),
  ])
  await engine.processes.put({
    obj_id: marks,
    scheme: { nodes: [node('start', 1, [go('kept')]), node('kept', 0, [])] },
  })
  await engine.processes.put({
    obj_id: work,
    scheme: {
      nodes: [node('start', 1, [go('timer')]), ...nodes, node('end', 2, []), node('failed', 2, [])],
    },
  })
}

/** A handler that tells whom it was called for, takes its time, and tells that it is done. */
export function handlerThat(
  tells: (obj_id: string) => void,
  { done = () => {}, ms_max = 10 }: { done?: (obj_id: string) => void; ms_max?: number } = {},
): Handler {
  return async ({ obj_id }, { signal }) => {
    tells(obj_id)
    // Some give up when the drain is over, and some return what they have.
    const gives_up = Math.random() < 0.5
    await sleep(Math.random() ** 3 * ms_max, undefined, { signal }).catch((error) => {
      if (gives_up) throw error
    })
    done(obj_id)
    return { handler: obj_id }
  }
}

/** What the world has seen of the work. */
export interface WorkSeen {
  /** Tasks whose create was acknowledged. */
  readonly made: Set<string>
  /** By task, the lives of the server in which it was called for, and its keys. */
  readonly called: Map<string, { readonly by: number[]; readonly keys: Set<unknown> }>
  readonly handled: Set<string>
}

export const newWorkSeen = (): WorkSeen => ({
  ...{ made: new Set(), called: new Map(), handled: new Set() },
})

/** Steps that were made twice, at any time. */
export async function doubleSteps(engine: Engine): Promise<string[]> {
  const made = await marksIn(engine)
  return [...made].flatMap(([of, found]) =>
    found.length === new Set(found).size ? [] : [`${of}: ${found.sort()}`],
  )
}

/** Lets the engine finish all of it. What is wrong then. */
export async function finishWork(engine: Engine, seen: WorkSeen): Promise<string[]> {
  if (!(await isThere(engine, work))) return seen.made.size === 0 ? [] : ['the work is lost']
  const live = async () => (await tasksOf(engine, work, { limit: 1 })).length
  while ((await live()) > 0) await sleep(10)
  const made = await marksIn(engine)
  const tasks = await tasksOf(engine, work, { status: 'processed' })
  const found = new Set(tasks.map(({ obj_id }) => obj_id))
  const wrong = [...seen.made].filter((id) => !found.has(id)).map((id) => `${id} is lost`)
  const done = { changes: steps.length, answer: 1, code: 2, __conveyor_copy_task_result__: 'ok' }
  for (const { obj_id, node_id, data } of tasks) {
    const { by = [], keys } = seen.called.get(obj_id) ?? {}
    const wanted = JSON.stringify(sorted({ ...done, handler: obj_id }))
    const is_whole = node_id === 'end' && JSON.stringify(sorted(data as object)) === wanted
    if (!is_whole) wrong.push(`${obj_id} ended at ${node_id} with ${JSON.stringify(data)}`)
    if ([...(made.get(obj_id) ?? [])].sort().join() !== [...steps].sort().join()) {
      wrong.push(`${obj_id} has the marks ${made.get(obj_id)}`)
    }
    if (by.length === 0) wrong.push(`${obj_id} was never called for`)
    if (new Set(by).size !== by.length) wrong.push(`${obj_id} was called for twice in one life`)
    if (by.length > 0 && keys?.size !== 1) wrong.push(`${obj_id} was called for under two keys`)
    if (!seen.handled.has(obj_id)) wrong.push(`${obj_id} was never handled`)
  }
  return wrong
}

const sorted = (data: object) => Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1))

/** A program that was killed early has not put all its processes. */
async function isThere(engine: Engine, conv_id: string): Promise<boolean> {
  return (await engine.processes.list()).some((one) => one.conv_id === conv_id)
}

/** By task, the steps that were marked. */
async function marksIn(engine: Engine): Promise<Map<string, string[]>> {
  const marked = new Map<string, string[]>()
  if (!(await isThere(engine, marks))) return marked
  for (const { data } of await tasksOf(engine, marks)) {
    const { of, step } = data as { of: string; step: string }
    marked.set(of, [...(marked.get(of) ?? []), step])
  }
  return marked
}
