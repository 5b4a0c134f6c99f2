/**
 * `send` and `sign`: the client's side of the signed endpoint. The body goes out byte for byte as
 * it came in, since the signature is over its bytes.
 */
import http from 'node:http'
import https from 'node:https'
import { serverBase, signedPath } from '../../client/http-messages.ts'
import { parsePlain } from '../../codec/json.ts'
import { type Exit, exits, unreachable, usage } from '../exit-codes.ts'
import { readInput } from '../input.ts'
import { type Io, print, readAll } from '../io.ts'
import { readSecret, secret_flag, secret_notes } from '../secret.ts'
import { clean } from '../table.ts'
import { type Flag, type Given, isOn, json_flag, text, type Verb } from '../verb.ts'

const flags: readonly Flag[] = [
  { name: 'url', value: 'URL', says: 'where the server is, such as http://127.0.0.1:8080' },
  { name: 'user', value: 'ID', says: 'the user who signs' },
  secret_flag,
  json_flag,
]

const file_word = { name: 'FILE', optional: true } as const

export const sendVerbs: readonly Verb[] = [
  {
    name: 'send',
    words: [file_word],
    flags,
    says: 'sign a body, post it and print the answer',
    notes: [
      'FILE holds the body; without it, or as -, standard input does.',
      ...secret_notes,
      'Exit: 0 where every op is ok, 1 where one is refused, 3 where the server cannot be had,',
      '4 where it does not know the signature.',
    ],
    async run(given, io) {
      const { url, body } = await signedBody(given, io)
      const { status, answer } = await post(url, body)
      await print(io.stdout, answer.endsWith('\n') ? answer : `${answer}\n`)
      return exitOf(status, answer)
    },
  },
  {
    name: 'sign',
    words: [file_word],
    flags,
    says: 'print the signed URL of a body and a curl line',
    notes: ['FILE holds the body; without it, or as -, standard input does.', ...secret_notes],
    async run(given, io) {
      const { url, file } = await signedBody(given, io)
      const curl = `curl -sS --data-binary ${quoted(`@${file}`)} ${quoted(url)}`
      const lines = isOn(given, 'json') ? JSON.stringify({ url, curl }) : `${url}\n${clean(curl)}`
      await print(io.stdout, `${lines}\n`)
      return exits.done
    },
  },
]

async function signedBody(
  given: Given,
  io: Io,
): Promise<{ readonly url: string; readonly body: Buffer; readonly file: string }> {
  const [file = '-'] = given.words
  const base = serverBase(text(given, 'url') ?? '')
  if (base === undefined) {
    throw usage('--url takes the address of the server, such as http://127.0.0.1:8080')
  }
  const user = text(given, 'user')
  if (user === undefined || !/^[1-9][0-9]{0,15}$/.test(user)) {
    throw usage('--user takes the number of the user who signs')
  }
  const secret = await readSecret(given, io, file !== '-')
  const body = await readInput(file, io)
  return { url: base + signedPath(1, { user, secret }, io.clock.now_ms(), body), body, file }
}

/** Not `fetch`, which refuses some ports. */
function post(
  url: string,
  body: Buffer,
): Promise<{ readonly status: number; readonly answer: string }> {
  return new Promise((resolve, reject) => {
    const lost = (error: NodeJS.ErrnoException): void => {
      const why = error.code ?? error.message
      const origin = new URL(url).origin
      reject(unreachable(`${origin} does not answer (${why}): does the server run there?`))
    }
    const request = url.startsWith('https:') ? https.request : http.request
    const call = request(url, { method: 'POST' }, (response) => {
      const status = response.statusCode ?? 0
      readAll(response).then((bytes) => resolve({ status, answer: bytes.toString('utf8') }), lost)
    })
    call.on('error', lost).end(body)
  })
}

/** By the status, and by each op where the request as a whole was taken. */
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

/** One word of a shell, whatever is in it. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
