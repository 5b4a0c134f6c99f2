/**
 * Hostile requests with the answer that each must get: framing that proxies read in two ways, JSON
 * that parsers read in two ways, signatures that are nearly right, URLs that lead inwards. JSON and
 * signatures are tried in both ways of signing.
 */
import { hmacOf, signatureOf } from '../../../src/codec/signature.ts'
import { connectRaw } from '../http-raw.ts'
import { codeOf, openHttp, type Signing, type TestHttp } from '../http-server.ts'
import type { HostileClass, HostileRow, HostileRunner } from './row.ts'

/** Its bytes. The code is of the first answer; `closed` where the connection ends without one. */
type Sent = (server: TestHttp, sign: Sign) => string | Uint8Array
type Row = HostileRow<Sent>
type Sign = 'path' | 'hmac'

const op = '{"type":"create","obj":"task","conv_id":"1234","ref":"hostile","data":{"a":1}}'
/** The good request, which each hostile one is nearly. */
const body = `{"ops":[${op}]}`
const length = `Content-Length: ${body.length}`
const chunked = 'Transfer-Encoding: chunked'

/** [header lines, what follows the head, the code] of a signed POST. */
const framing: readonly (readonly [string, string, string])[] = [
  [`${length}\r\n${chunked}`, '0\r\n\r\n', 'bad_request'],
  [`${chunked}\r\n${length}`, `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`, 'bad_request'],
  [`${chunked}\r\n${chunked}`, '0\r\n\r\n', 'bad_request'],
  ['Transfer-Encoding: chunked, chunked', '0\r\n\r\n', 'bad_request'],
  ['Transfer-Encoding: identity', body, 'bad_request'],
  ['Transfer-Encoding: "chunked"', '0\r\n\r\n', 'bad_request'],
  ['Transfer-Encoding : chunked', '0\r\n\r\n', 'bad_request'],
  ['Transfer-Encoding:\x0bchunked', '0\r\n\r\n', 'bad_request'],
  ['Transfer-Encoding: chunked\x00', '0\r\n\r\n', 'bad_request'],
  ['Transfer-Encoding\r\n : chunked', '0\r\n\r\n', 'bad_request'],
  [`X: y\r\n ${chunked}`, '0\r\n\r\n', 'bad_request'],
  [`X: y\n${chunked}`, '0\r\n\r\n', 'bad_request'],
  [`X: y\r${chunked}`, '0\r\n\r\n', 'bad_request'],
  [`${length}\r\n${length}`, body, 'bad_request'],
  [`${length}\r\nContent-Length: 0`, body, 'bad_request'],
  [`Content-Length: ${body.length}, ${body.length}`, body, 'bad_request'],
  [`Content-Length: +${body.length}`, body, 'bad_request'],
  [`Content-Length: -${body.length}`, body, 'bad_request'],
  ['Content-Length: 0x5', body, 'bad_request'],
  ['Content-Length: 1e2', body, 'bad_request'],
  ['Content-Length: 5.0', body, 'bad_request'],
  ['Content-Length: ', body, 'bad_request'],
  ['Content-Length: 99999999999999999999999', body, 'bad_request'],
  ['Content-Length : 5', body, 'bad_request'],
  ['Content\x00-Length: 5', body, 'bad_request'],
  [': empty', body, 'bad_request'],
  ['no colon', body, 'bad_request'],
  ['\x00: a', body, 'bad_request'],
  ['X: a\x00b', body, 'bad_request'],
  ['X: a\x7fb', body, 'bad_request'],
  [chunked, 'zz\r\n', 'bad_request'],
  [chunked, '-1\r\n', 'bad_request'],
  [chunked, '0x5\r\nhello\r\n', 'bad_request'],
  [chunked, ' 5\r\nhello\r\n0\r\n\r\n', 'bad_request'],
  [chunked, '5\nhello\r\n0\r\n\r\n', 'bad_request'],
  [chunked, '5\r\nhelloX0\r\n\r\n', 'bad_request'],
  [chunked, '5\r\nhello\r\n0\r\nX\r\n\r\n', 'bad_request'],
  [chunked, 'fffffffffffffffff\r\n', 'bad_request'],
  [chunked, '0\r\n\r\n', 'bad_signature'],
  [chunked, '00000\r\n\r\n', 'bad_signature'],
  ['Host: y', '', 'bad_request'],
  ['Content-Encoding: gzip\r\nContent-Length: 0', '', 'unsupported_encoding'],
  ['Content-Encoding: identity, identity\r\nContent-Length: 0', '', 'unsupported_encoding'],
  ['Content-Length: 0', '', 'bad_signature'],
]

