/**
 * Turns messages into typed ops: parses `data_json`, and leaves the checks of an op to codec/op,
 * with the same refusals at every server.
 *
 * proto3 does not distinguish an empty text from an absent one, so an empty conv_id or node_id
 * counts as absent. A ref and a target have presence.
 */
import { docOfBytes, empty_doc, isObject, objectOf } from '../../codec/json.ts'
import { checkOpCount, isOp, type MalformedMember, opWithData, parseOp } from '../../codec/op.ts'
import { fault, isFault } from '../../core/faults.ts'
import type { Caller, Doc, JsonValue, Op, OpResult } from '../../core/model.ts'
import type { ServerContext } from './call.ts'
import type { Batch, JsonMessage, KindMessage, OpMessage } from './request-messages.ts'

/** Throws `too_many_ops`, and `format_error` for no op or for an op with a request key. */
export function readBatch({ ops, op_count }: Batch, context: ServerContext): (Op | OpResult)[] {
  for (const { kind } of ops) {
    // Only the key of the batch has the effect that its sender expects.
    if (keyOf(kind) !== undefined) throw fault('format_error', 'an op of a batch has a request_key')
  }
  checkOpCount(op_count, context.limits.ops_max)
  return readOps(ops, context)
}

/** One op for each message, or the result that refuses a malformed one. */
export function readOps(
  messages: readonly OpMessage[],
  { limits, engine }: ServerContext,
): (Op | OpResult)[] {
  const { nesting_max, body_values_max } = limits
  // A value takes at least a byte, so values of few bytes need not be counted.
  const counts_values = dataBytesOf(messages) > body_values_max
  let values_left = body_values_max
  const readData = (bytes: Buffer): Doc | MalformedMember => {
    if (bytes.length === 0) return empty_doc
    try {
      const doc = docOfBytes(bytes, { nesting_max, values_max: values_left })
      if (counts_values) values_left -= valuesIn(objectOf(doc), values_left)
      return doc
    } catch (error) {
      if (!isFault(error)) throw error
      return { key: 'data', description: `Value is not valid. data: ${error.message}` }
    }
  }
  return messages.map(({ kind }) => {
    if (kind === undefined) return parseOp(undefined, engine.limits)
    const data = kind.type === 'show' ? empty_doc : readData(kind.data_json)
    return opWithData(kind.type, membersOf(kind), data, engine.limits)
  })
}

/** The caller with the request key of its message, if any. */
export function keyedCaller(caller: Caller, message: KindMessage | Batch | JsonMessage): Caller {
  const request_key = keyOf(message)
  return request_key === undefined ? caller : { ...caller, request_key }
}

function keyOf(message: KindMessage | Batch | JsonMessage | undefined): string | undefined {
  if (message === undefined || !('request_key' in message)) return undefined
  return textOrAbsent(message.request_key)
}

/** The op of a call with a single op. Throws `error` where it is malformed. */
export function readOp(kind: KindMessage, context: ServerContext): Op {
  const op = readOps([{ id: '', kind }], context)[0] as Op | OpResult
  if (isOp(op)) return op
  throw fault('error', op.description)
}

function membersOf(kind: KindMessage): Parameters<typeof opWithData>[1] {
  const conv_id = textOrAbsent(kind.conv_id)
  const { ref } = kind
  if (kind.type === 'create') return { conv_id, ref }
  const { obj_id } = kind
  if (kind.type === 'show') return { conv_id, ref, obj_id }
  return { conv_id, ref, obj_id, is_sync: kind.is_sync, node_id: textOrAbsent(kind.node_id) }
}

function textOrAbsent(text: string): string | undefined {
  return text === '' ? undefined : text
}

function dataBytesOf(messages: readonly OpMessage[]): number {
  let bytes = 0
  for (const { kind } of messages) {
    if (kind !== undefined && kind.type !== 'show') bytes += kind.data_json.length
  }
  return bytes
}

/** The count of values in a value, itself included, at most `max`. */
function valuesIn(value: JsonValue, max: number): number {
  let values = 1
  const members = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []
  for (const member of members) {
    if (values >= max) return max
    values += valuesIn(member, max - values)
  }
  return values
}
