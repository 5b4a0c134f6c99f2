/**
 * Compares what an engine shows with what the model says it must.
 */
import assert from 'node:assert/strict'
import type { OpResult, Task } from '../../../src/core/model.ts'
import type { Engine } from '../../../src/engine/api/engine-api.ts'
import { tasksOf } from '../tasks-of.ts'
import type { Answer } from './ops.ts'
import type { Json } from './plan.ts'
import { sorted } from './values.ts'
import type { ModelTask, Ref, World } from './world.ts'

/** As much of an op as its result repeats. */
export interface Wire {
  readonly type?: string
  readonly ref?: Ref | null
  readonly obj_id?: string
}

/** A task as it is now, which later changes leave alone. */
export const frozen = (task: ModelTask): ModelTask => ({ ...task, history: [...task.history] })

export function compareResult(wire: Wire, result: OpResult, answer: Answer | undefined): void {
  const { task: shown, ...rest } = result
  if (answer === undefined) {
    const wanted = { ref: null, obj: 'task', proc: 'error', description: 'bad type', key: 'type' }
    assert.deepEqual(result, wanted)
    return
  }
  const { code, says, task, resumed } = answer
  const by_id = wire.type !== 'create' && wire.obj_id !== undefined
  const known = code === 'ok' && by_id ? task?.ref : (wire.ref ?? task?.ref)
  assert.deepEqual(rest, {
    type: wire.type ?? 'show',
    ...refOf(code === 'ok' && !by_id ? wire.ref : known),
    obj: 'task',
    ...(task === undefined ? {} : { obj_id: task.obj_id }),
    proc: code,
    ...(says === undefined ? {} : { description: says }),
    ...(resumed === undefined ? {} : { resumed }),
  })
  const is_shown = code === 'ok' && wire.type !== 'create' && wire.type !== 'modify'
  if (!is_shown) assert.equal(shown, undefined)
  else same([seen(shown as Task)], [modeled(task as ModelTask)])
}

function refOf(ref: Ref | null | undefined): object {
  if (ref === undefined || ref === null) return { ref: null }
  return typeof ref === 'number' ? { ref: String(ref), ref_is_number: true } : { ref }
}

function seen(task: Task): object {
  const { history = [], data_text, data: _data, ...rest } = task
  return { ...rest, data: sorted(JSON.parse(data_text) as Json), history }
}

function modeled(task: ModelTask): object {
  return {
    obj_id: task.obj_id,
    conv_id: task.conv,
    ...refOf(task.ref),
    status: task.status,
    ...(task.details === undefined ? {} : { status_details: task.details }),
    user_id: task.user ?? null,
    create_time_ms: task.created_ms,
    change_time_ms: task.changed_ms,
    node_id: task.node,
    node_prev_id: task.prev,
    data: sorted(task.data as Json),
    history: task.history,
  }
}

/** Texts are compared first, which is fast; a difference is shown member by member. */
function same(found: readonly object[], wanted: readonly object[]): void {
  const text = (all: readonly object[]): string =>
    JSON.stringify(all.map((one) => sorted(one as Json)))
  if (text(found) === text(wanted)) return
  const differ = wanted.findIndex((one, at) => text([one]) !== text([found[at] ?? {}]))
  throw new Error(
    `the engine has\n${text([found[differ] ?? {}])}\nthe model\n${text([wanted[differ] ?? {}])}\n${found.length} ${wanted.length}`,
  )
}

const byId = (one: object, other: object): number =>
  (one as { obj_id: string }).obj_id < (other as { obj_id: string }).obj_id ? -1 : 1

/** All tasks that the engine lists are those of the model. */
export async function compareTasks(engine: Engine, world: World): Promise<void> {
  const tasks = [...world.tasks.values()]
  for (const conv of world.processes.keys()) {
    const found: Task[] = []
    for (const status of [undefined, 'processed', 'canceled'] as const) {
      // One by one: there may be more than a call takes as arguments.
      for (const task of await tasksOf(engine, conv, status === undefined ? {} : { status }))
        found.push(task)
    }
    const wanted = tasks.filter((task) => task.conv === conv)
    same(found.map(seen).sort(byId), wanted.map(modeled).sort(byId))
  }
}

export async function compareProcesses(engine: Engine, world: World): Promise<void> {
  for (const [conv, { plan, is_paused, version }] of world.processes) {
    const shown = await engine.processes.show(conv)
    const found = shown.nodes.map(({ id, by_status }) => [id, by_status])
    const none = { processing: 0, delayed: 0, failed: 0, processed: 0, canceled: 0 }
    const wanted = [...plan.nodes.keys()].map((id) => [
      id,
      { ...none, ...world.counts.get(`${conv} ${id}`) },
    ])
    assert.deepEqual(Object.fromEntries(found), Object.fromEntries(wanted))
    assert.deepEqual([shown.status === 'paused', shown.version], [is_paused, version])
  }
}

/** The changes of the whole history up to the last one of a task, in their order. */
export async function compareFeed(engine: Engine, world: World, last_id: string): Promise<void> {
  const found: string[] = []
  let at_ms = 0
  for await (const change of engine.changes({ from: 'start' })) {
    found.push(`${change.obj_id} ${change.conv_id} ${change.status} ${change.node_id}`)
    assert.ok(change.at_ms >= at_ms, 'the times of changes go back')
    at_ms = change.at_ms
    if (change.obj_id === last_id) break
  }
  if (found.join('\n') === world.feed.join('\n')) return
  const at = found.findIndex((one, n) => one !== world.feed[n])
  const near = (all: readonly string[]): string =>
    all.slice(Math.max(0, at - 12), at + 6).join('\n')
  throw new Error(`change ${at}: the engine has\n${near(found)}\nthe model\n${near(world.feed)}`)
}