/** [the first line of a request, the code]. */
const lines: readonly (readonly [string, string])[] = [
  ['POST http://x/api/1/json HTTP/1.1', 'not_found'],
  ['POST //api/1/json HTTP/1.1', 'not_found'],
  ['POST /api//1/json HTTP/1.1', 'not_found'],
  ['POST /api/1/json// HTTP/1.1', 'not_found'],
  ['POST /api/1/./json HTTP/1.1', 'not_found'],
  ['POST /x/../api/1/json HTTP/1.1', 'not_found'],
  ['POST /%61pi/1/json HTTP/1.1', 'not_found'],
  ['POST /api/1/json%2f HTTP/1.1', 'not_found'],
  ['POST /api/1/json%00 HTTP/1.1', 'not_found'],
  ['POST /API/1/json HTTP/1.1', 'not_found'],
  ['POST /api/1/json; HTTP/1.1', 'not_found'],
  ['POST /api/\u0661/json HTTP/1.1', 'bad_request'],
  ['POST * HTTP/1.1', 'not_found'],
  ['POST api/1/json HTTP/1.1', 'bad_request'],
  ['POST /api/1/json', 'bad_request'],
  // RFC 9112, 3: words of the line may stand further apart.
  ['POST  /api/1/json HTTP/1.1', 'bad_signature'],
  ['POST\t/api/1/json HTTP/1.1', 'bad_request'],
  ['POST /api/1/json HTTP/1.2', 'bad_request'],
  ['POST /api/1/json HTTP/3.0', 'bad_request'],
  ['POST /api/1/json http/1.1', 'bad_request'],
  ['post /api/1/json HTTP/1.1', 'bad_request'],
  ['PO\x00ST /api/1/json HTTP/1.1', 'bad_request'],
  ['TRACE /api/1/json HTTP/1.1', 'method_not_allowed'],
  ['OPTIONS /api/1/json HTTP/1.1', 'method_not_allowed'],
  ['DELETE /api/2/json HTTP/1.1', 'method_not_allowed'],
]

