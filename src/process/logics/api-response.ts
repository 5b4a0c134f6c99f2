/**
 * What the response to an `api` call does to the data. 200, 201 and 202 succeed, any other status
 * is a failure. An object, XML or a form is merged; an array becomes `__conveyor_api_array__`, an
 * image `__conveyor_api_image__` in base64. `customize_response` sets the keys of `response` only,
 * from templates over the data, `header` and `body`. `corezoid` merges the `res_data` of the op.
 *
 * 200 and 201 need a body, unless `response` maps it without `rfc_format`.
 */
import { docOfForm } from '../../codec/form-body.ts'
import { docOfValue, isObject, objectOf, setMember, stringifyJson } from '../../codec/json.ts'
import type { Doc, JsonObject, JsonValue } from '../../core/model.ts'
import { value_bounds } from '../definition-limits.ts'
import type { EvaluationContext, JobOutcome } from '../logic.ts'
import { expected, quoted, type Report, truncated } from '../report.ts'
import { type Expansion, expansionOf } from '../templates/parser.ts'
import { member } from '../templates/path.ts'
import { compileTemplate, type Template } from '../templates/template.ts'
import { convert, parsedValue, type ValueType } from '../values.ts'
import { type DataKey, type MadeHere, readDataKey, setAtPath } from './data-key.ts'
import { conversionText, type LogicFailure, oversize } from './failures.ts'
import { isOn, readFlag, readObject, readType } from './members.ts'

type Done = Extract<JobOutcome, { outcome: 'done' }>

/** The data with the response in it, or why there is none. */
export type ApiResponse = (context: EvaluationContext, outcome: Done) => Doc | LogicFailure

/** Sets what the body gives in the data, or says why it cannot. */
type AddBody = (
  data: JsonObject,
  context: EvaluationContext,
  outcome: Done,
) => LogicFailure | undefined

export function readResponse(raw: JsonObject, report: Report): ApiResponse {
  const mapping = readFlag(raw, 'customize_response', report) ? readMapping(raw, report) : undefined
  const is_head = typeof raw.method === 'string' && raw.method.toUpperCase() === 'HEAD'
  const needs_body = !is_head && (mapping === undefined || isOn(raw.rfc_format))
  const addBody: AddBody = (data, context, outcome) => {
    const is_corezoid = raw.format === 'corezoid'
    if (mapping !== undefined && !is_corezoid) return mapBody(data, mapping, context, outcome)
    if (outcome.text === '') return undefined
    return is_corezoid ? mergeCorezoid(data, outcome.text) : mergeBody(data, outcome)
  }
  return (context, outcome) => {
    const { status = 0, text } = outcome
    if (!successes.includes(status)) return failure('api_bad_answer', String(status))
    if (text === '' && needs_body && status !== 202) return noJson(text)
    const data: JsonObject = { ...objectOf(context.doc) }
    const failed = addBody(data, context, outcome)
    if (failed !== undefined) return failed
    const doc = docOfValue(data)
    const description = oversize(doc, context.task_bytes_max)
    return description === undefined ? doc : failure(overflow_tag, description)
  }
}

const successes = [200, 201, 202]
const overflow_tag = 'api_task_size_overflow_limit'

/** Inherits: the members of the engine's contexts are on their prototype. */
export function contextWith(context: EvaluationContext, doc: Doc): EvaluationContext {
  return Object.create(context, { doc: { value: doc } })
}

const image = /^\s*image\//i
const form = /^\s*application\/x-www-form-urlencoded\b/i

function isOfType({ headers = [] }: Done, type: RegExp): boolean {
  return headers.some(([name, value]) => name === 'content-type' && type.test(value))
}

/** The base64 of an image, else what JSON or a form holds; undefined for any other text. */
function bodyValue(outcome: Done): JsonValue | undefined {
  const { text } = outcome
  if (isOfType(outcome, image)) return text
  const json = parsedValue(text)
  if (json !== undefined || !isOfType(outcome, form)) return json
  try {
    return objectOf(docOfForm(Buffer.from(text), value_bounds.values_max))
  } catch {
    return undefined
  }
}

function mergeBody(data: JsonObject, outcome: Done): LogicFailure | undefined {
  const body = bodyValue(outcome)
  if (isObject(body)) merge(data, body)
  else if (Array.isArray(body)) setMember(data, '__conveyor_api_array__', body)
  else if (isOfType(outcome, image)) setMember(data, '__conveyor_api_image__', outcome.text)
  else return noJson(outcome.text)
  return undefined
}

