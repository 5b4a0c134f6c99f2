/**
 * Messages to raw ops and results to messages (wire 2). Nothing of an op is checked here but that
 * `data_json` is a JSON object: bytes/op knows what is malformed, at every door alike.
 *
 * proto3 cannot tell an empty text from none, so an empty conv_id or node_id counts as absent; a
 * ref and a target say whether they are there.
 */
import { isObject, rawJson } from '../../bytes/json.ts'
import { fault, isFault } from '../../words/faults.ts'
import type { Limits } from '../../words/limits.ts'
import type { Doc, JsonValue, OpResult, Task } from '../../words/model.ts'
import type { Op__Output as OpMessage } from './generated/conveyor/v1/Op.ts'
import type { OpResult as ResultMessage } from './generated/conveyor/v1/OpResult.ts'
import type { Task as TaskMessage } from './generated/conveyor/v1/Task.ts'

/** Ops as `engine.apply` takes them. */
export interface RawOps {
  readonly ops: readonly object[]
  /** For an op whose data_json is no JSON object: what is wrong with it. */
  readonly broken: ReadonlyMap<number, string>
}

/**
 * Throws `format_error` where the batch carries a request key: its sender counts on a repeat being
 * answered and not applied, which is not served yet.
 */
export function readBatch(
  batch: { readonly ops: readonly OpMessage[]; readonly request_key: string },
  limits: Limits,
): RawOps {
  if (batch.request_key !== '') throw fault('format_error', 'request_key is not served yet')
  return readOps(batch.ops, limits)
}

export function readOps(messages: readonly OpMessage[], limits: Limits): RawOps {
  if (messages.length > limits.ops_max) {
    throw fault('too_many_ops', `${messages.length} ops, at most ${limits.ops_max} in one request`)
  }
  const broken = new Map<number, string>()
  let values_left = limits.body_values_max
  const readData = (at: number, bytes: Buffer): unknown => {
    if (bytes.length === 0) return {}
    try {
      const doc = readDoc(bytes, limits.nesting_max, values_left)
      values_left -= valuesIn(doc.memo ?? null, values_left)
      return doc
    } catch (error) {
      if (!isFault(error)) throw error
      broken.set(at, `Value is not valid. data: ${error.message}`)
      return 'broken'
    }
  }
  const ops = messages.map(({ kind, create, modify, show }, at) => {
    if (kind === 'create' && create) {
      const { conv_id, ref, data_json } = create
      return { ...head(kind, conv_id), ref, data: readData(at, data_json) }
    }
    if (kind === 'modify' && modify) {
      const { conv_id, ref, obj_id, data_json, is_sync, node_id } = modify
      const data = readData(at, data_json)
      const node = node_id === '' ? {} : { node_id }
      return { ...head(kind, conv_id), ref, obj_id, data, is_sync, ...node }
    }
    if (kind === 'show' && show) {
      return { ...head(kind, show.conv_id), ref: show.ref, obj_id: show.obj_id }
    }
    return {}
  })
  return { ops, broken }
}

/** The results of what was read, with what is wrong with a data_json said in its own. */
export function explained(raw: RawOps, results: readonly OpResult[]): readonly OpResult[] {
  if (raw.broken.size === 0) return results
  return results.map((result, at) => {
    const description = result.key === 'data' ? raw.broken.get(at) : undefined
    return description === undefined ? result : { ...result, description }
  })
}

/** The results of a batch, each with the id of its op. */
export function resultMessages(
  ops: readonly OpMessage[],
  results: readonly OpResult[],
): ResultMessage[] {
  return results.map((result, at) => resultMessage(ops[at]?.id ?? '', result))
}

function resultMessage(id: string, result: OpResult): ResultMessage {
  const { ref, obj_id, proc, description, task } = result
  return {
    id,
    ...(ref === null ? {} : { ref }),
    obj_id: obj_id ?? '',
    proc,
    description: description ?? '',
    ...(task === undefined ? {} : { task: taskMessage(task) }),
  }
}

export function taskMessage(task: Task): TaskMessage {
  return {
    obj_id: task.obj_id,
    conv_id: task.conv_id,
    ...(task.ref === null ? {} : { ref: task.ref }),
    status: task.status,
    user_id: task.user_id ?? '',
    create_time_ms: task.create_time_ms,
    change_time_ms: task.change_time_ms,
    node_id: task.node_id,
    node_prev_id: task.node_prev_id,
    data_json: Buffer.from(task.dataText),
  }
}

function head(type: string, conv_id: string): object {
  return conv_id === '' ? { type, obj: 'task' } : { type, obj: 'task', conv_id }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function readDoc(bytes: Buffer, nesting_max: number, values_max: number): Doc {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw fault('format_error', 'it is not UTF-8')
  }
  return rawJson(text, { nesting_max, values_max })
}

/** The values in a value, itself included, counted no further than `max`. */
function valuesIn(value: JsonValue, max: number): number {
  let values = 1
  const members = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []
  for (const member of members) {
    if (values >= max) return max
    values += valuesIn(member, max - values)
  }
  return values
}
