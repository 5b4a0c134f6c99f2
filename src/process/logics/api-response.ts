/**
 * What the response to an `api` call does to the data. Statuses 200, 201 and 202 are a success, any
 * other status is a failure. After a success:
 *
 * - an object is merged into the data, an array is set as `__conveyor_api_array__`;
 * - with `customize_response` only the keys of `response` are set, from templates over `header` and
 *   `body`; a key whose template finds nothing is deleted, so no older value remains in its place;
 * - with format `corezoid` the `res_data` of the response's op is merged into the data.
 */
import { docOfValue, isObject, objectOf, setMember, stringifyJson } from '../../codec/json.ts'
import type { Doc, JsonObject, JsonValue } from '../../core/model.ts'
import type { EvaluationContext, JobOutcome } from '../logic.ts'
import { quoted, type Report, truncated } from '../report.ts'
import { expansionOf } from '../templates/parser.ts'
import { member } from '../templates/path.ts'
import { compileTemplate, type Template } from '../templates/template.ts'
import { convert, parsedValue, type ValueType } from '../values.ts'
import { conversionText, type LogicFailure, oversize } from './failures.ts'
import { readFlag, readObject, readType } from './members.ts'

type Done = Extract<JobOutcome, { outcome: 'done' }>

/** The data with the response in it, or why there is none. */
export type ApiResponse = (context: EvaluationContext, outcome: Done) => Doc | LogicFailure

export function readResponse(raw: JsonObject, report: Report): ApiResponse {
  const mapping = readFlag(raw, 'customize_response', report) ? readMapping(raw, report) : undefined
  const is_bare = typeof raw.method === 'string' && raw.method.toUpperCase() === 'HEAD'
  return (context, outcome) => {
    const { status = 0, text } = outcome
    if (!successes.includes(status)) {
      const body = text.trim()
      const description = body === '' ? `HTTP ${status}` : `HTTP ${status}: ${truncated(body)}`
      return failure('api_bad_answer', description)
    }
    const data: JsonObject = { ...objectOf(context.doc) }
    const failed =
      is_bare && text === '' && mapping === undefined
        ? undefined
        : raw.format === 'corezoid'
          ? mergeCorezoid(data, text)
          : mapping === undefined
            ? mergeBody(data, text)
            : mapBody(data, mapping, context, outcome)
    if (failed !== undefined) return failed
    const doc = docOfValue(data)
    const description = oversize(doc, context.task_bytes_max)
    return description === undefined ? doc : failure('api_task_size_overflow_limit', description)
  }
}

const successes = [200, 201, 202]

function mergeBody(data: JsonObject, text: string): LogicFailure | undefined {
  const body = parsedValue(text)
  if (body === undefined) return noJson(text)
  if (isObject(body)) merge(data, body)
  else if (Array.isArray(body)) setMember(data, '__conveyor_api_array__', body)
  else return failure('api_no_valid_json', `${quoted(body)} is neither an object nor an array`)
  return undefined
}

interface MappedKey {
  readonly key: string
  readonly template: Template
  readonly type: ValueType | undefined
}

function readMapping(raw: JsonObject, report: Report): readonly MappedKey[] {
  const response = readObject(raw, 'response', report)
  const types = readObject(raw, 'response_type', report)
  return Object.keys(response).map((key) => {
    const place = `response[${quoted(key)}]`
    const value = response[key] ?? ''
    if (typeof value !== 'string') {
      report.mistake(`${place} is ${quoted(value)}, a text was expected`)
    }
    return {
      key,
      template: compileTemplate(typeof value === 'string' ? value : '', report, place),
      type: readType(member(types, key), report, `response_type[${quoted(key)}]`),
    }
  })
}

/** A body that is no JSON can only be mapped as text. */
function mapBody(
  data: JsonObject,
  mapping: readonly MappedKey[],
  context: EvaluationContext,
  { text, headers = [] }: Done,
): LogicFailure | undefined {
  const json = parsedValue(text)
  const header: JsonObject = {}
  for (const [name, value] of headers) setMember(header, name, value)
  const doc = docOfValue({ header, body: json ?? text })
  // Inherits: the members of the engine's contexts are on their prototype.
  const response_context: EvaluationContext = Object.create(context, { doc: { value: doc } })
  const expansion = { ...expansionOf(response_context), left_chars: doc.text.length }
  for (const { key, template, type } of mapping) {
    const value = template.value(expansion)
    if (expansion.failure !== undefined) {
      return failure('api_wrong_convert_param', expansion.failure.description)
    }
    const converted = value === undefined || type === undefined ? value : asType(value, type)
    if (converted !== undefined) setMember(data, key, converted)
    else if (json === undefined && text !== '') return noJson(text)
    else if (value === undefined) delete data[key]
    else return failure('api_wrong_convert_param', conversionText(key, value, type))
  }
  return undefined
}

/**
 * The editor writes `object` for any body, so an array is accepted for an object and vice versa.
 */
function asType(value: JsonValue, type: ValueType): JsonValue | undefined {
  const is_container = Array.isArray(value) || isObject(value)
  if (is_container && (type === 'object' || type === 'array')) return value
  return convert(value, type)
}

function mergeCorezoid(data: JsonObject, text: string): LogicFailure | undefined {
  const answer = parsedValue(text)
  if (answer === undefined) return noJson(text)
  if (!isObject(answer) || answer.request_proc !== 'ok') {
    return failure('api_no_request_proc', 'request_proc of the answer is not "ok"')
  }
  const op = Array.isArray(answer.ops) ? answer.ops[0] : undefined
  if (!isObject(op)) return failure('api_no_ops', 'the answer has no ops')
  if (op.proc !== 'ok') {
    const res_data = truncated(stringifyJson(op.res_data ?? null))
    return failure('api_bad_answer', `proc ${quoted(op.proc)}: ${res_data}`)
  }
  const { res_data } = op
  const is_empty = Array.isArray(res_data) && res_data.length === 0
  if (isObject(res_data)) merge(data, res_data)
  else if (!is_empty) return failure('api_bad_res_data', `res_data is ${quoted(res_data)}`)
  return undefined
}

function merge(data: JsonObject, added: JsonObject): void {
  for (const key of Object.keys(added)) setMember(data, key, added[key] as JsonValue)
}

function noJson(text: string): LogicFailure {
  const body = text.trim()
  return failure('api_no_valid_json', body === '' ? 'the answer is empty' : truncated(body))
}

function failure(tag: string, description: string): LogicFailure {
  return { tag, description }
}
