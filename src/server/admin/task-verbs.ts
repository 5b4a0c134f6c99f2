/**
 * The admin verbs on tasks. Data and refs cross the socket as JSON text, so that numbers keep their
 * exact text. Tasks are returned with their data as text, in which parameters with the flag
 * `auto-clear` are shown as `***`, in descriptions of failures too; the stored task keeps them.
 */
import {
  isObject,
  parseJson,
  parseStored,
  rawJson,
  setMember,
  stringifyJson,
} from '../../codec/json.ts'
import { parseOp } from '../../codec/op.ts'
import { isFault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { HistoryEntry, JsonObject, JsonValue, Op, OpResult, Task } from '../../core/model.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import type { ProcessDetails } from '../../engine/api/process-api.ts'
import type { ActionResult, TargetInput } from '../../engine/api/task-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import type { TaskWait } from '../../engine/tasks/task-wait.ts'
import { textsIn, withoutSecret } from '../../engine/transactions/masking.ts'
import { type ParamPath, readParamPath } from '../../process/param-path.ts'
import { member } from '../../process/templates/path.ts'

/** An op as the command line sends it; `ref_text` and `data_text` are JSON text. */
export interface RawOp {
  readonly type: 'create' | 'modify'
  readonly conv_id: string
  readonly ref_text?: string
  readonly obj_id?: string
  readonly data_text: string
  readonly is_sync?: boolean
  readonly node_id?: string
}

export type TaskView = Omit<Task, 'data' | 'history'> & {
  /** Where it was asked for. */
  readonly history?: readonly ShownEntry[]
  /** As the present definition has it; absent for a node that is no longer there. */
  readonly node_title?: string
  /** Of a live task that waits. */
  readonly wait?: TaskWait
}

export interface ShownEntry extends HistoryEntry {
  /** As the present definition has it; absent for a node that is no longer there. */
  readonly node_title?: string
}

/** After a retry, a move or a cancel also what the task was and is now. */
export type ResultView = Omit<ActionResult, 'task'> & { readonly now?: ActionResult['was'] }

/** One result for each op. Data or a ref that is no JSON of its kind refuses its op only. */
export async function applyTasks(
  engine: Engine,
  args: { readonly ops: readonly RawOp[] },
): Promise<ResultView[]> {
  const ops = args.ops.map((raw) => opOf(raw, engine.limits))
  const results = await servedEngine(engine).submit(ops, {})
  return results.map(viewOfResult)
}

function opOf({ ref_text, data_text, ...op }: RawOp, limits: Limits): Op | OpResult {
  const { nesting_max, body_values_max: values_max } = limits
  try {
    const ref = ref_text === undefined ? {} : { ref: parseJson(ref_text) }
    const data = rawJson(data_text, { nesting_max, values_max })
    return parseOp({ ...op, ...ref, obj: 'task', data }, limits)
  } catch (error) {
    if (!isFault(error)) throw error
    const description = `Value is not valid. ${error.message}`
    return { ref: null, obj: 'task', proc: 'error', description, key: 'data' }
  }
}

/** As `Engine.task`; null where there is none. */
export async function showTask(
  engine: Engine,
  { with_history = false, ...target }: TargetInput & { readonly with_history?: boolean },
): Promise<TaskView | null> {
  const process = await engine.processes.show(target.conv_id)
  const task = await engine.task(target)
  if (task === undefined) return null
  const [wait] = await servedEngine(engine).waitsOf([task.obj_id])
  const { history, ...view } = wholeView(task, process, wait)
  return with_history ? { ...view, history } : view
}

/** A task with its history, as the present definition of its process has the nodes. */
export function wholeView(
  task: Task,
  { definition_text, nodes }: Pick<ProcessDetails, 'definition_text' | 'nodes'>,
  wait: TaskWait | undefined,
): TaskView & { readonly history: readonly ShownEntry[] } {
  const titles = titlesOf(nodes)
  const paths = maskedPaths(definition_text)
  const history = (task.history ?? []).map((entry) => {
    const node_title = titles.get(entry.node_id)
    return node_title === undefined ? entry : { ...entry, node_title }
  })
  return { ...viewOfTask(task, paths), ...placeOf(task, titles, paths, wait), history }
}

export function titlesOf(nodes: ProcessDetails['nodes']): ReadonlyMap<string, string> {
  return new Map(nodes.map(({ id, title }) => [id, title]))
}

/** Where a task is and why it waits there; how its last attempt failed is masked as its data. */
export function placeOf(
  { node_id, data_text }: Task,
  titles: ReadonlyMap<string, string>,
  paths: readonly ParamPath[],
  wait: TaskWait | undefined,
): Pick<TaskView, 'node_title' | 'wait'> {
  const node_title = titles.get(node_id)
  const { last_error } = wait ?? {}
  const masked =
    last_error === undefined ? {} : maskTask({ data_text, status_details: last_error }, paths)
  const { status_details } = masked as Partial<MaskedPart>
  return {
    ...(node_title === undefined ? {} : { node_title }),
    ...(wait === undefined
      ? {}
      : { wait: { ...wait, ...(status_details && { last_error: status_details }) } }),
  }
}

interface ActionArgs {
  readonly target: TargetInput
  /** Of a retry or a move: the node to go to. */
  readonly node_id?: string
}

export async function retryTask(engine: Engine, args: ActionArgs): Promise<ResultView> {
  return viewOfResult(await engine.tasks.retry(args.target, args.node_id))
}

export async function moveTask(engine: Engine, args: ActionArgs): Promise<ResultView> {
  return viewOfResult(await engine.tasks.move(args.target, args.node_id ?? ''))
}

export async function cancelTask(engine: Engine, args: ActionArgs): Promise<ResultView> {
  return viewOfResult(await engine.tasks.cancel(args.target))
}

export function viewOfTask(task: Task, paths: readonly ParamPath[]): TaskView {
  const { obj_id, conv_id, ref, ref_is_number, status, user_id } = task
  const { create_time_ms, change_time_ms, node_id, node_prev_id, trace_id } = task
  const { data_text, status_details } = maskTask(task, paths)
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
    data_text,
    ...(trace_id === undefined ? {} : { trace_id }),
  }
}

