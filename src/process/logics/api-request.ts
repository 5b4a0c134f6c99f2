/**
 * The request of an `api` logic: compiled once, built for each task. A value that a template
 * inserts is never parsed as a template, and a header value that could end its line is refused.
 *
 * `format` decides the body. None or `default`: `extra`, in the query for GET and HEAD, otherwise
 * as JSON or urlencoded by `content_type`. `raw`: the text of `raw_body`. `corezoid`: the task in
 * the envelope of that protocol, always by POST and signed. The URL of any format is signed where
 * the logic has a secret and does not switch system parameters off.
 */
import { docOfValue, objectOf, stringifyJson } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import type { CallRequest } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted, truncated } from '../report.ts'
import { type Expansion, failWith } from '../templates/parser.ts'
import { compileTemplate } from '../templates/template.ts'
import { jsonTemplate } from '../templates/template-json.ts'
import { textOf } from '../values.ts'
import { assignedData, readAssignments } from './assignments.ts'
import { isAbsent, readObject, readTemplate } from './members.ts'

/** The request for one task; undefined where the expansion failed. */
export type ApiRequest = (expansion: Expansion) => CallRequest | undefined

export function readRequest(raw: JsonObject, report: Report): ApiRequest {
  const format = readFormat(raw, report)
  const method = format === 'corezoid' ? 'POST' : readMethod(raw.method, report)
  const url = readTemplate(raw, 'url', report)
  if (url.constant !== undefined) warnOfUrl(url.constant, report)
  const headersOf = readHeaders(raw, report)
  const bodyOf = readBody(format, method, raw, report)
  const secret = readTemplate(raw, 'api_secret_outer', report)
  const is_signed = format === 'corezoid' || (secret.constant !== '' && raw.send_sys !== false)
  if (format === 'corezoid' && secret.constant === '') {
    report.warning('format corezoid without api_secret_outer is signed with an empty secret')
  }
  if (typeof raw.cert_pem === 'string' && raw.cert_pem !== '') {
    report.warning('cert_pem is ignored: calls present no certificate of their own')
  }
  const threads_max = readThreads(raw.max_threads, report)
  return (expansion) => {
    const headers = headersOf(expansion)
    const made = bodyOf(expansion, headers?.get('content-type'))
    const text = url.text(expansion)
    const key = is_signed ? secret.text(expansion) : undefined
    if (expansion.failure !== undefined || headers === undefined || made === undefined)
      return undefined
    if (made.content_type !== undefined && !headers.has('content-type')) {
      headers.set('content-type', made.content_type)
    }
    const conv_id = textOf(expansion.context.rootField('conv_id') ?? '')
    return {
      url: withQuery((text ?? '').trim(), made.query),
      method,
      headers: [...headers],
      body: made.body,
      threads_max,
      sign: is_signed ? { conv_id, secret: key ?? '' } : undefined,
    }
  }
}

const formats = ['default', 'raw', 'corezoid'] as const
type Format = (typeof formats)[number]

function readFormat({ format }: JsonObject, report: Report): Format {
  if (isAbsent(format)) return 'default'
  const known = formats.find((one) => one === format)
  if (known === undefined) report.mistake(`format ${quoted(format)} is none of raw corezoid`)
  return known ?? 'default'
}

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS']

function readMethod(method: JsonValue | undefined, report: Report): string {
  if (isAbsent(method)) return 'POST'
  const known = methods.find((one) => typeof method === 'string' && one === method.toUpperCase())
  if (known !== undefined) return known
  report.mistake(`method ${quoted(method)} is none of ${methods.join(' ')}`)
  return 'POST'
}

/** Exports hold unfinished nodes, so a URL to which every call fails is legal. */
function warnOfUrl(url: string, report: Report): void {
  if (url === '') report.warning('url is empty')
  else if (!/^https?:\/\//i.test(url.trim())) {
    report.warning(`url ${quoted(url)} is neither http nor https`)
  }
}

/** 0 is no limit of its own. */
function readThreads(value: JsonValue | undefined, report: Report): number {
  if (isAbsent(value)) return 0
  const number = typeof value === 'string' ? Number(value) : value
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return number
  report.mistake(`max_threads ${quoted(value)} is no number of calls`)
  return 0
}

