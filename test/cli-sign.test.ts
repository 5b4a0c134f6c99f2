/**
 * `sign --explain` and `sign --check`: the steps of the test vector, no secret but that of the
 * vector, and the name of each usual mistake. The wrong signatures are made here by node:crypto
 * alone; the digests of the vector were made by another program.
 */
import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemClock } from '../src/core/clock.ts'
import { type Ran, run, tempFolder } from './support/cli-run.ts'

const folder = tempFolder()
after(() => folder.remove())

const secret = 'c2VjcmV0LW9mLXRoaXMtdGVzdC0wMDE'
const env = { CONVEYOR_SECRET: secret }
const T = '1370442000'
const value = { ops: [{ ref: 'а/б', data: { n: 1 } }] }
const body = JSON.stringify(value)
const file = join(folder.path, 'body.json')
writeFileSync(file, body)

test('the test vector is explained without a secret of ours, in full', async () => {
  const { exit, out } = await run(['sign', '--explain'])
  assert.equal(exit, 0)
  for (const part of [
    '10 + 32 + 95 + 32 = 169',
    '8a747b006dfca85b0756d6685865f121895494e2',
    'f4d94a1af2c347f9632ec8ea0e84d77c53ed690232027a86b55d0bdd7463af95',
    '1370442000a-secret-that-everybody-knows-01{"ops":',
  ]) {
    assert.ok(out.includes(part), part)
  }
})

