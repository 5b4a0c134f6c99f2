/**
 * Messages to raw ops (wire 2). Nothing of an op is checked here but that
 * `data_json` is a JSON object: codec/op knows what is malformed, at every context alike.
 *
 * proto3 cannot tell an empty text from none, so an empty conv_id or node_id counts as absent; a
 * ref and a target say whether they are there.
 */
import { docOfBytes } from '../../codec/doc-bytes.ts'
import { empty_doc, isObject, objectOf } from '../../codec/json.ts'
import { fault, isFault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { Doc, JsonValue, OpResult } from '../../core/model.ts'
import type { Batch, OpMessage } from './request-messages.ts'

/** Ops as `engine.apply` takes them. */
export interface RawOps {
  readonly ops: readonly object[]
  /** For an op whose data_json is no JSON object: what is wrong with it. Absent where none is. */
  readonly broken: ReadonlyMap<number, string> | undefined
}

/**
 * Throws `format_error` where the batch carries a request key: its sender counts on a repeat being
 * answered and not applied, which is not served yet.
 */
export function readBatch({ ops, op_count, request_key }: Batch, limits: Limits): RawOps {
  if (request_key !== '') throw fault('format_error', 'request_key is not served yet')
  if (op_count > limits.ops_max) {
    throw fault('too_many_ops', `${op_count} ops, at most ${limits.ops_max} in one request`)
  }
  return readOps(ops, limits)
}

export function readOps(messages: readonly OpMessage[], limits: Limits): RawOps {
  const { nesting_max, body_values_max } = limits
  // A value takes a byte at least: where the bytes are within the bound, the values are.
  const counts = dataBytesOf(messages) > body_values_max
  let values_left = body_values_max
  let broken: Map<number, string> | undefined
  const readData = (at: number, bytes: Buffer): Doc | 'broken' => {
    if (bytes.length === 0) return empty_doc
    try {
      const doc = docOfBytes(bytes, { nesting_max, values_max: values_left })
      if (counts) values_left -= valuesIn(objectOf(doc), values_left)
      return doc
    } catch (error) {
      if (!isFault(error)) throw error
      broken ??= new Map()
      broken.set(at, `Value is not valid. data: ${error.message}`)
      return 'broken'
    }
  }
  const ops = messages.map(({ kind }, at) => rawOp(kind, at, readData))
  return { ops, broken }
}

type ReadData = (at: number, bytes: Buffer) => Doc | 'broken'

function rawOp(kind: OpMessage['kind'], at: number, readData: ReadData): object {
  if (kind === undefined) return {}
  const { type, ref } = kind
  const conv_id = given(kind.conv_id)
  if (type === 'show') return { type, obj: 'task', conv_id, ref, obj_id: kind.obj_id }
  const data = readData(at, kind.data_json)
  if (type === 'create') return { type, obj: 'task', conv_id, ref, data }
  const { obj_id, is_sync } = kind
  const node_id = given(kind.node_id)
  return { type, obj: 'task', conv_id, ref, obj_id, data, is_sync, node_id }
}

/** Undefined for a text that counts as absent. */
function given(text: string): string | undefined {
  return text === '' ? undefined : text
}

/** Bytes of data in all of them. */
export function dataBytesOf(messages: readonly OpMessage[]): number {
  let bytes = 0
  for (const { kind } of messages) {
    if (kind !== undefined && kind.type !== 'show') bytes += kind.data_json.length
  }
  return bytes
}

/** The results of what was read, with what is wrong with a data_json said in its own. */
export function explained({ broken }: RawOps, results: readonly OpResult[]): readonly OpResult[] {
  if (broken === undefined) return results
  return results.map((result, at) => {
    const description = result.key === 'data' ? broken.get(at) : undefined
    return description === undefined ? result : { ...result, description }
  })
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
