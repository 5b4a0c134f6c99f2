/**
 * Reads the JSON body of a call within bounds: of the one body, and of all that are being read at
 * once. Only who has a session, or asks for one, is read at all.
 */
import type { IncomingMessage } from 'node:http'
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

/** The caller gets the text too, for the mistake is made before there are others. */
function bodyTaken(): Error {
  const text = 'a body parser has read the request first: mount the page in front of it'
  return httpFault('internal_error', text, { is_public: true })
}
