/**
 * One op, from the object a caller sent to a typed Op (wire 1.1). The only place where the shape of
 * an op is checked: behind it everything is typed, and no later floor tests a shape.
 *
 * A malformed op is a result, never a throw; the first member at fault in the order type, obj,
 * conv_id, ref, obj_id, data is named. What is well formed is echoed even then.
 */
import type { Limits } from '../core/limits.ts'
import type {
  CreateOp,
  Doc,
  ModifyOp,
  NumberToken,
  Op,
  OpResult,
  OpType,
  Ref,
  ShowOp,
} from '../core/model.ts'
import { empty_doc, isDoc, isNumberToken, numberText } from './json.ts'
import { docOfPlain } from './plain-value.ts'

/** A member that is not as it should be: which one, and the sentence for its description. */
interface Malformed {
  readonly key: string
  readonly says: string
}

const types: readonly OpType[] = ['create', 'modify', 'show']

/** `raw` is a parsed JSON object or an embedder's; its `data` a Doc, `[]` or a plain object. */
export function parseOp(raw: unknown, limits: Limits): Op | OpResult {
  if (typeof raw !== 'object' || raw === null) {
    return { ref: null, obj: 'task', proc: 'error', description: 'bad type', key: 'type' }
  }
  const op = raw as RawOp
  return parseMembers(
    types.includes(op.type as OpType) ? (op.type as OpType) : undefined,
    op.obj,
    op,
    limits,
  )
}

/** As `parseOp`, for an op that comes without `type` and `obj`. */
export function parseTaskOp(type: OpType, raw: object, limits: Limits): Op | OpResult {
  return parseMembers(type, 'task', raw as RawOp, limits)
}

/** What an op may have, of any kind. */
type RawOp = Readonly<
  Partial<
    Record<
      'type' | 'obj' | 'id' | 'conv_id' | 'ref' | 'obj_id' | 'data' | 'node_id' | 'is_sync',
      unknown
    >
  >
>

function parseMembers(
  type: OpType | undefined,
  obj: unknown,
  op: RawOp,
  limits: Limits,
): Op | OpResult {
  const id_text = idText(op.id)
  const conv_id = readConvId(op.conv_id, limits)
  const ref = readRef(op.ref, limits)
  const obj_id = readObjId(op.obj_id)
  const data = type === 'show' ? empty_doc : readData(op.data, limits)
  const node_id = readNodeId(op.node_id, limits)
  const wrong = firstMalformed(type, obj, op.is_sync, conv_id, ref, obj_id, data, node_id)
  if (wrong !== undefined) {
    return {
      ...(type === undefined ? {} : { type }),
      ...(id_text === undefined ? {} : { id_text }),
      ...refOf(ref),
      obj: 'task',
      proc: 'error',
      description: wrong.says,
      key: wrong.key,
    }
  }
  if (type === 'create') return { type, id_text, conv_id, ref, data } as CreateOp
  if (type === 'show') return { type, id_text, conv_id, ref, obj_id } as ShowOp
  const is_sync = op.is_sync === true
  return { type, id_text, conv_id, ref, obj_id, data, is_sync, node_id } as ModifyOp
}

export function isOp(parsed: Op | OpResult): parsed is Op {
  return !('proc' in parsed)
}

/** The members of a result that echo a ref. */
export function refOf(ref: Ref | Malformed | undefined): {
  ref: string | null
  ref_is_number?: true
} {
  if (ref === undefined || isMalformed(ref)) return { ref: null }
  return ref.is_number ? { ref: ref.text, ref_is_number: true } : { ref: ref.text }
}

function firstMalformed(
  type: OpType | undefined,
  obj: unknown,
  is_sync: unknown,
  conv_id: string | Malformed,
  ref: Ref | Malformed | undefined,
  obj_id: string | Malformed | undefined,
  data: Doc | Malformed,
  node_id: string | Malformed | undefined,
): Malformed | undefined {
  if (type === undefined) return { key: 'type', says: 'bad type' }
  if (obj !== 'task') return { key: 'obj', says: 'bad object' }
  if (isMalformed(conv_id)) return conv_id
  if (isMalformed(ref)) return ref
  if (type !== 'create') {
    if (isMalformed(obj_id)) return obj_id
    if (ref === undefined && obj_id === undefined) return required('ref')
  }
  if (isMalformed(data)) return data
  if (type !== 'modify') return undefined
  if (isMalformed(node_id)) return node_id
  // Taken for false, it would release a wait that the caller meant to name.
  if (is_sync !== undefined && is_sync !== null && typeof is_sync !== 'boolean') {
    return invalid('is_sync', is_sync)
  }
  return undefined
}

