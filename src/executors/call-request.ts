/**
 * One HTTP request to one IP address, and its response, within limits of size. The host name is
 * used only for the host header and to check the certificate. Redirects, proxies and cookies are
 * not handled here.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { type CallFailure, callFailure, failureOfError, isBusyStatus } from './call-failure.ts'
import { bareHost, portOf } from './call-resolver.ts'

export interface AddressedRequest {
  readonly url: URL
  readonly address: string
  readonly method: string
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string | undefined
}

export interface HttpResponse {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
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
    const { url, address, method, headers, body } = addressed
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
        // Set explicitly, because NODE_TLS_REJECT_UNAUTHORIZED would switch the check off.
        ...(is_secure && { rejectUnauthorized: true, servername: isIP(host) === 0 ? host : '' }),
        ...(is_secure && ca !== undefined && { ca }),
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
        // The server closed an idle connection: that is no failure of this request.
        const is_stale = request.reusedSocket && error.code === 'ECONNRESET'
        resolve({ result: failureOfError(error), is_stale })
      })
      // As bytes: Node would send a text in one chunk with the headers, in the headers' encoding.
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
  /** The request met a connection that the server had closed. */
  readonly is_stale: boolean
}

function readResponse(
  response: IncomingMessage,
  method: string,
  bytes_max: number,
  settle: (result: HttpResponse | CallFailure) => void,
): void {
  const { statusCode: status = 0, headers } = response
  const tooLarge = (): void =>
    settle(callFailure('too_large', `HTTP ${status}: more than ${bytes_max} bytes`))
  if (isBusyStatus(status)) {
    settle(callFailure('busy', `HTTP ${status}`))
    return
  }
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity' && !isRedirect(status)) {
    settle(callFailure('bad_answer', `HTTP ${status}: encoded, which was not asked for`))
    return
  }
  if (method !== 'HEAD' && Number(headers['content-length'] ?? 0) > bytes_max) {
    tooLarge()
    return
  }
  const chunks: Buffer[] = []
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > bytes_max) tooLarge()
    else chunks.push(chunk)
  })
  response.on('error', (error) => settle(failureOfError(error)))
  response.on('end', () => {
    const text = isRedirect(status) ? '' : textOf(Buffer.concat(chunks))
    if (text === undefined) settle(callFailure('not_text', `HTTP ${status}: not UTF-8`))
    else settle({ status, headers: headerList(headers), text })
  })
}

/** The body of such a response is not read. */
function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function textOf(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes)
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
