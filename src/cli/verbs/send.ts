/**
 * `send` and `sign`: a client of the signed endpoint. The body is sent byte for byte, because the
 * signature covers its bytes. A secret is never an argument, because every user of the machine can
 * read those.
 */
import http from 'node:http'
import https from 'node:https'
import { type Signed, serverBase, signed } from '../../client/http-messages.ts'
import { parsePlain } from '../../codec/json.ts'
import { type Exit, exits, unreachableError, usageError } from '../exit-codes.ts'
import { decodeText, type Io, print, readAll, readInput } from '../io.ts'
import { clean } from '../output.ts'
import { type Flag, type Given, isOn, json_flag, oneOf, text, type Verb } from '../verb.ts'

const secret_flag: Flag = {
  name: 'secret-file',
  value: 'FILE',
  says: 'the file that holds the secret',
}

const secret_notes = [
  'The secret is read from --secret-file, else from CONVEYOR_SECRET, else from standard input',
  'where FILE names the body.',
]

const flags: readonly Flag[] = [
  { name: 'url', value: 'URL', says: 'where the server is, such as http://127.0.0.1:8080' },
  { name: 'user', value: 'ID', says: 'the user who signs' },
  secret_flag,
  { name: 'sign', value: 'HOW', says: 'path (default) or hmac: in the path or in headers' },
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
      '4 where the signature is wrong, or of a kind (--sign) that the user may not use.',
    ],
    async run(given, io) {
      const { url, headers, body } = await signedBody(given, io)
      const { status, answer } = await post(url, headers, body)
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
      const { url, headers, file } = await signedBody(given, io)
      const lines_of_head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
      const options = lines_of_head.map((line) => ` -H ${quoted(line)}`).join('')
      const curl = `curl -sS${options} --data-binary ${quoted(`@${file}`)} ${quoted(url)}`
      const json = { url, ...(options === '' ? {} : { headers }), curl }
      const lines = isOn(given, 'json') ? JSON.stringify(json) : `${url}\n${clean(curl)}`
      await print(io.stdout, `${lines}\n`)
      return exits.done
    },
  },
]

interface SignedBody extends Pick<Signed, 'headers'> {
  readonly url: string
  readonly body: Buffer
  readonly file: string
}

async function signedBody(given: Given, io: Io): Promise<SignedBody> {
  const [file = '-'] = given.words
  const base = serverBase(text(given, 'url') ?? '')
  if (base === undefined) {
    throw usageError('--url takes the address of the server, such as http://127.0.0.1:8080')
  }
  const user = text(given, 'user')
  if (user === undefined || !/^[1-9][0-9]{0,15}$/.test(user)) {
    throw usageError('--user takes the number of the user who signs')
  }
  const sign = oneOf('--sign', text(given, 'sign'), ['path', 'hmac']) ?? 'path'
  const secret = await readSecret(given, io, file !== '-')
  const body = await readInput(file, io)
  const { path, headers } = signed(1, { user, secret, sign }, io.clock.now_ms(), body)
  return { url: base + path, headers, body, file }
}

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

/** Quoted for a shell where needed. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** Throws a usage fault where there is none. `stdin_is_free`: the body is not read from it. */
async function readSecret(given: Given, io: Io, stdin_is_free: boolean): Promise<string> {
  const file = text(given, 'secret-file')
  const { CONVEYOR_SECRET: from_env } = given.env
  if (file === undefined && from_env !== undefined && from_env !== '') return from_env
  if (file === undefined && !stdin_is_free) {
    throw usageError('no secret: set CONVEYOR_SECRET or name a --secret-file')
  }
  const source = file ?? '-'
  const secret = decodeText(await readInput(source, io), 'the secret').trim()
  if (secret === '')
    throw usageError(`the secret of ${source === '-' ? 'standard input' : source} is empty`)
  return secret
}
