/**
 * The request of an `api` logic, compiled once and built for each task. Inserted values are never
 * parsed; one that could change the structure around it, such as a line break in a header, fails.
 *
 * `corezoid` is always a signed POST; any URL is signed where the logic has a secret and does not
 * switch system parameters off.
 */
import { isKeyPair } from '../../certs/key-pair.ts'
import { isObject } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { retry_attempts_max, retry_backoff_ms_max } from '../definition-limits.ts'
import type { CallRequest, JobRetry } from '../logic.ts'
import { expected, quoted, type Report, truncated } from '../report.ts'
import { type Expansion, failWith } from '../templates/parser.ts'
import { compileTemplate, constantTemplate, type Template } from '../templates/template.ts'
import { textOf } from '../values.ts'
import { readBody, readFormat } from './api-body.ts'
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
  const certificate = readCertificate(raw, report)
  const retry = readRetry(raw, report)
  const threads_max = readThreads(raw.max_threads ?? raw.max_theads, report)
  return (expansion) => {
    const headers = headersOf(expansion)
    const made = bodyOf(expansion, headers?.get('content-type'))
    const text = url.text(expansion)
    const key = is_signed ? secret.text(expansion) : undefined
    const cert_pem = certificate?.text(expansion)
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
      cert_pem: cert_pem === '' ? undefined : cert_pem,
      retry,
    }
  }
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

/** 0 is no limit of its own. Older exports write `max_theads`. */
function readThreads(value: JsonValue | undefined, report: Report): number {
  if (isAbsent(value)) return 0
  const number = typeof value === 'string' ? Number(value) : value
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return number
  report.mistake(`max_threads ${quoted(value)} is no number of calls`)
  return 0
}

/** A client certificate with its private key. Never shown: any mistake is one warning. */
function readCertificate({ cert_pem }: JsonObject, report: Report): Template | undefined {
  if (isAbsent(cert_pem)) return undefined
  const text = typeof cert_pem === 'string' ? cert_pem : 'none'
  let is_bad = false
  const note = (): void => {
    is_bad = true
  }
  const read = compileTemplate(text, { ...report, mistake: note, warning: note }, 'cert_pem')
  const template = is_bad ? constantTemplate(text) : read
  if (template.constant !== undefined && !isKeyPair(template.constant)) {
    report.warning('cert_pem is no certificate with its private key: calls by https will fail')
  }
  return template
}

const once: JobRetry = { attempts_max: 1, backoff_ms: 1_000 }

/** A member of our own: exports of the public service hold none, and their calls are made once. */
function readRetry({ retry }: JsonObject, report: Report): JobRetry {
  if (isAbsent(retry)) return once
  if (!isObject(retry)) expected(report, 'retry', retry, 'an object')
  const given = isObject(retry) ? retry : {}
  const read = (name: keyof JobRetry, max: number): number => {
    const value = given[name] ?? once[name]
    const is_whole = typeof value === 'number' && Number.isSafeInteger(value)
    if (is_whole && value >= 1 && value <= max) return value
    report.mistake(`retry.${name} ${quoted(value)} is no whole number from 1 to ${max}`)
    return once[name]
  }
  return {
    attempts_max: read('attempts_max', retry_attempts_max),
    backoff_ms: read('backoff_ms', retry_backoff_ms_max),
  }
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
    if (typeof value === 'object') expected(report, place, value, 'a text')
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
        const which = `Error bind params to http query: header ${truncated(name)}`
        return failWith(expansion, 'bind', which)
      }
      made.set(name, value)
    }
    return made
  }
}

function withQuery(url: string, query: string | undefined): string {
  if (query === undefined || query === '') return url
  const [before = '', fragment] = url.split(/#(.*)/s)
  const joint = before.includes('?') ? (/[?&]$/.test(before) ? '' : '&') : '?'
  return `${before}${joint}${query}${fragment === undefined ? '' : `#${fragment}`}`
}
