/**
 * Checks the shape of one op and makes it a typed `Op`; no later code checks a shape. A malformed
 * op becomes a result: `proc` is `error`, and `key` names the first malformed member in the order
 * type, obj, conv_id, ref, obj_id, data, node_id, is_sync. Well-formed members are echoed.
 */
import { aliasIdOf } from '../core/alias.ts'
import { fault } from '../core/faults.ts'
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
import { empty_doc, isDoc, isNumberToken, levels_around_data, numberText } from './json.ts'
import { docOfPlain, plainBounds } from './plain-value.ts'

/** A member that is malformed, and the description of the result. */
export interface MalformedMember {
  readonly key: string
  readonly description: string
}

/** Members of an op that have not been checked. */
export type OpMembers = Readonly<
  Partial<
    Record<'id' | 'conv_id' | AliasMember | 'ref' | 'obj_id' | 'node_id' | 'is_sync', unknown>
  >
>

/** What names a process by an alias: counted where an op has no `conv_id`. */
type AliasMember = 'obj_alias' | `${'stage' | 'project'}_${'id' | 'short_name'}`

type RawOp = OpMembers & Readonly<Partial<Record<'type' | 'obj' | 'data', unknown>>>

const types: readonly unknown[] = ['create', 'modify', 'show'] satisfies OpType[]

/** `get` is another word for show. */
function typeOf(given: unknown): OpType | undefined {
  if (types.includes(given)) return given as OpType
  return given === 'get' ? 'show' : undefined
}

/** Whether an op is one of those that are not applied to tasks alone (src/management). */
export function isOtherOp(raw: unknown): boolean {
  const { obj, type } = (raw ?? {}) as RawOp
  return obj === 'task' ? type === 'delete' : typeof obj === 'string'
}

/**
 * Checks that a request has 1 to `ops_max` ops. Throws `format_error` where it has none, and
 * `too_many_ops`.
 */
export function checkOpCount(op_count: number, ops_max: number): void {
  if (op_count === 0) throw fault('format_error', 'ops is empty')
  if (op_count > ops_max) {
    throw fault('too_many_ops', `${op_count} ops, at most ${ops_max} in one request`)
  }
}

/** `raw` is a parsed JSON object or an embedder's; its `data` is a Doc, `[]` or a plain object. */
export function parseOp(raw: unknown, limits: Limits): Op | OpResult {
  if (typeof raw !== 'object' || raw === null) {
    return { ref: null, obj: 'task', proc: 'error', description: 'bad type', key: 'type' }
  }
  const op = raw as RawOp
  const type = typeOf(op.type)
  return checkedOp(type, op.obj, op, dataOf(type, op, limits), limits)
}

/** Like `parseOp`, for an op that comes without `type` and `obj`. */
export function parseTaskOp(type: OpType, raw: object, limits: Limits): Op | OpResult {
  return checkedOp(type, 'task', raw as RawOp, dataOf(type, raw as RawOp, limits), limits)
}

/** Like `parseTaskOp`, for an op whose `data` has been read already. A show has no data. */
export function opWithData(
  type: OpType,
  members: OpMembers,
  data: Doc | MalformedMember,
  limits: Limits,
): Op | OpResult {
  return checkedOp(type, 'task', members, data, limits)
}

function checkedOp(
  type: OpType | undefined,
  obj: unknown,
  members: OpMembers,
  data: Doc | MalformedMember,
  limits: Limits,
): Op | OpResult {
  const id_text = idText(members.id)
  const conv_id = readConvId(members, limits)
  const ref = readRef(members.ref, limits)
  const obj_id = readObjId(members.obj_id)
  const node_id = readNodeId(members.node_id, limits)
  const wrong = firstMalformed(type, obj, members.is_sync, conv_id, ref, obj_id, data, node_id)
  if (wrong !== undefined) {
    return {
      ...(type === undefined ? {} : { type }),
      ...(id_text === undefined ? {} : { id_text }),
      ...refOf(ref),
      obj: 'task',
      proc: 'error',
      description: wrong.description,
      key: wrong.key,
    }
  }
  if (type === 'create') return { type, id_text, conv_id, ref, data } as CreateOp
  if (type === 'show') return { type, id_text, conv_id, ref, obj_id } as ShowOp
  const is_sync = members.is_sync === true
  return { type, id_text, conv_id, ref, obj_id, data, is_sync, node_id } as ModifyOp
}

export function isOp(parsed: Op | OpResult): parsed is Op {
  return !('proc' in parsed)
}

/** The members of a result that echo a ref. */
export function refOf(ref: Ref | MalformedMember | undefined): {
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
  conv_id: string | MalformedMember,
  ref: Ref | MalformedMember | undefined,
  obj_id: string | MalformedMember | undefined,
  data: Doc | MalformedMember,
  node_id: string | MalformedMember | undefined,
): MalformedMember | undefined {
  if (type === undefined) return { key: 'type', description: 'bad type' }
  if (obj !== 'task') return { key: 'obj', description: 'bad object' }
  if (isMalformed(conv_id)) return conv_id
  if (isMalformed(ref)) return ref
  if (type !== 'create') {
    if (isMalformed(obj_id)) return obj_id
    if (ref === undefined && obj_id === undefined) return required('ref')
  }
  if (isMalformed(data)) return data
  if (type !== 'modify') return undefined
  if (isMalformed(node_id)) return node_id
  // Reading it as false would resume a wait that the caller did not ask to resume.
  if (is_sync !== undefined && is_sync !== null && typeof is_sync !== 'boolean') {
    return invalid('is_sync', is_sync)
  }
  return undefined
}