interface MappedKey {
  readonly key: DataKey
  readonly template: Template
  readonly type: ValueType | undefined
}

function readMapping(raw: JsonObject, report: Report): readonly MappedKey[] {
  const response = readObject(raw, 'response', report)
  const types = readObject(raw, 'response_type', report)
  return Object.keys(response).map((key) => {
    const place = `response[${quoted(key)}]`
    const value = response[key] ?? ''
    if (typeof value !== 'string') expected(report, place, value, 'a text')
    const text = typeof value === 'string' ? lowerHeaders(value) : ''
    return {
      key: readDataKey(key, report),
      template: compileTemplate(text, report, place),
      type: readType(member(types, key), report, `response_type[${quoted(key)}]`),
    }
  })
}

/** Names of headers are lower case in what a response gives. */
function lowerHeaders(text: string): string {
  return text.replace(/\{\{\s*header\s*(?:\.[^.{}[\]]*|\[[^{}[\]]*\])/g, (path) =>
    path.toLowerCase(),
  )
}

/** A body that is no JSON can only be mapped as text. */
function mapBody(
  data: JsonObject,
  mapping: readonly MappedKey[],
  context: EvaluationContext,
  outcome: Done,
): LogicFailure | undefined {
  const { text, headers = [] } = outcome
  const json = bodyValue(outcome)
  const header: JsonObject = {}
  for (const [name, value] of headers) setMember(header, name, value)
  const seen: JsonObject = { ...data, header, body: json ?? text }
  if (text === '') delete seen.body
  const made: MadeHere = new Set()
  const expansion = expansionOf(contextWith(context, docOfValue(seen)))
  for (const { key, template, type } of mapping) {
    const name = key.key(expansion)
    const value = template.value(expansion)
    if (name === undefined || expansion.failure !== undefined) return failureOf(expansion)
    if (value === undefined && json === undefined && text !== '') return noJson(text)
    const converted = value === undefined ? '' : type === undefined ? value : asType(value, type)
    if (converted !== undefined) setAtPath(data, name, key.steps, converted, expansion, made)
    else if (json === undefined && text !== '') return noJson(text)
    else return failure('api_wrong_convert_param', conversionText(name, value ?? '', type))
  }
  return expansion.failure === undefined ? undefined : failureOf(expansion)
}

function failureOf({ failure: failed }: Expansion): LogicFailure {
  const { why, description } = failed ?? { why: 'convert', description: '' }
  return failure(why === 'overflow' ? overflow_tag : 'api_wrong_convert_param', description)
}

/**
 * The editor writes `object` for any body, so an array is accepted for an object. An object for
 * an array becomes its only member.
 */
function asType(value: JsonValue, type: ValueType): JsonValue | undefined {
  if (type === 'object' && Array.isArray(value)) return value
  if (type === 'array' && isObject(value)) return [value]
  return convert(value, type)
}

/** The words are those of the process format. */
const descriptions = {
  request_proc:
    'Bad request_proc tag. Please fill request_proc=ok for your answer. ' +
    'If you want to put error use proc!=ok',
  ops: 'No ops. Please check documentation',
}

function mergeCorezoid(data: JsonObject, text: string): LogicFailure | undefined {
  const answer = parsedValue(text)
  if (answer === undefined) return noJson(text)
  if (!isObject(answer) || answer.request_proc !== 'ok') {
    return failure('api_no_request_proc', descriptions.request_proc)
  }
  const op = Array.isArray(answer.ops) ? answer.ops[0] : undefined
  if (!isObject(op)) return failure('api_no_ops', descriptions.ops)
  if (op.proc !== 'ok') {
    const res_data = truncated(stringifyJson(op.res_data ?? null))
    return failure('api_bad_answer', `proc ${quoted(op.proc)}: ${res_data}`)
  }
  const { res_data } = op
  const is_empty = Array.isArray(res_data) && res_data.length === 0
  if (isObject(res_data)) merge(data, res_data)
  else if (!is_empty) {
    const what = `Bad res_data: ${quoted(res_data)}. Please check documentation`
    return failure('api_bad_res_data', what)
  }
  return undefined
}

function merge(data: JsonObject, added: JsonObject): void {
  for (const key of Object.keys(added)) setMember(data, key, added[key] as JsonValue)
}

function noJson(text: string): LogicFailure {
  const body = text.trim()
  const shown = body === '' ? 'the answer is empty' : truncated(body)
  return failure('api_no_valid_json', `Please check: ${shown}`)
}

function failure(tag: string, description: string): LogicFailure {
  return { tag, description }
}
