/**
 * `send`: a client of the signed endpoint. The body is sent byte for byte, because the signature
 * covers its bytes.
 */
import http from 'node:http'
import https from 'node:https'
import { ownTimestamp, type Signed, signed } from '../../client/http-messages.ts'
import { parsePlain } from '../../codec/json.ts'
import { systemChance } from '../../core/clock.ts'
import { type Exit, exits, unreachableError } from '../exit-codes.ts'
import { print, readAll } from '../io.ts'
import {
  baseOf,
  body_note,
  fileOf,
  readSigner,
  secret_notes,
  signer_flags,
} from '../sign/signer.ts'
import { verbOf } from '../verb.ts'

export const sendVerb = verbOf('send [FILE]', {
  flags: signer_flags,
  says: 'sign a body, post it and print the answer',
  notes: [
    body_note,
    ...secret_notes,
    'Exit: 0 where every op is ok, 1 where one is refused, 3 where the server cannot be had,',
    '4 where the signature is wrong, or of a kind (--sign) that the user may not use.',
  ],
  async run(given, io) {
    const base = baseOf(given)
    const { signer, body } = await readSigner(given, io, fileOf(given))
    const { path, headers } = signed(1, signer, ownTimestamp(io.clock.now_ms(), systemChance), body)
    const { status, answer } = await post(base + path, headers, body)
    await print(io.stdout, answer.endsWith('\n') ? answer : `${answer}\n`)
    return exitOf(status, answer)
  },
})

/** Uses node:http because `fetch` refuses some ports. */
function post(
  url: string,
  headers: Signed['headers'],
  body: Buffer,
): Promise<{ readonly status: number; readonly answer: string }> {
  return new Promise((resolve, reject) => {
    const lost = (error: NodeJS.ErrnoException): void => {
      const why = error.code ?? error.message
      const origin = new URL(url).origin
      reject(unreachableError(`${origin} does not answer (${why}): does the server run there?`))
    }
    const request = url.startsWith('https:') ? https.request : http.request
    const call = request(url, { method: 'POST', headers }, (response) => {
      const status = response.statusCode ?? 0
      readAll(response).then((bytes) => resolve({ status, answer: bytes.toString('utf8') }), lost)
    })
    call.on('error', lost).end(body)
  })
}

/** From the status, and from each op where the whole request was accepted. */
function exitOf(status: number, answer: string): Exit {
  if (status === 401) return exits.unauthenticated
  if (status >= 500) return exits.unreachable
  if (status >= 300) return exits.refused
  return isAllOk(answer) ? exits.done : exits.refused
}

function isAllOk(answer: string): boolean {
  try {
    const { request_proc, ops } = parsePlain(answer) as {
      request_proc: unknown
      ops: readonly { readonly proc: unknown }[]
    }
    return request_proc === 'ok' && ops.every((op) => op.proc === 'ok')
  } catch {
    return false
  }
}
