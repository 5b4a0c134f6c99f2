/**
 * Requests over HTTP at random: by a grammar, signed in the path or in headers, webhooks, callbacks
 * and synchronous ones, each with the faults that were put into it and the code that wire.md 1.4
 * gives the first of them; and the same with bytes changed at random, of which less can be said.
 */
import { hmacOf, signatureOf } from '../../src/codec/signature.ts'
import { type Dice, type ExpectedResult, noTasks, opAtRandom } from './fuzz-ops.ts'
import { parseReference } from './json-reference.ts'

/** What a request may name. */
export interface FuzzNames {
  readonly user: string
  readonly secret: string
  /** Of process 1234. */
  readonly webhook: string
  readonly callback: string
  readonly now_s: number
}

export interface FuzzRequest {
  readonly bytes: Buffer
  readonly is_sync: boolean
  /** Undefined where bytes were changed that nothing protects. */
  readonly expected: ExpectedAnswer | undefined
  /** Nothing may be applied unless the bytes that are sent have these in them. */
  readonly signed: Buffer | undefined
}

export interface ExpectedAnswer {
  /** One of these. */
  readonly codes: readonly string[]
  readonly version: 1 | 2
  /** Of an answer that is ok. */
  readonly results?: readonly ExpectedResult[]
}

/** Whether its sender may not end before the answer: the server would take him for gone. */
export function waitsFor({ is_sync, expected }: FuzzRequest): boolean {
  return is_sync && expected !== undefined
}

/** In the order of precedence: code of the fault, and how it is put in. */
type Fault = (typeof faults)[number]
const faults = [
  'not_found',
  'bad_request',
  'method_not_allowed',
  'unsupported_encoding',
  'body_too_large',
  'bad_signature',
  'stale_timestamp',
  'format_error',
  'too_many_ops',
] as const

export const fuzz_limits = {
  body_bytes_max: 20_000,
  ops_max: 8,
  task_bytes_max: 3_000,
  nesting_max: 16,
  body_values_max: 2_000,
} as const

export function requestAtRandom(dice: Dice, names: FuzzNames, seed: number): FuzzRequest {
  const made = dice.chance(0.75)
    ? signedRequest(dice, names, seed)
    : addressRequest(dice, names, seed)
  if (!dice.chance(0.3)) return made
  const bytes = mutated(dice, made.bytes)
  return { ...made, bytes, expected: undefined }
}

