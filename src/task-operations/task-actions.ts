/**
 * What operators do to one task. Data and refs come as JSON text, so that numbers keep their exact
 * text; a result says what the task was and is, without its data.
 */
import { parseJson, rawJson } from '../codec/json.ts'
import { parseOp } from '../codec/op.ts'
import { isFault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Doc, Op, OpResult } from '../core/model.ts'
import type { Engine } from '../engine/api/engine-api.ts'
import type { BulkAction } from '../engine/api/search-api.ts'
import type { ActionResult, TargetInput } from '../engine/api/task-api.ts'
import { type ServedEngine, servedEngine } from '../engine/served-engine.ts'
import { quoted } from '../process/report.ts'
import { isMasked, maskedData, maskedPaths } from './hidden-params.ts'
import { processOf } from './task-view.ts'

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

/** After a retry, a move or a cancel also what the task was and is now. */
export type ResultView = Omit<ActionResult, 'task'> & { readonly now?: ActionResult['was'] }

export function viewOfResult({ task, ...view }: ActionResult): ResultView {
  if (view.was === undefined || task === undefined) return view
  return { ...view, now: { status: task.status, node_id: task.node_id } }
}

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

export interface TaskAction {
  readonly action: BulkAction
  /** Of a retry or a move. */
  readonly to_node_id?: string
  /** Of a modify. */
  readonly data?: Doc
}

/** One action on one task; a refused one is a result, with its code. */
export function act(
  { tasks, modify }: ServedEngine,
  target: TargetInput,
  { action, to_node_id, data }: TaskAction,
): Promise<ActionResult> {
  if (action === 'cancel') return tasks.cancel(target)
  if (action === 'retry') return tasks.retry(target, to_node_id)
  if (action === 'move') return tasks.move(target, to_node_id ?? '')
  return modify({ ...target, data })
}

/** Retries, moves or cancels a task, and returns what it was and is. */
export async function actAndShow(
  engine: Engine,
  target: TargetInput,
  action: TaskAction,
): Promise<ResultView> {
  return viewOfResult(await act(servedEngine(engine), target, action))
}

/**
 * A sentence on the first hidden parameter whose mask is in the data; undefined without one, and
 * for a text that is not JSON. Without a process the parameters of all processes count.
 */
export async function maskWritten(
  engine: ServedEngine,
  conv_id: string | undefined,
  data_text: string,
): Promise<string | undefined> {
  const data = maskedData(data_text, engine.limits.nesting_max)
  if (data === undefined) return undefined
  const conv_ids =
    conv_id === undefined
      ? (await engine.processes.list()).map((process) => process.conv_id)
      : [conv_id]
  for (const one of conv_ids) {
    const { definition_text = '{}' } = (await processOf(engine, one)) ?? {}
    const path = maskedPaths(definition_text).find((path) => isMasked(data, path))
    if (path === undefined) continue
    const name = quoted(path.map((step) => step ?? '[]').join('.'))
    return `${name} is hidden, and "***" is not its value: leave it out, or give it a new one`
  }
  return undefined
}
