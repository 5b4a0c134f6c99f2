/**
 * The body of an `api` call. `default` or `json`: `extra`, in the query of GET and HEAD, else JSON,
 * XML or urlencoded by the content type; `send_sys` adds the task's ids to JSON. `raw`: the text of
 * `raw_body`. `corezoid`: the task in the envelope of that protocol.
 */
import { docOfValue, objectOf, setMember, stringifyJson } from '../../codec/json.ts'
import { isXmlType, xmlOf } from '../../codec/xml-write.ts'
import type { JsonObject } from '../../core/model.ts'
import type { EvaluationContext } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
import { type Expansion, failWith, jsonTemplate, spellJson } from '../templates/parser.ts'
import { textOf } from '../values.ts'
import { assignedData, readAssignments } from './assignments.ts'
import { readKey } from './data-key.ts'
import { isAbsent, isOn, readTemplate } from './members.ts'

export interface Body {
  readonly body?: string
  readonly content_type?: string
  readonly query?: string
}

/** The body for one task; `header_type` is the content type of the headers. */
export type BodyTerm = (expansion: Expansion, header_type: string | undefined) => Body | undefined

const formats = ['default', 'raw', 'corezoid'] as const
export type Format = (typeof formats)[number]

export function readFormat({ format }: JsonObject, report: Report): Format {
  if (isAbsent(format) || format === 'json') return 'default'
  const known = formats.find((one) => one === format)
  if (known === undefined) report.mistake(`format ${quoted(format)} is none of raw corezoid`)
  return known ?? 'default'
}

const json = 'application/json'

export function readBody(
  format: Format,
  method: string,
  raw: JsonObject,
  report: Report,
): BodyTerm {
  const content_type = readTemplate(raw, 'content_type', report)
  const type = content_type.constant === '' ? undefined : content_type.constant
  if (content_type.constant === undefined) report.mistake('content_type holds a template')
  if (format === 'corezoid') return corezoidBody(raw, report)
  const has_body = method !== 'GET' && method !== 'HEAD'
  if (format === 'raw') return has_body ? rawBody(raw, type, report) : () => ({})
  const assignments = readAssignments(raw, 'extra', 'extra_type', report, readKey)
  const is_bare = assignments.length === 0 && (method === 'DELETE' || method === 'OPTIONS')
  if (has_body && !is_bare && type !== undefined && isXmlType(type) && assignments.length !== 1) {
    report.warning('extra of an XML body has one member, the root tag: these calls will fail')
  }
  const sends_sys = isOn(raw.send_sys)
  return (expansion, header_type) => {
    const data = assignedData(assignments, expansion)
    if (data === undefined) return undefined
    if (!has_body) return { query: formOf(data) }
    if (is_bare) return {}
    const used = type ?? header_type ?? json
    const sent = { content_type: type ?? json }
    if (isXmlType(used)) {
      const body = xmlOf(data)
      if (body !== undefined) return { body, ...sent }
      return failWith(expansion, 'bind', 'Error bind params to http query: extra is no XML')
    }
    if (used.toLowerCase().includes('urlencoded')) return { body: formOf(data), ...sent }
    if (sends_sys) setMember(data, 'sys', taskNames(expansion.context))
    return { body: stringifyJson(data), ...sent }
  }
}

/**
 * A text that is JSON around its templates stays JSON: a value inside quotes is escaped, a value
 * outside is one JSON value. Any other text is joined as it is.
 */
function rawBody(raw: JsonObject, type: string | undefined, report: Report): BodyTerm {
  const template = readTemplate(raw, 'raw_body', report)
  const first = template.parts[0]
  const is_json = typeof first === 'string' && /^\s*[{[]/.test(first) && template.parts.length > 1
  const text = is_json ? jsonTemplate(template.parts, spellJson) : template.text
  const content_type = type ?? (is_json ? json : undefined)
  return (expansion) => {
    const body = text(expansion)
    if (body === undefined) return undefined
    return content_type === undefined ? { body } : { body, content_type }
  }
}

function corezoidBody(raw: JsonObject, report: Report): BodyTerm {
  const assignments = readAssignments(raw, 'extra', 'extra_type', report, readKey)
  return (expansion) => {
    const { context } = expansion
    const extra = assignedData(assignments, expansion)
    if (extra === undefined) return undefined
    const op: JsonObject = { ...taskNames(context), type: 'data', data: objectOf(context.doc) }
    if (assignments.length > 0) op.extra = extra
    return { body: docOfValue({ ops: [op] }).text, content_type: json }
  }
}

function taskNames(context: EvaluationContext): JsonObject {
  return {
    ref: context.rootField('ref') ?? null,
    obj_id: context.rootField('task_id') ?? '',
    conv_id: context.rootField('conv_id') ?? '',
    node_id: context.rootField('node_id') ?? '',
  }
}

/** `name=value&…`; a value that is no text is sent as its JSON. */
function formOf(data: JsonObject): string {
  return Object.keys(data)
    .map((key) => `${encodeURIComponent(key)}=${encodeURIComponent(textOf(data[key] ?? null))}`)
    .join('&')
}