function signedRequest(dice: Dice, names: FuzzNames, seed: number): FuzzRequest {
  const version = dice.pick([1, 2] as const)
  const kind = dice.pick(['path', 'hmac'] as const)
  const put = new Set<Fault>()
  if (dice.chance(0.4)) for (let n = dice.below(3); n >= 0; n--) put.add(dice.pick(faults))
  const is_sync = put.size === 0 && dice.chance(0.03)
  // A malformed part of a path is told before a method; headers are read after all that.
  if (kind === 'hmac') put.delete('bad_request')
  const tasks = noTasks()
  const count = put.has('too_many_ops')
    ? fuzz_limits.ops_max + 1 + dice.below(3)
    : 1 + dice.below(4)
  const ops = Array.from({ length: count }, () => opAtRandom(dice, `f${seed}-`, tasks))
  let text = is_sync
    ? syncBody(seed)
    : bodyOf(
        dice,
        ops.map((op) => op.text),
      )
  if (put.has('format_error')) text = broken(dice, text)
  const filler = put.has('body_too_large') ? ' '.repeat(fuzz_limits.body_bytes_max + 1) : ''
  const body = Buffer.from(text + filler)
  const seconds = put.has('stale_timestamp')
    ? names.now_s - 301 - dice.below(1e6)
    : names.now_s - dice.below(200)
  const timestamp = `${seconds}${dice.pick(['', '', '.5', '.123456789'])}`
  const signer = { timestamp, secret: names.secret, user: names.user }
  let signed_body: Buffer = body
  if (put.has('bad_signature')) signed_body = spoil(dice, signer, body)
  const sign = kind === 'path' ? signatureOf : hmacOf
  let signature = sign(signer.timestamp, signer.secret, signed_body)
  if (dice.chance(0.1)) signature = signature.toUpperCase()
  let path = `/api/${put.has('not_found') ? dice.pick(['3', '01', '%31', '']) : version}/json`
  const lines: string[] = []
  if (kind === 'path') {
    const parts = [signer.user, timestamp, signature]
    if (put.has('bad_request')) malform(dice, parts)
    path += `/${parts.join('/')}`
  } else {
    const values = [
      ['Login', signer.user],
      ['Timestamp', timestamp],
      ['Signature', signature],
    ]
    lines.push(
      ...values.map(
        ([name, value]) =>
          `${dice.pick(['X-API-', 'x-api-', 'X-Api-'])}${name}:${dice.pick([' ', '', '\t '])}${value}`,
      ),
    )
    if (dice.chance(0.1)) path += '/'
  }
  if (dice.chance(0.05)) path += dice.pick(['?', '?a=b', '?/api/1/json'])
  const method = put.has('method_not_allowed')
    ? dice.pick(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
    : 'POST'
  if (put.has('unsupported_encoding'))
    lines.push(`Content-Encoding: ${dice.pick(['gzip', 'br', 'x', 'identity, gzip'])}`)
  const bytes = rawRequest(dice, { method, path, lines, body })
  const first = faults.find((fault) => put.has(fault))
  const expected: ExpectedAnswer = {
    version,
    codes: [first ?? 'ok'],
    ...(first === undefined && !is_sync ? { results: ops.map((op) => op.expected) } : {}),
  }
  return { bytes, is_sync, expected, signed: body }
}

/** A create that ends at once, so that nothing waits. */
function syncBody(seed: number): string {
  return `{"timeout":5,"ops":[{"type":"create","obj":"task","conv_id":1239,"ref":"s${seed}","data":{"a":1}}]}`
}

function bodyOf(dice: Dice, ops: readonly string[]): string {
  const list =
    ops.length === 1 && dice.chance(0.2) ? ops[0] : `[${ops.join(dice.pick([',', ' ,\n']))}]`
  const members = [`"ops":${dice.pick(['', ' ', '\r\n'])}${list}`]
  if (dice.chance(0.1)) members.push('"company_id":null')
  if (dice.chance(0.05)) members.unshift('"ops":[]')
  return `${dice.pick(['', '\n', ' '])}{${members.join(', ')}}${dice.pick(['', '\n', '\t'])}`
}

/** Another text, which is no request: by the reference parser, or by its shape. */
function broken(dice: Dice, text: string): string {
  const shapes = [
    '',
    '[]',
    '{}',
    '{"ops":[]}',
    '{"ops":7}',
    'null',
    '"ops"',
    `{"ops":${'['.repeat(40)}${']'.repeat(40)}}`,
    `\ufeff${text}`,
  ]
  if (dice.chance(0.4)) return dice.pick(shapes)
  for (;;) {
    const at = dice.below(text.length)
    const changed =
      text.slice(0, at) +
      dice.pick(['"', '\\', '{', '}', ']', ',', '\u0001', '01', '', 'nul', '\ud800']) +
      text.slice(at + dice.below(3))
    if (!isJson(Buffer.from(changed).toString())) return changed
  }
}

function isJson(text: string): boolean {
  try {
    parseReference(text, {
      nesting_max: fuzz_limits.nesting_max,
      values_max: fuzz_limits.body_values_max,
    })
    return true
  } catch {
    return false
  }
}

/** Changes who signs, with what or what, so that the signature is wrong. */
function spoil(
  dice: Dice,
  signer: { timestamp: string; secret: string; user: string },
  body: Buffer,
): Buffer {
  const how = dice.below(4)
  if (how === 0) signer.user = dice.pick(['13001', '1', '9999999999999999'])
  else if (how === 1)
    signer.secret = dice.pick(['', 'x', signer.secret.slice(1), signer.secret.toLowerCase()])
  else if (how === 2) signer.timestamp += dice.pick(['0', ' ', '.0'])
  else {
    const other = Buffer.from(body)
    if (other.length === 0) return Buffer.from(' ')
    const at = dice.below(other.length)
    other[at] = (other[at] as number) ^ (1 << dice.below(8))
    return other
  }
  return body
}

function malform(dice: Dice, parts: string[]): void {
  const [user, timestamp, signature] = [
    ['x', '0', '', '+1', '13000%20', '1'.repeat(17)],
    ['', '-1', '1e9', '0', '1.', `${Date.now()}`],
    ['', 'z'.repeat(40), 'a'.repeat(39), 'a'.repeat(64)],
  ] as const
  const at = dice.below(3)
  parts[at] = dice.pick([user, timestamp, signature][at] as readonly string[])
}

/** Webhooks, forms and callbacks. */
function addressRequest(dice: Dice, names: FuzzNames, seed: number): FuzzRequest {
  const form = dice.pick(['json', 'nvp', 'callback'] as const)
  const is_wrong = dice.chance(0.15)
  const hash = form === 'callback' ? names.callback : names.webhook
  const used = is_wrong ? hash.replace(/./, (digit) => (digit === '0' ? '1' : '0')) : hash
  const place = form === 'callback' ? 'json/callback/1234/wait' : `${form}/public/1234`
  const path = `/api/${dice.pick([1, 2])}/${place}/${used}`
  const text =
    form === 'nvp'
      ? formAtRandom(dice)
      : dice.chance(0.7)
        ? dataAtRandom(dice, seed)
        : broken(dice, '{"a":1}')
  const body = Buffer.from(text)
  const bytes = rawRequest(dice, { method: 'POST', path, lines: [], body })
  const codes = is_wrong
    ? ['not_found']
    : form === 'nvp'
      ? ['ok', 'format_error', 'task_size_overflow_limit']
      : isObjectText(text)
        ? form === 'callback'
          ? ['not_found_task', 'error']
          : ['ok', 'task_size_overflow_limit']
        : ['format_error']
  return { bytes, is_sync: false, expected: { version: 1, codes }, signed: undefined }
}

function isObjectText(text: string): boolean {
  const received = Buffer.from(text).toString()
  return isJson(received) && /^[ \t\r\n]*\{/.test(received)
}

function dataAtRandom(dice: Dice, seed: number): string {
  const one = (level: number): string =>
    dice.pick([
      () => 'null',
      () => '-0.00e+9',
      () => `"f${seed}"`,
      () => '"\\u0000\\ud83d\\ude00\u2028"',
      () => `[${level > 4 ? '' : one(level + 1)},${dice.below(99)}]`,
      () => `{"a":${level > 4 ? 1 : one(level + 1)},"__proto__":{},"ref":"x"}`,
    ])()
  return `{"a":${one(0)},"ref":${dice.pick(['"nobody"', '7', 'null', '{}'])},"b":[${'1,'.repeat(dice.below(20))}0]}`
}

function formAtRandom(dice: Dice): string {
  const pieces = ['a', '=', '&', '+', '%41', '%', '%zz', '%ff', 'é', ';', '\0', '==', 'a=1', '&&']
  return Array.from({ length: dice.below(20) }, () => dice.pick(pieces)).join('')
}

interface Raw {
  readonly method: string
  readonly path: string
  readonly lines: readonly string[]
  readonly body: Buffer
}

function rawRequest(dice: Dice, { method, path, lines, body }: Raw): Buffer {
  const head = ['Host: x', ...lines]
  if (dice.chance(0.1))
    head.push(
      dice.pick(['Content-Type: x', 'Accept: */*', 'X: é', 'Content-Encoding: identity', 'X:']),
    )
  if (dice.chance(0.3)) head.sort(() => dice.fraction() - 0.5)
  const is_chunked = dice.chance(0.15)
  head.push(is_chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`)
  const opening = Buffer.from(`${method} ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`)
  return Buffer.concat([opening, is_chunked ? chunked(dice, body) : body])
}

function chunked(dice: Dice, body: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const end = Math.min(body.length, at + 1 + dice.below(2_000))
    const extension = dice.pick(['', '', ';a', ';a="b"'])
    const size = (end - at).toString(16)
    parts.push(
      Buffer.from(`${dice.chance(0.2) ? `00${size.toUpperCase()}` : size}${extension}\r\n`),
      body.subarray(at, end),
      Buffer.from('\r\n'),
    )
    at = end
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

const dictionary = [
  '\r\n',
  '\n',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  '"',
  '\\',
  '{',
  '[',
  '0',
  '-1',
  'chunked',
  'Transfer-Encoding: chunked\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Expect: 100-continue\r\n',
  'Connection: close\r\n',
  'Upgrade: h2c\r\n',
  'HTTP/1.0',
  'HTTP/2.0',
  'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  '\r\n\r\n',
  '%00',
  '../',
  '\xff\xfe',
  '1e999999',
  '\ud800',
  'X-API-Login: 13000\r\n',
]

/** One to four changes of bytes: flipped, cut, put in, doubled or moved. */
export function mutated(dice: Dice, bytes: Buffer): Buffer {
  let out = bytes
  for (let n = dice.below(4); n >= 0; n--) {
    const at = dice.below(out.length + 1)
    const to = Math.min(out.length, at + dice.below(dice.pick([2, 20, 2_000])))
    const [before, middle, behind] = [out.subarray(0, at), out.subarray(at, to), out.subarray(to)]
    out = Buffer.concat(
      dice.pick([
        () => [before, middle.map((byte) => byte ^ (1 << dice.below(8))), behind],
        () => [before, behind],
        () => [before, middle, middle, behind],
        () => [before, Buffer.from(dice.pick(dictionary)), middle, behind],
        () => [before, Buffer.from(dice.pick(dictionary)), behind],
        () => [before, Buffer.from([dice.below(256)]), middle, behind],
        () => [before, middle],
      ])(),
    )
  }
  return out
}
