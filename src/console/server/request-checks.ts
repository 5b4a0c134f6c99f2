/**
 * What a request must be before it is served: sent by the page itself and not by a web page of
 * another origin, and with a JSON body within bounds. Browsers state the origin of a request; other
 * programs state none, and need a session as well. Only requests with a session, or for one, are
 * read.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { parsePlain } from '../../codec/json.ts'
import { httpFault } from '../../server/http/fault-response.ts'

export type BodyReader = (request: IncomingMessage, bytes_max: number) => Promise<unknown>

/** `bytes_max`: of all bodies that are being read. */
export function newBodyReader(all_bytes_max: number): BodyReader {
  let all_bytes = 0
  return async (request, bytes_max) => {
    if (request.readableDidRead || request.readableEnded) throw bodyTaken()
    const type = request.headers['content-type'] ?? ''
    if (!/^application\/json *(?:;|$)/i.test(type)) {
      throw httpFault('bad_request', 'Content-Type: application/json', { status: 415 })
    }
    const announced = Number(request.headers['content-length'] ?? 0)
    if (announced > bytes_max) throw tooLarge(bytes_max)
    const chunks: Buffer[] = []
    let bytes = 0
    try {
      // The answer has to go out on this connection.
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        const { length } = chunk as Buffer
        bytes += length
        all_bytes += length
        if (bytes > bytes_max) throw tooLarge(bytes_max)
        if (all_bytes > all_bytes_max) throw httpFault('overloaded', 'too much is being sent')
        chunks.push(chunk as Buffer)
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
      throw httpFault('bad_request', 'the connection was closed')
    } finally {
      all_bytes -= bytes
    }
    return parsed(Buffer.concat(chunks).toString('utf8'))
  }
}

function parsed(text: string): unknown {
  try {
    return parsePlain(text)
  } catch {
    throw httpFault('bad_request', 'the body is no JSON')
  }
}

function tooLarge(bytes_max: number): Error {
  return httpFault('body_too_large', `the body is over ${bytes_max} bytes`)
}

/** The text reaches the caller, because only the embedder can make this mistake. */
function bodyTaken(): Error {
  const text = 'a body parser has read the request first: mount the page in front of it'
  return httpFault('internal_error', text, { is_public: true })
}

/** Throws the refusal. `is_page`: it asks for the page, to which any site may link. */
export function checkOrigin(headers: IncomingHttpHeaders, is_page: boolean): void {
  const { host = '', origin } = headers
  const site = headers['sec-fetch-site'] ?? 'none'
  const is_visit =
    headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  const is_own = origin === undefined || hostOf(origin) === host.toLowerCase()
  const is_same = site === 'none' || site === 'same-origin' || (is_page && is_visit)
  if (is_own && is_same) return
  const text = 'requests of web pages of another origin are refused'
  throw httpFault('bad_request', text, { status: 403 })
}

function hostOf(origin: string): string | undefined {
  return /^https?:/.test(origin) && URL.canParse(origin) ? new URL(origin).host : undefined
}