function readConvId(members: OpMembers, limits: Limits): string | MalformedMember {
  const { conv_id: value, obj_alias } = members
  if (value === undefined || value === null) {
    if (obj_alias === undefined || obj_alias === null) return required('conv_id')
    return readAlias(members, limits)
  }
  const text = textOf(value)
  const is_whole = typeof value === 'string' || /^-?[0-9]+$/.test(text ?? '')
  if (text !== undefined && is_whole && isName(text, limits.conv_id_chars_max)) return text
  return invalid('conv_id', value)
}

/** `@name`, with the stage that the op names: by ids, else by short names; 0 is no stage. */
function readAlias(members: OpMembers, limits: Limits): string | MalformedMember {
  const { obj_alias } = members
  if (typeof obj_alias !== 'string' || !isName(obj_alias, limits.ref_chars_max)) {
    return invalid('obj_alias', obj_alias)
  }
  const stage: string[] = []
  for (const key of ['stage_id', 'project_short_name', 'stage_short_name'] as const) {
    const value = members[key]
    if (value === undefined || value === null || value === 0 || value === '') continue
    const text = textOf(value)
    if (text === undefined || !isName(text, limits.ref_chars_max)) return invalid(key, value)
    if (key === 'stage_id') return aliasIdOf(obj_alias, text)
    stage.push(text)
  }
  return aliasIdOf(obj_alias, stage.length === 0 ? undefined : stage.join('/'))
}

function readRef(value: unknown, limits: Limits): Ref | MalformedMember | undefined {
  if (value === undefined || value === null) return undefined
  const text = shortText(value, limits.ref_chars_max)
  return text === undefined ? invalid('ref', value) : { text, is_number: isNumber(value) }
}

function readObjId(value: unknown): string | MalformedMember | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || !/^[0-9a-fA-F]{24}$/.test(value)) return invalid('obj_id', value)
  return value.toLowerCase()
}

function dataOf(type: OpType | undefined, { data }: RawOp, limits: Limits): Doc | MalformedMember {
  return type === 'show' ? empty_doc : readData(data, limits)
}

function readData(value: unknown, limits: Limits): Doc | MalformedMember {
  if (value === undefined || value === null) return required('data')
  if (isDoc(value)) return value
  if (Array.isArray(value) && value.length === 0) return empty_doc
  if (typeof value !== 'object' || Array.isArray(value) || isNumberToken(value)) {
    return invalid('data', value)
  }
  const doc = docOfPlain(value, plainBounds(limits, levels_around_data))
  return typeof doc === 'string' ? { key: 'data', description: `Value is not valid. ${doc}` } : doc
}

function readNodeId(value: unknown, limits: Limits): string | MalformedMember | undefined {
  if (value === undefined || value === null) return undefined
  return shortText(value, limits.node_id_chars_max) ?? invalid('node_id', value)
}

/** The text itself, or the exact text of a number; undefined for anything else. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return isNumber(value) ? numberText(value) : undefined
}

/** The id to echo, as JSON text; undefined for anything but a string or a number. */
function idText(value: unknown): string | undefined {
  return typeof value === 'string' ? JSON.stringify(value) : textOf(value)
}

function isNumber(value: unknown): value is number | NumberToken {
  return (typeof value === 'number' && Number.isFinite(value)) || isNumberToken(value)
}

/** Whether the text has 1 to `chars_max` code points and no control character. */
export function isName(text: string, chars_max: number): boolean {
  return shortText(text, chars_max) !== undefined && !/\p{Cc}/u.test(text)
}

/** The text of a text or number of 1 to `chars_max` code points; undefined for anything else. */
function shortText(value: unknown, chars_max: number): string | undefined {
  const text = textOf(value)
  if (text === undefined || !text.isWellFormed()) return undefined
  const chars = charsOf(text, chars_max)
  return chars > 0 && chars <= chars_max ? text : undefined
}

/** The number of code points, counted no further than one over `max`. */
function charsOf(text: string, max: number): number {
  if (text.length <= max) return text.length
  let chars = 0
  for (const _char of text) if (++chars > max) break
  return chars
}

function isMalformed(value: unknown): value is MalformedMember {
  return typeof value === 'object' && value !== null && 'description' in value
}

function required(key: string): MalformedMember {
  return { key, description: `Key '${key}' is required` }
}

const quoted_chars_max = 128

function invalid(key: string, value: unknown): MalformedMember {
  return { key, description: `Value is not valid. ${key}: ${quoted(value)}` }
}

/** A scalar as JSON text cut at 128 characters; anything else by its type. */
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