function readConvId(value: unknown, limits: Limits): string | Malformed {
  if (value === undefined || value === null) return required('conv_id')
  const text = isNumber(value) ? numberText(value) : value
  if (typeof text !== 'string' || (isNumber(value) && !/^-?[0-9]+$/.test(text))) {
    return invalid('conv_id', value)
  }
  return isName(text, limits.conv_id_chars_max) ? text : invalid('conv_id', value)
}

function readRef(value: unknown, limits: Limits): Ref | Malformed | undefined {
  if (value === undefined || value === null) return undefined
  const is_number = isNumber(value)
  const text = is_number ? numberText(value) : value
  if (typeof text !== 'string' || !text.isWellFormed()) return invalid('ref', value)
  const chars = charsOf(text, limits.ref_chars_max)
  if (chars === 0 || chars > limits.ref_chars_max) return invalid('ref', value)
  return { text, is_number }
}

function readObjId(value: unknown): string | Malformed | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || !/^[0-9a-fA-F]{24}$/.test(value)) return invalid('obj_id', value)
  return value.toLowerCase()
}

function readData(value: unknown, limits: Limits): Doc | Malformed {
  if (value === undefined || value === null) return required('data')
  if (isDoc(value)) return value
  if (Array.isArray(value) && value.length === 0) return empty_doc
  if (typeof value !== 'object' || Array.isArray(value) || isNumberToken(value)) {
    return invalid('data', value)
  }
  const doc = docOfPlain(value, limits.nesting_max - 3)
  return typeof doc === 'string' ? { key: 'data', says: `Value is not valid. ${doc}` } : doc
}

function readNodeId(value: unknown, limits: Limits): string | Malformed | undefined {
  if (value === undefined || value === null) return undefined
  const text = isNumber(value) ? numberText(value) : value
  if (typeof text !== 'string' || !text.isWellFormed()) return invalid('node_id', value)
  const chars = charsOf(text, limits.node_id_chars_max)
  return chars === 0 || chars > limits.node_id_chars_max ? invalid('node_id', value) : text
}

/** JSON text of an id to echo; anything but a string or a number is no id. */
function idText(value: unknown): string | undefined {
  if (typeof value === 'string') return JSON.stringify(value)
  return isNumber(value) ? numberText(value) : undefined
}

function isNumber(value: unknown): value is number | NumberToken {
  return (typeof value === 'number' && Number.isFinite(value)) || isNumberToken(value)
}

/** 1 to `chars_max` code points, none of them a control character. */
export function isName(text: string, chars_max: number): boolean {
  if (!text.isWellFormed() || /\p{Cc}/u.test(text)) return false
  const chars = charsOf(text, chars_max)
  return chars > 0 && chars <= chars_max
}

/** Code points; stops counting once over `max`. */
function charsOf(text: string, max: number): number {
  if (text.length <= max) return text.length
  let chars = 0
  for (const _char of text) if (++chars > max) break
  return chars
}

function isMalformed(value: unknown): value is Malformed {
  return typeof value === 'object' && value !== null && 'says' in value
}

function required(key: string): Malformed {
  return { key, says: `Key '${key}' is required` }
}

const quoted_chars_max = 128

function invalid(key: string, value: unknown): Malformed {
  return { key, says: `Value is not valid. ${key}: ${quoted(value)}` }
}

/** A value as JSON, cut at 128 characters; what has no JSON form is named by its type. */
function quoted(value: unknown): string {
  if (isNumberToken(value)) return cut(value.token)
  if (typeof value === 'string') return JSON.stringify(cut(value))
  if (isNumber(value) || typeof value === 'boolean' || value === null) return String(value)
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object'
  return `a ${typeof value}`
}

function cut(text: string): string {
  if (text.length <= quoted_chars_max) return text
  return [...text.slice(0, 2 * quoted_chars_max)].slice(0, quoted_chars_max).join('')
}