const data = (text: string): string => op.replace(/"data":.*\}$/, `"data":${text}}`)
const ops = (text: string): string => `{"ops":[${text}]}`
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`

/** [what it is, the body, the code]. */
const bodies: readonly (readonly [string, string | Buffer, string])[] = [
  ['nothing', '', 'format_error'],
  ['white space', ' \n', 'format_error'],
  ['a byte order mark', `\ufeff${body}`, 'format_error'],
  ['UTF-16, little end first', Buffer.from(`\ufeff${body}`, 'utf16le'), 'format_error'],
  ['UTF-16, big end first', Buffer.from(`\ufeff${body}`, 'utf16le').swap16(), 'format_error'],
  ['UTF-16 without a mark', Buffer.from(body, 'utf16le'), 'format_error'],
  ['UTF-7', '+AHsAIgBvAHAAcwAiADoAWwBdAH0-', 'format_error'],
  ['a surrogate in UTF-8', Buffer.from('7b226f7073223a5b22eda080225d7d', 'hex'), 'format_error'],
  ['an overlong slash', Buffer.from('7b226f7073223a5b22c0af225d7d', 'hex'), 'format_error'],
  ['a character over U+10FFFF', Buffer.from('7b2261223a22f4908080227d', 'hex'), 'format_error'],
  ['half a character', Buffer.from('7b226f7073223a5b22e282225d7d', 'hex'), 'format_error'],
  ['a NUL behind', `${body}\0`, 'format_error'],
  ['a NUL in white space', `{\0"ops":[${op}]}`, 'format_error'],
  ['a second value', `${body}{}`, 'format_error'],
  ['a comment', `{/**/"ops":[${op}]}`, 'format_error'],
  ['a line comment', `${body}//`, 'format_error'],
  ['a comma too many', `{"ops":[${op},]}`, 'format_error'],
  ['a comma too many in the object', `{"ops":[${op}],}`, 'format_error'],
  ['no quotes', `{ops:[${op}]}`, 'format_error'],
  ['other quotes', `{'ops':[${op}]}`, 'format_error'],
  ['an array', `[${op}]`, 'format_error'],
  ['a text', '"ops"', 'format_error'],
  ['null', 'null', 'format_error'],
  ['no ops', '{}', 'format_error'],
  ['ops null', '{"ops":null}', 'format_error'],
  ['ops a number', '{"ops":1}', 'format_error'],
  ['ops a text', '{"ops":"[]"}', 'format_error'],
  ['ops empty', '{"ops":[]}', 'format_error'],
  ['ops empty behind others', `{"ops":[${op}],"ops":[]}`, 'format_error'],
  ['ops twice, the last counts', `{"ops":[],"ops":[${op}]}`, 'ok'],
  ['ops spelt with an escape', `{"\\u006fps":[${op}]}`, 'ok'],
  ['ops in capitals', `{"OPS":[${op}]}`, 'format_error'],
  ['65 levels', `{"ops":${deep(64)}}`, 'format_error'],
  ['a million levels', `{"ops":${'['.repeat(150_000)}`, 'format_error'],
  ['levels in what is ignored', `{"x":${deep(64)},"ops":[${op}]}`, 'format_error'],
  ['too many values', `{"x":[${'1,'.repeat(99_999)}1],"ops":[${op}]}`, 'format_error'],
  ['a zero in front', ops(data('{"a":01}')), 'format_error'],
  ['a plus', ops(data('{"a":+1}')), 'format_error'],
  ['a point in front', ops(data('{"a":.5}')), 'format_error'],
  ['a point behind', ops(data('{"a":5.}')), 'format_error'],
  ['an exponent without digits', ops(data('{"a":1e}')), 'format_error'],
  ['hex', ops(data('{"a":0x1}')), 'format_error'],
  ['NaN', ops(data('{"a":NaN}')), 'format_error'],
  ['Infinity', ops(data('{"a":-Infinity}')), 'format_error'],
  ['undefined', ops(data('{"a":undefined}')), 'format_error'],
  ['True', ops(data('{"a":True}')), 'format_error'],
  ['a lone surrogate, escaped', ops(data('{"a":"\\ud800"}')), 'format_error'],
  ['a lone surrogate as a name', ops(data('{"\\udc00":1}')), 'format_error'],
  ['surrogates the wrong way round', ops(data('{"a":"\\udc00\\ud800"}')), 'format_error'],
  ['a line feed in a text', ops(data('{"a":"\n"}')), 'format_error'],
  ['an escape that is none', ops(data('{"a":"\\x41"}')), 'format_error'],
  ['half an escape', ops(data('{"a":"\\u00"}')), 'format_error'],
  ['a text without an end', ops(data('{"a":"x}')), 'format_error'],
  ['an op that is null', ops('null'), 'error'],
  ['an op that is an array', ops('[]'), 'error'],
  ['an op without members', ops('{}'), 'error'],
  ['data null', ops(data('null')), 'error'],
  ['data an array', ops(data('[1]')), 'error'],
  ['data a text', ops(data('"{}"')), 'error'],
  ['a type twice, the last counts', ops(op.replace('{', '{"type":"show",')), 'ok'],
  ['a process twice, the last counts', ops(op.replace(/\}$/, ',"conv_id":"9"}')), 'access_denied'],
  ['a process as a fraction', ops(op.replace('"1234"', '1234.0')), 'error'],
  ['a process as an exponent', ops(op.replace('"1234"', '1234e0')), 'error'],
  ['a process with a NUL', ops(op.replace('"1234"', '"1234\\u0000"')), 'error'],
  ['a process of no data', ops(op.replace('"1234"', '"__proto__"')), 'access_denied'],
  ['a ref of 256 characters', ops(op.replace('"hostile"', `"${'x'.repeat(256)}"`)), 'error'],
  ['a ref that is empty', ops(op.replace('"hostile"', '""')), 'error'],
  [
    'names of every object',
    ops(data('{"__proto__":{"x":1},"constructor":{"prototype":{}}}')),
    'not_unical_ref',
  ],
]

const now = (server: TestHttp): number => Math.floor(server.engine.clock.now_ms() / 1000)

/** A POST whose signature is of other things than it says. */
const signedBy =
  (how: (server: TestHttp) => Signing): Sent =>
  (server, sign) =>
    server.post(body, { ...how(server), sign })

/** A good POST that is changed behind its signature. */
const changed =
  (from: string | RegExp, to: string | ((server: TestHttp, sign: Sign) => string)): Sent =>
  (server, sign) => {
    const text = typeof to === 'string' ? to : to(server, sign)
    return Buffer.from(server.post(body, { sign })).toString('latin1').replace(from, text)
  }

/** With the signature, in hexadecimal digits, made another one. */
const resigned = (make: (signature: string) => string): Sent =>
  changed(/[0-9a-f]{40,64}/, (server, sign) => make(signatureIn(server, sign)))

const other = (digit: string): string => (digit === '0' ? '1' : '0')

