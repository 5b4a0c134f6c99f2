/**
 * One HTTP request to one IP address, and its bounded response. The host name is used only for the
 * host header and the certificate check. A request is sent once; only a safe one is repeated, when
 * a kept connection turns out to be closed. Connections are pooled by client certificate, because
 * the agent names its pools by all TLS options.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { stringifyJson } from '../codec/json.ts'
import { isXmlType } from '../codec/xml-write.ts'
import { value_bounds } from '../process/definition-limits.ts'
import { type Answered, type CallFailure, callFailure, failureOfError } from './call-failure.ts'
import { bareHost, portOf } from './call-resolver.ts'

export interface AddressedRequest {
  readonly url: URL
  readonly address: string
  readonly method: string
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string | undefined
  /** A client certificate with its private key, in PEM. */
  readonly cert_pem: string | undefined
}

export interface HttpResponse extends Answered {
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** On success; XML as JSON, an image in base64. */
  readonly text: string
}

export interface HttpClient {
  /** Rejects only when `signal` is aborted, with its reason. */
  send(request: AddressedRequest, signal: AbortSignal): Promise<HttpResponse | CallFailure>
  close(): void
}

const idle_ms_max = 4_000
const idle_sockets_max = 2
const header_bytes_max = 16_384

/** `ca` replaces the system's certificate authorities, in PEM. */
export function newHttpClient(bytes_max: number, ca?: string): HttpClient {
  const keep = { keepAlive: true, maxFreeSockets: idle_sockets_max, timeout: idle_ms_max }
  const plain = new HttpAgent(keep)
  const secure = new HttpsAgent(keep)

  function sendOnce(
    addressed: AddressedRequest,
    signal: AbortSignal,
    reuses_connection: boolean,
  ): Promise<Attempt> {
    const { url, address, method, headers, body, cert_pem } = addressed
    const is_secure = url.protocol === 'https:'
    const host = bareHost(url)
    const agent = reuses_connection ? (is_secure ? secure : plain) : false
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason)
        return
      }
      const request = (is_secure ? httpsRequest : httpRequest)({
        agent,
        host: address,
        port: portOf(url),
        path: url.pathname + url.search,
        method,
        headers: { host: url.host, ...Object.fromEntries(headers) },
        maxHeaderSize: header_bytes_max,
        // Set explicitly, because NODE_TLS_REJECT_UNAUTHORIZED would disable the check.
        ...(is_secure && { rejectUnauthorized: true, servername: isIP(host) === 0 ? host : '' }),
        ...(is_secure && ca !== undefined && { ca }),
        ...(is_secure && cert_pem !== undefined && { cert: cert_pem, key: cert_pem }),
      })
      const settle = (result: HttpResponse | CallFailure): void => {
        signal.removeEventListener('abort', abort)
        if ('cause' in result) request.destroy()
        resolve({ result, is_stale: false })
      }
      const abort = (): void => {
        request.destroy()
        reject(signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
      request.on('response', (response) => readResponse(response, method, bytes_max, settle))
      request.on('error', (error: NodeJS.ErrnoException) => {
        signal.removeEventListener('abort', abort)
        const may_repeat = method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
        const is_stale = may_repeat && request.reusedSocket && error.code === 'ECONNRESET'
        resolve({ result: failureOfError(error), is_stale })
      })
      // As bytes: Node would send text in one chunk with the headers, in their encoding.
      request.end(body === undefined ? undefined : Buffer.from(body))
    })
  }

  return {
    async send(addressed, signal) {
      const first = await sendOnce(addressed, signal, true)
      return (first.is_stale ? await sendOnce(addressed, signal, false) : first).result
    },
    close() {
      plain.destroy()
      secure.destroy()
    },
  }
}

interface Attempt {
  readonly result: HttpResponse | CallFailure
  /** The server had closed the connection. */
  readonly is_stale: boolean
}

function readResponse(
  response: IncomingMessage,
  method: string,
  bytes_max: number,
  settle: (result: HttpResponse | CallFailure) => void,
): void {
  const { statusCode: status = 0, headers } = response
  const is_success = isSuccess(status)
  const chunks: Buffer[] = []
  let response_bytes = 0
  const fail = (...[cause, description]: [CallFailure['cause'], string]): void =>
    settle(callFailure(cause, description, { status, response_bytes }))
  /** Also for a response cut short: the status of a failure is enough. */
  const answer = (text = ''): void =>
    settle({ status, headers: headerList(headers), text, response_bytes })
  const encoding = headers['content-encoding'] ?? 'identity'
  if (is_success && encoding.toLowerCase() !== 'identity') {
    fail('bad_answer', `HTTP ${status}: encoded, which was not asked for`)
    return
  }
  const tooLarge = (): void => {
    if (is_success) fail('too_large', `HTTP ${status}: more than ${bytes_max} bytes`)
    else {
      answer()
      response.destroy()
    }
  }
  if (method !== 'HEAD' && Number(headers['content-length'] ?? 0) > bytes_max) {
    tooLarge()
    return
  }
  response.on('data', (chunk: Buffer) => {
    response_bytes += chunk.length
    if (response_bytes > bytes_max) tooLarge()
    else if (is_success) chunks.push(chunk)
  })
  response.on('error', (error) => {
    if (is_success) settle({ ...failureOfError(error), answered: { status, response_bytes } })
    else answer()
  })
  response.on('end', async () => {
    const text = is_success ? await textOf(Buffer.concat(chunks), headers['content-type']) : ''
    if (text === undefined) fail('not_text', 'Please check: not UTF-8')
    else answer(text)
  })
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Undefined for a body that is not text. Malformed XML stays as it is; its parser takes several MB
 * and is loaded at first use. Never rejects.
 */
async function textOf(bytes: Buffer, type = ''): Promise<string | undefined> {
  if (/^\s*image\//i.test(type)) return bytes.toString('base64')
  try {
    const text = utf8.decode(bytes)
    if (text.trim() === '') return ''
    if (!isXmlType(type)) return text
    const { readXml } = await import('../codec/xml-read.ts')
    const xml = readXml(text, value_bounds)
    return 'value' in xml ? stringifyJson(xml.value) : text
  } catch {
    return undefined
  }
}

function headerList(headers: IncomingMessage['headers']): HttpResponse['headers'] {
  return Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ])
}
