/**
 * What the answer to an `api` call does to the data. Statuses 200, 201 and 202 are success, any
 * other is a bad answer. Of a success:
 *
 * - a JSON object is laid over the data, an array stands in `__conveyor_api_array__`;
 * - with `customize_response` only the keys of `response` are set, from templates over `header` and
 *   `body`; one whose template finds nothing is taken out, so that no older value passes for new;
 * - with format `corezoid` the `res_data` of its op is laid over the data.
 */
import {
  bytesOf,
  docOfValue,
  isObject,
  objectOf,
  parseJson,
  setMember,
  stringifyJson,
} from '../../codec/json.ts'
import type { Doc, JsonObject, JsonValue } from '../../core/model.ts'
import { value_bounds } from '../definition-limits.ts'
import type { ErrorType, EvaluationContext, JobOutcome } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted, truncated } from '../report.ts'
import { expansionOf } from '../templates/parser.ts'
import { compileTemplate, type Template } from '../templates/template.ts'
import { convert, textOf, type ValueType } from '../values.ts'
import { objectIn, readFlag, readType } from './assignments.ts'

export interface ResponseFailure {
  readonly error_type?: ErrorType
  readonly tag: string
  readonly description: string
}

type Done = Extract<JobOutcome, { outcome: 'done' }>

/** The data with the answer in it, within the size of a task, or why there is none. */
export type ResponseReader = (context: EvaluationContext, outcome: Done) => Doc | ResponseFailure

export function readResponse(raw: JsonObject, report: Report): ResponseReader {
  const mapping = readFlag(raw, 'customize_response', report) ? readMapping(raw, report) : undefined
  const is_bare = typeof raw.method === 'string' && raw.method.toUpperCase() === 'HEAD'
  return (context, outcome) => {
    const { status = 0 } = outcome
    if (!successes.includes(status)) {
      const said = outcome.text.trim()
      return bad(
        'api_bad_answer',
        said === '' ? `HTTP ${status}` : `HTTP ${status}: ${truncated(said)}`,
      )
    }
    const data: JsonObject = { ...objectOf(context.doc) }
    const failure =
      is_bare && outcome.text === '' && mapping === undefined
        ? undefined
        : raw.format === 'corezoid'
          ? mergeCorezoid(data, outcome.text)
          : mapping === undefined
            ? mergeBody(data, outcome.text)
            : mapBody(data, mapping, context, outcome)
    if (failure !== undefined) return failure
    const doc = docOfValue(data)
    const bytes = bytesOf(doc.text)
    if (bytes <= context.task_bytes_max) return doc
    const max = `Max available task size: ${context.task_bytes_max} bytes`
    return bad('api_task_size_overflow_limit', `Your task size: ${bytes} bytes, ${max}`)
  }
}

const successes = [200, 201, 202]

function mergeBody(data: JsonObject, text: string): ResponseFailure | undefined {
  const body = parsed(text)
  if (body === undefined) return noJson(text)
  if (isObject(body)) merge(data, body)
  else if (Array.isArray(body)) setMember(data, '__conveyor_api_array__', body)
  else return bad('api_no_valid_json', `${quoted(body)} is neither an object nor an array`)
  return undefined
}

interface Mapped {
  readonly key: string
  readonly template: Template
  readonly type: ValueType | undefined
}

function readMapping(raw: JsonObject, report: Report): readonly Mapped[] {
  const response = objectIn(raw, 'response', report)
  const types = objectIn(raw, 'response_type', report)
  return Object.keys(response).map((key) => {
    const place = `response[${quoted(key)}]`
    const value = response[key] ?? ''
    if (typeof value !== 'string')
      report.mistake(`${place} is ${quoted(value)}, a text was expected`)
    const asked = Object.hasOwn(types, key) ? types[key] : undefined
    return {
      key,
      template: compileTemplate(typeof value === 'string' ? value : '', report, place),
      type: readType(asked, report, `response_type[${quoted(key)}]`),
    }
  })
}

/** A body that is no JSON serves only what asks for it as text. */
function mapBody(
  data: JsonObject,
  mapping: readonly Mapped[],
  context: EvaluationContext,
  { text, headers = [] }: Done,
): ResponseFailure | undefined {
  const json = parsed(text)
  const header: JsonObject = {}
  for (const [name, value] of headers) setMember(header, name, value)
  const doc = docOfValue({ header, body: json ?? text })
  const run = { ...expansionOf({ ...context, doc }), left_chars: doc.text.length }
  for (const { key, template, type } of mapping) {
    const value = template.value(run)
    if (run.failure !== undefined) return bad('api_wrong_convert_param', run.failure.description)
    const converted = value === undefined || type === undefined ? value : asType(value, type)
    if (converted !== undefined) setMember(data, key, converted)
    else if (json === undefined && text !== '') return noJson(text)
    else if (value === undefined) delete data[key]
    else {
      const shown = truncated(textOf(value))
      const what = `Param: ${truncated(key)}, Value: ${shown}, Try convert to: ${type}`
      return bad('api_wrong_convert_param', what)
    }
  }
  return undefined
}

/** The editor writes `object` for any body, so an array passes for one, and the other way round. */
function asType(value: JsonValue, type: ValueType): JsonValue | undefined {
  const is_container = Array.isArray(value) || isObject(value)
  if (is_container && (type === 'object' || type === 'array')) return value
  return convert(value, type)
}

function mergeCorezoid(data: JsonObject, text: string): ResponseFailure | undefined {
  const answer = parsed(text)
  if (answer === undefined) return noJson(text)
  if (!isObject(answer) || answer.request_proc !== 'ok') {
    return bad('api_no_request_proc', 'request_proc of the answer is not "ok"')
  }
  const op = Array.isArray(answer.ops) ? answer.ops[0] : undefined
  if (!isObject(op)) return bad('api_no_ops', 'the answer has no ops')
  if (op.proc !== 'ok') {
    return bad(
      'api_bad_answer',
      `proc ${quoted(op.proc)}: ${truncated(stringifyJson(op.res_data ?? null))}`,
    )
  }
  const { res_data } = op
  const is_empty = Array.isArray(res_data) && res_data.length === 0
  if (isObject(res_data)) merge(data, res_data)
  else if (!is_empty) return bad('api_bad_res_data', `res_data is ${quoted(res_data)}`)
  return undefined
}

function merge(data: JsonObject, added: JsonObject): void {
  for (const key of Object.keys(added)) setMember(data, key, added[key] as JsonValue)
}

/** Undefined where the text is no JSON that a task's data could hold. */
function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text, value_bounds)
  } catch {
    return undefined
  }
}

function noJson(text: string): ResponseFailure {
  return bad(
    'api_no_valid_json',
    text.trim() === '' ? 'the answer is empty' : truncated(text.trim()),
  )
}

function bad(tag: string, description: string): ResponseFailure {
  return { tag, description }
}