/** Headers that the connection sets itself, or that would change its framing. */
const connection_headers = [
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
const header_name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const header_value = /^[\t\x20-\x7e\x80-\xff]*$/

/** Header names are in lower case. A header with an empty value is not sent. */
function readHeaders(
  raw: JsonObject,
  report: Report,
): (expansion: Expansion) => Map<string, string> | undefined {
  const given = readObject(raw, 'extra_headers', report)
  const headers = Object.keys(given).map((name) => {
    const place = `extra_headers[${quoted(name)}]`
    const value = given[name] ?? ''
    if (typeof value === 'object') {
      report.mistake(`${place} is ${quoted(value)}, a text was expected`)
    }
    const header = {
      name: compileTemplate(name, report, 'the header'),
      value: compileTemplate(textOf(value), report, place),
    }
    const constant = header.name.constant?.trim().toLowerCase()
    if (constant !== undefined && !header_name.test(constant)) {
      report.mistake(`${place} is no name of a header`)
    } else if (connection_headers.some((one) => one === constant)) {
      report.warning(`${place} is ignored: the connection sets it`)
    }
    return header
  })
  return (expansion) => {
    const made = new Map<string, string>()
    for (const header of headers) {
      const name = header.name.text(expansion)?.trim().toLowerCase()
      const value = header.value.text(expansion)?.trim()
      if (name === undefined || value === undefined) return undefined
      if (value === '' || connection_headers.includes(name)) continue
      // The value is not shown: it is often a secret.
      if (!header_name.test(name) || !header_value.test(value)) {
        return failWith(expansion, 'convert', `Param: ${truncated(name)}, Try convert to: header`)
      }
      made.set(name, value)
    }
    return made
  }
}

interface Body {
  readonly body?: string
  readonly content_type?: string
  readonly query?: string
}

/** The body for one task; `header_type` is the content type of the headers. */
type BodyTerm = (expansion: Expansion, header_type: string | undefined) => Body | undefined

const json = 'application/json'

function readBody(format: Format, method: string, raw: JsonObject, report: Report): BodyTerm {
  const content_type = readTemplate(raw, 'content_type', report)
  const type = content_type.constant === '' ? undefined : content_type.constant
  if (content_type.constant === undefined) report.mistake('content_type holds a template')
  if (format === 'corezoid') return corezoidBody(raw, report)
  const has_body = method !== 'GET' && method !== 'HEAD'
  if (format === 'raw') return has_body ? rawBody(raw, type, report) : () => ({})
  if (has_body && type !== undefined && /[/+]xml\b/i.test(type)) {
    report.mistake(`content_type ${quoted(type)}: XML is written as raw_body with format raw`)
  }
  const assignments = readAssignments(raw, 'extra', 'extra_type', report)
  const is_bare = assignments.length === 0 && (method === 'DELETE' || method === 'OPTIONS')
  return (expansion, header_type) => {
    const data = assignedData(assignments, expansion)
    if (data === undefined) return undefined
    if (!has_body) return { query: formOf(data) }
    if (is_bare) return {}
    const used = type ?? header_type ?? json
    const is_form = used.toLowerCase().includes('urlencoded')
    return { body: is_form ? formOf(data) : stringifyJson(data), content_type: type ?? json }
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
  const text = is_json ? jsonTemplate(template) : template.text
  const content_type = type ?? (is_json ? json : undefined)
  return (expansion) => {
    const body = text(expansion)
    if (body === undefined) return undefined
    return content_type === undefined ? { body } : { body, content_type }
  }
}

function corezoidBody(raw: JsonObject, report: Report): BodyTerm {
  const assignments = readAssignments(raw, 'extra', 'extra_type', report)
  return (expansion) => {
    const { context } = expansion
    const extra = assignedData(assignments, expansion)
    if (extra === undefined) return undefined
    const op: JsonObject = {
      ref: context.rootField('ref') ?? null,
      obj_id: context.rootField('task_id') ?? '',
      conv_id: context.rootField('conv_id') ?? '',
      node_id: context.rootField('node_id') ?? '',
      type: 'data',
      data: objectOf(context.doc),
    }
    if (assignments.length > 0) op.extra = extra
    return { body: docOfValue({ ops: [op] }).text, content_type: json }
  }
}

/** `name=value&…`; a value that is no text is sent as its JSON. */
function formOf(data: JsonObject): string {
  return Object.keys(data)
    .map((key) => `${encodeURIComponent(key)}=${encodeURIComponent(textOf(data[key] ?? null))}`)
    .join('&')
}

function withQuery(url: string, query: string | undefined): string {
  if (query === undefined || query === '') return url
  const [before = '', fragment] = url.split(/#(.*)/s)
  const joint = before.includes('?') ? (/[?&]$/.test(before) ? '' : '&') : '?'
  return `${before}${joint}${query}${fragment === undefined ? '' : `#${fragment}`}`
}
