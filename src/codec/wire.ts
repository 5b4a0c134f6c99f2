/**
 * The bytes of the JSON endpoint (wire 1.1, 1.3 to 1.5): a body to raw ops, results to a body.
 *
 * The envelope is checked here and nothing of an op: a raw op stays an unknown, and codec/op knows
 * which of them are malformed. Only `data` is touched: where it is an object it becomes a Doc, so
 * that its numbers keep their tokens on the way through the engine.
 *
 * Answers are built by concatenation, because the order of their keys is part of the contract. What
 * a caller may choose (ref, id, texts, data) arrives as JSON text or is quoted here, never pasted.
 */
import { isUtf8 } from 'node:buffer'
import { fault, type WholeFaultCode } from '../core/faults.ts'
import type { OpResult, Task } from '../core/model.ts'
import { type RequestLimits, readEnvelope } from './envelope.ts'
import { docOfValue, isObject, parseJson } from './json.ts'
import { checkOpCount } from './op.ts'

export type { RequestLimits } from './envelope.ts'

/**
 * A body to its raw ops, at least one. Throws `format_error`, which says what is wrong and where,
 * or `too_many_ops`. Unknown members are ignored; a single op object counts as an array of one.
 */
export function parseRequest(body: Buffer, limits: RequestLimits): unknown[] {
  checkUtf8(body)
  return readEnvelope(body, limits) ?? parsePlainly(body, limits)
}

/** The plain path: reads every request there may be, and says what is wrong with the others. */
export function parsePlainly(body: Buffer, limits: RequestLimits): unknown[] {
  const request = parseJson(body.toString('utf8'), {
    nesting_max: limits.nesting_max,
    values_max: limits.body_values_max,
  })
  if (!isObject(request)) throw fault('format_error', 'the body is not a JSON object')
  const ops = opsOf(request.ops)
  checkOpCount(ops.length, limits.ops_max)
  for (const op of ops) if (isObject(op) && isObject(op.data)) asDoc(op, op.data)
  return ops
}

/** A whole answer: `request_proc` ok and one entry for each result, in order. */
export function renderResults(version: 1 | 2, results: readonly OpResult[]): string {
  let text = '{"request_proc":"ok","ops":['
  for (let at = 0; at < results.length; at++) {
    const result = results[at] as OpResult
    text += at === 0 ? '{' : ',{'
    if (result.proc !== 'ok') text += failed(version, result)
    else if (version === 2) text += `${addressed(result)}${result.task ? found(result.task) : ''}}`
    else text += done(result)
  }
  return `${text}]}`
}

/** The answer to a request that was refused as a whole. */
export function renderFault(code: WholeFaultCode, description: string): string {
  return `{"request_proc":"${code}","ops":[],"description":${JSON.stringify(description)}}`
}

function checkUtf8(body: Buffer): void {
  if (!isUtf8(body)) {
    throw fault('format_error', `the body is not UTF-8, byte ${badByteOf(body) + 1}`)
  }
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) {
    throw fault('format_error', 'the body opens with a byte order mark, byte 1')
  }
}

/** Where a decoder first had to put U+FFFD for bytes that are not one. */
function badByteOf(body: Buffer): number {
  const text = body.toString('utf8')
  let byte = 0
  let from = 0
  for (;;) {
    const at = text.indexOf('\ufffd', from)
    byte += Buffer.byteLength(text.slice(from, at))
    if (body[byte] !== 0xef || body[byte + 1] !== 0xbf || body[byte + 2] !== 0xbd) return byte
    byte += 3
    from = at + 1
  }
}

function opsOf(ops: unknown): unknown[] {
  if (ops === undefined) throw fault('format_error', "Key 'ops' is required")
  if (isObject(ops)) return [ops]
  if (!Array.isArray(ops)) throw fault('format_error', "'ops' is not an array")
  if (ops.length === 0) throw fault('format_error', "'ops' is empty")
  return ops
}

function asDoc(op: { data?: unknown }, data: Parameters<typeof docOfValue>[0]): void {
  op.data = docOfValue(data)
}

/** Version 1: `id` only where one was sent; a modify tells no obj_id. */
function done(result: OpResult): string {
  const id = result.id_text === undefined ? '' : `"id":${result.id_text},`
  if (result.type === 'modify') return `${id}"ref":${refText(result)},"proc":"ok"}`
  const head = `${id}"ref":${refText(result)},"obj":"task","obj_id":"${result.obj_id}","proc":"ok"`
  return result.task === undefined ? `${head}}` : `${head}${found(result.task)}}`
}

/** Version 2, without the closing brace. */
function addressed(result: OpResult): string {
  const id = result.id_text ?? '""'
  return `"id":${id},"proc":"ok","obj":"task","ref":${refText(result)},"obj_id":"${result.obj_id}"`
}

function failed(version: 1 | 2, result: OpResult): string {
  const id_text = result.id_text ?? (version === 2 ? '""' : undefined)
  let text = id_text === undefined ? '' : `"id":${id_text},`
  text += `"ref":${refText(result)},"obj":"task"`
  if (result.obj_id !== undefined) text += `,"obj_id":"${result.obj_id}"`
  text += `,"proc":"${result.proc}","description":${JSON.stringify(result.description ?? '')}`
  if (result.key !== undefined) text += `,"key":${JSON.stringify(result.key)}`
  return `${text}}`
}

/** What a show adds behind the result of a create. */
function found(task: Task): string {
  const details = task.status_details
  let text = `,"status":"${task.status}"`
  if (task.status === 'failed' && details !== undefined) {
    const tag = JSON.stringify(details.tag)
    text += `,"status_details":{"tag":${tag},"description":${JSON.stringify(details.description)}}`
  }
  text += `,"user_id":${numberOrNull(task.user_id)}`
  text += `,"create_time":${seconds(task.create_time_ms)}`
  text += `,"change_time":${seconds(task.change_time_ms)}`
  text += `,"node_id":${JSON.stringify(task.node_id)}`
  text += `,"node_prev_id":${JSON.stringify(task.node_prev_id)}`
  return `${text},"data":${task.dataText}`
}

function refText(result: OpResult): string {
  if (result.ref === null) return 'null'
  return result.ref_is_number ? result.ref : JSON.stringify(result.ref)
}

function numberOrNull(user_id: string | null): string {
  return user_id !== null && /^(?:0|[1-9][0-9]*)$/.test(user_id) ? user_id : 'null'
}

function seconds(time_ms: number): number {
  return Math.floor(time_ms / 1000)
}
