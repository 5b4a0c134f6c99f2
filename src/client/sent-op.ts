/**
 * Ops in the form that both transports send. Data becomes JSON text here, so that numbers keep
 * their exact text. Values that no message can carry are refused with a TypeError; the server
 * checks the rest.
 */
import { isDoc } from '../codec/json.ts'
import { docOfPlain } from '../codec/plain-value.ts'
import { limitTable } from '../core/limits.ts'
import type { ClientOp } from './api.ts'

export interface SentOp {
  readonly type: ClientOp['type']
  readonly id: string | undefined
  readonly conv_id: string
  readonly ref: string | undefined
  readonly obj_id: string | undefined
  /** `{}` for a show. */
  readonly data_text: string
  readonly is_sync: boolean
  readonly node_id: string | undefined
}

/** Throws a TypeError that names the member. */
export function sentOpOf(op: ClientOp): SentOp {
  const { type } = op
  return {
    type,
    id: givenText('id', op.id),
    conv_id: textOf('conv_id', op.conv_id),
    ref: givenText('ref', op.ref ?? undefined),
    obj_id: type === 'create' ? undefined : givenText('obj_id', op.obj_id),
    data_text: type === 'show' ? '{}' : dataTextOf(op.data),
    is_sync: type === 'modify' && op.is_sync === true,
    node_id: type === 'modify' ? givenText('node_id', op.node_id) : undefined,
  }
}

export function dataTextOf(data: unknown): string {
  if (isDoc(data)) return data.text
  if (Array.isArray(data) && data.length === 0) return '{}'
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new TypeError('data is no object')
  }
  const doc = docOfPlain(data, bounds)
  if (typeof doc === 'string') throw new TypeError(doc)
  return doc.text
}

/** Far above any server's limits; also stops at circular values. */
const bounds = {
  nesting_max: limitTable.nesting_max.max,
  values_max: 5 * limitTable.body_values_max.value,
  chars_max: 4 * limitTable.body_bytes_max.value,
}

function givenText(key: string, value: unknown): string | undefined {
  return value === undefined ? undefined : textOf(key, value)
}

function textOf(key: string, value: unknown): string {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  if (typeof value === 'string' && value.isWellFormed()) return value
  throw new TypeError(`${key} is no text`)
}