export function viewOfResult({ task, ...view }: ActionResult): ResultView {
  if (view.was === undefined || task === undefined) return view
  return { ...view, now: { status: task.status, node_id: task.node_id } }
}

const masked_flag = 'auto-clear'

/** Where a definition's parameters with the flag `auto-clear` are; each also as one plain name. */
export function maskedPaths(definition_text: string): readonly ParamPath[] {
  // Seldom there, and the text is written as `stringifyJson` writes it.
  if (!definition_text.includes(masked_flag)) return []
  const paths: ParamPath[] = []
  const definition = parseStored(definition_text)
  const params = isObject(definition) ? definition.params : undefined
  for (const param of Array.isArray(params) ? params : []) {
    if (!isObject(param) || typeof param.name !== 'string' || !Array.isArray(param.flags)) continue
    if (param.flags.includes(masked_flag)) paths.push(readParamPath(param.name), [param.name])
  }
  return paths
}

const mask = '***'

type MaskedPart = Pick<Task, 'data_text' | 'status_details'>

const description_name = /^__conveyor_.*_return_description__$/

/**
 * The data and the status details of a task with what is at the paths masked, also in the
 * descriptions of failures. Other members keep their text.
 */
export function maskTask(
  { data_text, status_details }: MaskedPart,
  paths: readonly ParamPath[],
): MaskedPart {
  const details = status_details === undefined ? {} : { status_details }
  const data = paths.length === 0 ? undefined : parseStored(data_text)
  if (!isObject(data)) return { ...details, data_text }
  const secrets = paths.flatMap((path) => maskBelow(data, path))
  const told = (text: string): string => secrets.reduce(withoutSecret, text)
  for (const [name, value] of Object.entries(data)) {
    if (typeof value === 'string' && description_name.test(name)) data[name] = told(value)
  }
  if (details.status_details !== undefined) {
    const { tag, description } = details.status_details
    details.status_details = { tag, description: told(description) }
  }
  return { ...details, data_text: stringifyJson(data) }
}

/** Masks what is at the path, and returns the texts that it held. */
function maskBelow(holder: JsonValue | undefined, [step, ...path]: ParamPath): string[] {
  if (step === null) {
    if (!Array.isArray(holder)) return []
    return [...holder.keys()].flatMap((at) => maskBelow(holder, [String(at), ...path]))
  }
  const value = step === undefined ? undefined : member(holder, step)
  if (step === undefined || value === undefined) return []
  if (path.length > 0) return maskBelow(value, path)
  if (Array.isArray(holder)) holder[Number(step)] = mask
  else setMember(holder as JsonObject, step, mask)
  return textsIn(value)
}

/** Whether what is at the path is a mask: who writes it back would lose the value. */
export function isMasked(value: JsonValue | undefined, [step, ...path]: ParamPath): boolean {
  if (step === undefined) return value === mask
  if (step !== null) return isMasked(member(value, step), path)
  return Array.isArray(value) && value.some((one) => isMasked(one, path))
}
