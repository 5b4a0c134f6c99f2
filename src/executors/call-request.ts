/**
 * One request to one address and its answer, within bounds. The name of the host is for the header,
 * the certificate and nothing else. Redirects, proxies and cookies are not known here.
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
  /** Rejects only where `signal` says so, with its reason. */
  send(hop: AddressedRequest, signal: AbortSignal): Promise<HttpResponse | CallFailure>
  close(): void
}

const idle_ms_max = 4_000
const idle_sockets_max = 2
const header_bytes_max = 16_384

/** `ca` adds authorities in PEM to those of the system. */
export function newHttpClient(bytes_max: number, ca?: string): HttpClient {
  const keep = { keepAlive: true, maxFreeSockets: idle_sockets_max, timeout: idle_ms_max }
  const plain = new HttpAgent(keep)
  const secure = new HttpsAgent(keep)

  function sendOnce(
    hop: AddressedRequest,
    signal: AbortSignal,
    agent_kept: boolean,
  ): Promise<Sent> {
    const { url, address, method, headers, body } = hop
    const is_secure = url.protocol === 'https:'
    const host = bareHost(url)
    const agent = agent_kept ? (is_secure ? secure : plain) : false
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
        // The system's own authorities, whatever the environment says of not checking them.
        ...(is_secure && { rejectUnauthorized: true, servername: isIP(host) === 0 ? host : '' }),
        ...(is_secure && ca !== undefined && { ca }),
      })
      const end = (answer: HttpResponse | CallFailure): void => {
        signal.removeEventListener('abort', abort)
        if ('cause' in answer) request.destroy()
        resolve({ answer, is_stale: false })
      }
      const abort = (): void => {
        request.destroy()
        reject(signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
      request.on('response', (response) => readAnswer(response, method, bytes_max, end))
      request.on('error', (error: NodeJS.ErrnoException) => {
        signal.removeEventListener('abort', abort)
        // A kept connection that the server closed just now says nothing about the server.
        const is_stale = request.reusedSocket && error.code === 'ECONNRESET'
        resolve({ answer: failureOfError(error), is_stale })
      })
      // As bytes: a text would go out in one piece with the headers, and in its encoding.
      request.end(body === undefined ? undefined : Buffer.from(body))
    })
  }

  return {
    async send(hop, signal) {
      const first = await sendOnce(hop, signal, true)
      return (first.is_stale ? await sendOnce(hop, signal, false) : first).answer
    },
    close() {
      plain.destroy()
      secure.destroy()
    },
  }
}

interface Sent {
  readonly answer: HttpResponse | CallFailure
  readonly is_stale: boolean
}

function readAnswer(
  response: IncomingMessage,
  method: string,
  bytes_max: number,
  end: (answer: HttpResponse | CallFailure) => void,
): void {
  const { statusCode: status = 0, headers } = response
  const tooLarge = (): void =>
    end(callFailure('too_large', `HTTP ${status}: more than ${bytes_max} bytes`))
  if (isBusyStatus(status)) {
    end(callFailure('busy', `HTTP ${status}`))
    return
  }
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity' && !isRedirect(status)) {
    end(callFailure('bad_answer', `HTTP ${status}: encoded, which was not asked for`))
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
  response.on('error', (error) => end(failureOfError(error)))
  response.on('end', () => {
    const text = isRedirect(status) ? '' : textOf(Buffer.concat(chunks))
    if (text === undefined) end(callFailure('not_text', `HTTP ${status}: not UTF-8`))
    else end({ status, headers: headerList(headers), text })
  })
}

/** Its body means nothing. */
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