test('the steps of a body of our own lead to what sign prints, and show no secret', async () => {
  const how = ['--user', '13000', '--timestamp', T, file]
  const { exit, out, err } = await run(['sign', '--explain', ...how], { env })
  assert.equal(exit, 0, err)
  assert.ok(!out.includes(secret), out)
  assert.match(out, /1370442000\*\*\*\{"ops"/)
  for (const kind of ['path', 'hmac']) {
    const args = ['sign', '--url', 'http://127.0.0.1:8080', '--sign', kind, ...how]
    const [, curl = ''] = (await run(args, { env })).out.split('\n')
    assert.ok(out.includes(curl), curl)
  }
  const long = await run(['sign', '--explain', '--user', '1', '-'], {
    ...{ env, stdin: Buffer.concat([Buffer.alloc(100_000, 'x'), Buffer.from('\r\n')]) },
  })
  assert.ok(long.out.length < 5_000, 'a long body is shortened')
  assert.match(long.out, /ends with a line feed/)
})

const sha1 = (...parts: (string | Buffer)[]): string => digest('sha1', ...parts).toString('hex')
const mac = (key: string | Buffer, text: string | Buffer): string =>
  createHmac('sha256', key).update(text).digest('hex')

function digest(name: string, ...parts: (string | Buffer)[]): Buffer {
  return createHash(name)
    .update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
    .digest()
}

const path = (of: string | Buffer): string => sha1(T, secret, of, secret)
const python = '{"ops": [{"ref": "\\u0430/\\u0431", "data": {"n": 1}}]}'

/** [the signature that a client made, what is said of it] */
// biome-ignore format: a table
const wrong: readonly (readonly [string, RegExp])[] = [
  [sha1(`${T}123`, secret, body, secret),            /in milliseconds/],
  [mac(secret, `${T}007${body}`),                    /in milliseconds/],
  [sha1('1370442001', secret, body, secret),         /timestamp was 1 s later/],
  [path(`${body}\n`),                                /with a line feed behind it/],
  [mac(secret, `${T}${body}\n`),                     /in headers:\n.*with a line feed behind it/],
  [sha1(T, secret, body),                            /secret is missing at the end/],
  [sha1(T, body, secret),                            /no secret after/],
  [sha1(T, body),                                    /no secret in it/],
  [sha1(secret, T, body, secret),                    /another order/],
  [sha1(T, Buffer.from(secret).toString('hex'), body, Buffer.from(secret).toString('hex')), /encoded.*hex/],
  [mac(Buffer.from(secret, 'base64'), T + body),     /decoded.*base64/],
  [sha1(T, `${secret}\n`, body, `${secret}\n`),      /secret has a line feed behind it/],
  [digest('md5', T, secret, body, secret).toString('hex'),    /it is MD5/],
  [createHmac('sha1', secret).update(T + body).digest('hex'), /it is HMAC-SHA-1/],
  [mac(secret, body),                                /no timestamp was signed/],
  [digest('sha1', T, secret, body, secret).toString('base64'), /in base64/],
  [path(python),                                     /with spaces and \\u escapes/],
  [path(body.replace('/', '\\/')),                   /with \\\//],
  [path(JSON.stringify(value, null, 2)),             /indented by two/],
  [path('{"ops":[{"data":{"n":1},"ref":"а/б"}]}'),   /keys sorted/],
  [path(encodeURIComponent(body)),                   /URL-encoded/],
  [path(Buffer.from(Buffer.from(body).toString('latin1'))), /encoded twice/],
  [sha1(T, `${secret}\n`, `${body}\n`, `${secret}\n`), /secret has.*\n.*body was signed with a line feed/],
]

function check(signature: string, more: readonly string[] = ['--timestamp', T]): Promise<Ran> {
  return run(['sign', '--check', signature, ...more, file], { env })
}

for (const [signature, says] of wrong) {
  test(`a wrong signature is explained: ${says}`, async () => {
    const { exit, out, err } = await check(signature)
    assert.equal(exit, 1, err)
    assert.match(out, says)
    assert.match(out, /^wrong, as a signature in/)
    assert.ok(!out.includes(secret))
  })
}

test('a right signature is right, in either case, by its path, and says when it is old', async () => {
  const now = String(Math.floor(systemClock.now_ms() / 1_000))
  const fresh = sha1(now, secret, body, secret)
  const rows: readonly (readonly [string, readonly string[], RegExp])[] = [
    [fresh, ['--timestamp', now], /^right, as a signature in the path\n$/],
    [fresh.toUpperCase(), ['--timestamp', now], /^right, as a signature in the path\n$/],
    [`/api/1/json/13000/${now}/${fresh}`, [], /^right, as a signature in the path\n$/],
    [`http://x:1/base/api/2/json/7/${now}/${fresh}?q=1`, [], /^right/],
    [`http://x:1/api/2/json/7?conv_time=${now}&conv_signature=${fresh}`, [], /^right/],
    [
      digest('sha256', now, secret, body, secret).toString('hex'),
      ['--timestamp', now],
      /^right, as a signature in the path by sha256, which `user sign ID path:sha256` allows\n$/,
    ],
    [mac(secret, now + body), ['--timestamp', now], /^right, as a signature in headers\n$/],
    [path(body), ['--timestamp', T], /s ago: beyond the window of 300 s it is stale_timestamp/],
  ]
  for (const [given, more, says] of rows) {
    const { exit, out, err } = await check(given, more)
    assert.equal(exit, 0, err)
    assert.match(out, says)
  }
})

test('another secret leads to no usual mistake, and a timestamp of another form is named', async () => {
  const { exit, out } = await check(sha1(T, 'other', body, 'other'))
  assert.equal(exit, 1)
  assert.match(out, /no usual mistake/)
  assert.match(out, /not: the secret is missing at the end/)
  const in_ms = `${T}000`
  const ms = await check(sha1(in_ms, secret, body, secret), ['--timestamp', in_ms])
  assert.equal(ms.exit, 1)
  assert.match(ms.out, /timestamp: Unix seconds; this looks like milliseconds/)
  const json = JSON.parse((await check(path(`${body}\n`), ['--timestamp', T, '--json'])).out)
  assert.deepEqual([json.right, json.kind, json.mistakes.length], [false, 'path', 1])
  assert.equal((await check(path(body), [])).exit, 2)
})