const signatures: readonly Row[] = [
  ['the secret of nobody', 'bad_signature', signedBy(() => ({ secret: 'x'.repeat(43) }))],
  ['no secret', 'bad_signature', signedBy(() => ({ secret: '' }))],
  [
    'the secret in other case',
    'bad_signature',
    signedBy(({ secret }) => ({ secret: secret.toUpperCase() })),
  ],
  [
    'the secret with a line feed',
    'bad_signature',
    signedBy(({ secret }) => ({ secret: `${secret}\n` })),
  ],
  [
    'the secret decoded',
    'bad_signature',
    signedBy(({ secret }) => ({ secret: Buffer.from(secret, 'base64url').toString('latin1') })),
  ],
  ['another user', 'bad_signature', signedBy(() => ({ user: '13001' }))],
  ['the largest user', 'bad_signature', signedBy(() => ({ user: '9'.repeat(16) }))],
  [
    'an hour ago',
    'stale_timestamp',
    signedBy((server) => ({ timestamp: String(now(server) - 3_600) })),
  ],
  [
    'in an hour',
    'stale_timestamp',
    signedBy((server) => ({ timestamp: String(now(server) + 3_600) })),
  ],
  ['1970', 'stale_timestamp', signedBy(() => ({ timestamp: '1' }))],
  [
    'the last second of ten digits',
    'stale_timestamp',
    signedBy(() => ({ timestamp: '9999999999.999999999' })),
  ],
  ['a fraction as signed', 'ok', signedBy((server) => ({ timestamp: `${now(server)}.000000001` }))],
  [
    'an hour ago, with a wrong secret',
    'bad_signature',
    signedBy((server) => ({ secret: 'x', timestamp: String(now(server) - 3_600) })),
  ],
  ['a body with another last byte', 'bad_signature', changed(/\}$/, ']')],
  ['a body with another first byte', 'bad_signature', changed('{"ops"', '["ops"')],
  ['a body in other case', 'bad_signature', changed('"hostile"', '"Hostile"')],
  ['the other version with the same signature', 'ok', changed('/api/1/', '/api/2/')],
  ['a query, which is not signed', 'ok', changed(' HTTP/1.1', '?user=1 HTTP/1.1')],
  ['hex in capitals', 'ok', resigned((text) => text.toUpperCase())],
  [
    'hex in both cases',
    'ok',
    resigned((text) => text.replace(/[a-f]/, (hex) => hex.toUpperCase())),
  ],
  ['hex backwards', 'bad_signature', resigned((text) => [...text].reverse().join(''))],
  ['nothing but zeros', 'bad_signature', resigned((text) => '0'.repeat(text.length))],
  ['the first digit wrong', 'bad_signature', resigned((text) => text.replace(/^./, other))],
  ['the last digit wrong', 'bad_signature', resigned((text) => text.replace(/.$/, other))],
]

function signatureIn(server: TestHttp, sign: Sign): string {
  const timestamp = String(now(server))
  return (sign === 'path' ? signatureOf : hmacOf)(timestamp, server.secret, body)
}

/** A POST with these lines in its head, signed, and the bytes behind the head. */
export function postWith(server: TestHttp, sign: Sign, head: string, rest = ''): string {
  const signed = sign === 'path' ? [] : server.signLines(body)
  const lines = [`POST ${server.path(body, { sign })} HTTP/1.1`, 'Host: x', ...signed, head]
  return `${lines.join('\r\n')}\r\n\r\n${rest}`
}

/** Rows in both ways of signing. */
const inBoth = (rows: readonly Row[]): readonly Row[] =>
  (['path', 'hmac'] as const).flatMap((sign) =>
    rows.map(
      ([says, code, sent]): Row => [`${sign}: ${says}`, code, (server) => sent(server, sign)],
    ),
  )

const heads: readonly Row[] = [
  ...lines.map(
    ([line, code]): Row => [
      JSON.stringify(line),
      code,
      () => `${line}\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
    ],
  ),
  ...inBoth(
    framing.map(([head, rest, code]) => [
      JSON.stringify(`${head} ${rest.slice(0, 40)}`),
      code,
      (server, sign) => postWith(server, sign, head, rest),
    ]),
  ),
]

export const hostile_http: readonly HostileClass<Sent>[] = [
  { name: 'HTTP', rows: heads, open },
  {
    name: 'JSON',
    rows: inBoth(
      bodies.map(([says, text, code]) => [
        says,
        code,
        (server, sign) => server.post(text, { sign }),
      ]),
    ),
    open,
  },
  { name: 'signature', rows: inBoth(signatures), open },
]

async function open(): Promise<HostileRunner<Sent>> {
  const bugs: unknown[] = []
  const server = await openHttp({ onBug: (bug) => bugs.push(bug) })
  // Its own is there before, so that hostile ones with its ref make no other.
  await server.send(body)
  return {
    bugs,
    async answerTo(sent) {
      const client = await connectRaw(server.port)
      client.send(sent(server, 'path'))
      const code = await client.answer().then(codeOf, () => 'closed')
      client.socket.destroy()
      return code
    },
    honest: async () => codeOf(await server.send(body)),
    close: () => server.close(),
  }
}
