/**
 * The admin verbs about tasks. Data and refs cross as the JSON text they are, so that no number
 * loses its token on the way; tasks come back with their text, masked as the terminal must show it.
 */
import { parseJson, rawJson } from '../../codec/json.ts'
import { isFault } from '../../core/faults.ts'
import type { OpResult, Task } from '../../core/model.ts'
import type { Engine, TargetInput, TaskFilter } from '../../engine/api.ts'
import { maskData, maskedNames } from './mask.ts'

/** An op on its way: `ref_text` and `data_text` are JSON text. */
export interface RawOp {
  readonly type: 'create' | 'modify'
  readonly conv_id: string
  readonly ref_text?: string
  readonly obj_id?: string
  readonly data_text: string
  readonly is_sync?: boolean
  readonly node_id?: string
}

export type TaskView = Omit<Task, 'data'>

export type ResultView = Omit<OpResult, 'task'>

/** One result per op. Data that is no JSON object refuses its op alone. */
export async function applyTasks(
  engine: Engine,
  args: { readonly ops: readonly RawOp[] },
): Promise<ResultView[]> {
  const bounds = {
    nesting_max: engine.limits.nesting_max,
    values_max: engine.limits.body_values_max,
  }
  const results: ResultView[] = []
  const ops: unknown[] = []
  const places: number[] = []
  for (const [at, raw] of args.ops.entries()) {
    const { ref_text, data_text, ...op } = raw
    try {
      const ref = ref_text === undefined ? {} : { ref: parseJson(ref_text) }
      ops.push({ ...op, ...ref, obj: 'task', data: rawJson(data_text, bounds) })
      places.push(at)
    } catch (error) {
      if (!isFault(error)) throw error
      results[at] = badData(error.message)
    }
  }
  const applied = ops.length === 0 ? [] : await engine.apply(ops)
  for (const [at, result] of applied.entries()) results[places[at] as number] = viewOfResult(result)
  return results
}

/** The live task, or an ended one by obj_id; null where there is none. */
export async function showTask(engine: Engine, args: TargetInput): Promise<TaskView | null> {
  const names = await maskOf(engine, args.conv_id)
  const task = await engine.task(args)
  return task === undefined ? null : viewOfTask(task, names)
}

export async function listTasks(
  engine: Engine,
  args: { readonly conv_id: string; readonly filter: TaskFilter },
): Promise<TaskView[]> {
  const names = await maskOf(engine, args.conv_id)
  const tasks = await engine.tasks.list(args.conv_id, args.filter)
  return tasks.map((task) => viewOfTask(task, names))
}

export async function retryTask(
  engine: Engine,
  args: { readonly target: TargetInput; readonly node_id?: string },
): Promise<ResultView> {
  return viewOfResult(await engine.tasks.retry(args.target, args.node_id))
}

export async function cancelTask(
  engine: Engine,
  args: { readonly target: TargetInput },
): Promise<ResultView> {
  return viewOfResult(await engine.tasks.cancel(args.target))
}

function badData(message: string): ResultView {
  const description = `Value is not valid. ${message}`
  return { ref: null, obj: 'task', proc: 'error', description, key: 'data' }
}

async function maskOf(engine: Engine, conv_id: string | number): Promise<ReadonlySet<string>> {
  return maskedNames((await engine.processes.show(conv_id)).definition_text)
}

function viewOfTask(task: Task, names: ReadonlySet<string>): TaskView {
  const { obj_id, conv_id, ref, ref_is_number, status, status_details, user_id } = task
  const { create_time_ms, change_time_ms, node_id, node_prev_id } = task
  return {
    obj_id,
    conv_id,
    ref,
    ...(ref_is_number === undefined ? {} : { ref_is_number }),
    status,
    ...(status_details === undefined ? {} : { status_details }),
    user_id,
    create_time_ms,
    change_time_ms,
    node_id,
    node_prev_id,
    dataText: maskData(task.dataText, names),
  }
}

function viewOfResult(result: OpResult): ResultView {
  const { task: _unshown, ...view } = result
  return view
}
