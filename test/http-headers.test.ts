/**
 * Signatures in headers (wire 1.10): what is served and what is refused, who may sign how, and a
 * client that retries as the public service's newest one does.
 */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import { fault } from '../src/core/faults.ts'
import type { Sign } from '../src/engine/api/user-api.ts'
import { exchange } from './support/http-raw.ts'
import {
  codeOf,
  conv_id,
  createBody,
  openHttp,
  type TestHttp,
  user,
} from './support/http-server.ts'
import { tasksOf } from './support/tasks-of.ts'

const body = createBody('r')

/** The bytes of a POST with these header lines. */
function request(path: string, lines: readonly string[], sent = body): string {
  const head = ['Host: x', ...lines, `Content-Length: ${Buffer.byteLength(sent)}`].join('\r\n')
  return `POST ${path} HTTP/1.1\r\n${head}\r\n\r\n${sent}`
}

describe('signed in headers', () => {
  let server: TestHttp
  before(async () => {
    server = await openHttp({ base: '/b' })
  })
  after(() => server.close())
  afterEach(async () => assert.equal(codeOf(await server.send(body, { sign: 'hmac' })), 'ok'))

  const now = (): number => Math.floor(server.engine.clock.now_ms() / 1000)
  const lines = (how = {}): [string, string, string] =>
    server.signLines(body, how) as [string, string, string]
  /** The lines with one in the place of another. */
  const swapped = (at: number, ...others: string[]): string[] => lines().toSpliced(at, 1, ...others)

  const served: [string, () => string][] = [
    ['version 1', () => request('/b/api/1/json', lines())],
    ['a closing slash and a query', () => request('/b/api/1/json/?a=1', lines())],
    ['names in lower case', () => request('/b/api/1/json', lines().map(lowerName))],
    ['hex in upper case', () => request('/b/api/1/json', swapped(2, upperValue(lines()[2])))],
    ['a fraction', () => request('/b/api/1/json', lines({ timestamp: `${now()}.25` }))],
    ['text beyond ASCII', () => signedRequest(createBody('r', { text: 'Київ' }))],
    ['a body with white space', () => signedRequest(`\n${body}\t`)],
  ]
  for (const [says, send] of served) {
    test(`served: ${says}`, async () => {
      const answer = await exchange(server.port, send())
      assert.ok(['ok', 'not_unical_ref'].includes(codeOf(answer)), answer.body)
    })
  }
  const signedRequest = (sent: string): string =>
    request('/b/api/1/json', server.signLines(sent), sent)

  test('version 2 has the results of version 2', async () => {
    const answer = await server.send(createBody('v2'), { sign: 'hmac', version: 2 })
    const [{ obj_id }] = JSON.parse(answer.body).ops
    const wanted = `{"id":"","proc":"ok","obj":"task","ref":"v2","obj_id":"${obj_id}"}`
    assert.equal(answer.body, `{"request_proc":"ok","ops":[${wanted}]}`)
  })

  const path = (): string => server.path(body)
  const sha1 = (): string => path().split('/').at(-1) as string
  const [a_user, seconds, a_mac] = [
    'X-API-Login: the number of a user, such as 13000; this',
    'X-API-Timestamp: Unix seconds; this',
    'X-API-Signature: 64 hex digits of an HMAC-SHA-256;',
  ]
  const two = /^signed in the path and in headers: it takes one of the two$/
  const sent_twice = /^X-API-\w+: .*; this header was sent twice/
  const starts = (text: string): RegExp => new RegExp(`^${text}`)
  const missing =
    /^X-API-Login: .*; this header is missing. X-API-Timestamp: .*; this header is missing. X-API-Signature: .*; this header is missing$/
  /** [what is sent, its bytes, what the caller is told, if that is about the form alone] */
  const refused: [string, () => string, RegExp?][] = [
    ['no header', () => request('/b/api/1/json', []), missing],
    ...['login', 'timestamp', 'signature'].flatMap((name, at): [string, () => string, RegExp][] => [
      [
        `no ${name}`,
        () => request('/b/api/1/json', swapped(at)),
        /^X-API-\w+: .*; this header is missing$/,
      ],
      [
        `${name} empty`,
        () => request('/b/api/1/json', swapped(at, `X-API-${name}:`)),
        /^X-API-\w+: .*; this is empty$/,
      ],
      [
        `${name} twice`,
        () => request('/b/api/1/json', [...lines(), lines()[at] as string]),
        sent_twice,
      ],
      [
        `${name} and an empty one`,
        () => request('/b/api/1/json', [...lines(), `X-API-${name}: `]),
        sent_twice,
      ],
      [
        `an empty ${name}, then one`,
        () => request('/b/api/1/json', [`X-API-${name}:`, ...lines()]),
        sent_twice,
      ],
      [`${name} beside the path`, () => request(path(), [lines()[at] as string]), two],
      [`${name} empty beside the path`, () => request(path(), [`X-API-${name}:`]), two],
    ]),
    ['all beside the path', () => request(path(), lines()), two],
    [
      'user 0',
      () => request('/b/api/1/json', lines({ user: '0' })),
      starts(`${a_user} has a leading`),
    ],
    [
      'a user with a zero in front',
      () => request('/b/api/1/json', lines({ user: `0${user}` })),
      starts(a_user),
    ],
    ['an unknown user', () => request('/b/api/1/json', lines({ user: '13001' }))],
    [
      'a user in letters',
      () => request('/b/api/1/json', lines({ user: 'constructor' })),
      /looks like a name: "cons/,
    ],
    ['a wrong secret', () => request('/b/api/1/json', lines({ secret: 'x' }))],
    [
      'milliseconds',
      () => request('/b/api/1/json', lines({ timestamp: `${now()}000` })),
      starts(`${seconds} looks like milli`),
    ],
    ['an exponent', () => request('/b/api/1/json', lines({ timestamp: '1e9' })), starts(seconds)],
    [
      'another time than signed',
      () => request('/b/api/1/json', swapped(1, `X-API-Timestamp: ${now()}.0`)),
    ],
    ['another body than signed', () => request('/b/api/1/json', lines(), `${body} `)],
    [
      'the SHA-1 of the path',
      () => request('/b/api/1/json', swapped(2, `X-API-Signature: ${sha1()}`)),
      starts(`${a_mac} 40 look like the SHA-1 of a path`),
    ],
    [
      '63 digits of hex',
      () => request('/b/api/1/json', swapped(2, lines()[2].slice(0, -1))),
      starts(a_mac),
    ],
    [
      '65 digits of hex',
      () => request('/b/api/1/json', swapped(2, `${lines()[2]}0`)),
      starts(a_mac),
    ],
    [
      'no hex',
      () => request('/b/api/1/json', swapped(2, `X-API-Signature: ${'z'.repeat(64)}`)),
      /this is not hex$/,
    ],
    [
      'base64',
      () => request('/b/api/1/json', swapped(2, `X-API-Signature: ${'A'.repeat(43)}=`)),
      /this looks like base64$/,
    ],
  ]
  for (const [says, send, told = /^unknown user or wrong signature$/] of refused) {
    test(`bad_signature: ${says}`, async () => {
      const answer = await exchange(server.port, send())
      assert.equal(answer.status, 401)
      const { description, ...members } = JSON.parse(answer.body)
      assert.deepEqual(members, { request_proc: 'bad_signature', ops: [] })
      assert.match(description, told)
    })
  }

  const lowerName = (line: string): string => line.replace(/^[^:]+/, (name) => name.toLowerCase())
  const upperValue = (line: string): string => line.replace(/:.*$/, (value) => value.toUpperCase())
})

describe('which signatures a user may use', () => {
  // [given, by SHA-1 in the path and in the query, in headers, by SHA-256, by SHA-512]
  const rows: [Sign, string, string, string, string][] = [
    ['both', 'ok', 'ok', 'bad_signature', 'bad_signature'],
    ['hmac', 'bad_signature', 'ok', 'bad_signature', 'bad_signature'],
    ['path', 'ok', 'bad_signature', 'bad_signature', 'bad_signature'],
    ['path:sha256', 'bad_signature', 'bad_signature', 'ok', 'bad_signature'],
    [['path', 'path:sha512'], 'ok', 'bad_signature', 'bad_signature', 'ok'],
    [['hmac', 'path:sha256', 'path:sha512'], 'bad_signature', 'ok', 'ok', 'ok'],
  ]
  for (const [sign, by_path, by_hmac, by_sha256, by_sha512] of rows) {
    test(`${sign}: given to a new user, and to one who is there`, async () => {
      const server = await openHttp()
      const made = await server.engine.users.add({ sign })
      await server.engine.processes.share(conv_id, made.id)
      await server.engine.users.sign(user, sign)
      const given = await server.engine.users.list()
      assert.deepEqual(
        given.map((one) => one.sign),
        [sign, sign],
      )
      for (const { id, secret } of [made, { id: user, secret: server.secret }]) {
        const who = { user: id, secret }
        assert.equal(codeOf(await server.send(body, who)), by_path)
        assert.equal(codeOf(await server.send(body, { ...who, sign: 'query' })), by_path)
        assert.equal(codeOf(await server.send(body, { ...who, sign: 'hmac' })), by_hmac)
        assert.equal(codeOf(await server.send(body, { ...who, sign: 'path:sha256' })), by_sha256)
        assert.equal(codeOf(await server.send(body, { ...who, sign: 'path:sha512' })), by_sha512)
      }
      await server.engine.users.sign(user, 'both')
      assert.equal(codeOf(await server.send(body)), 'ok')
      assert.equal(codeOf(await server.send(body, { sign: 'hmac' })), 'ok')
      await server.close()
    })
  }

  test('a new user with an id that was removed may use both', async () => {
    const server = await openHttp()
    const { users } = server.engine
    await users.add({ id: 7, sign: 'path' })
    await users.remove(7)
    const { secret } = await users.add({ id: 7 })
    assert.equal((await users.list())[0]?.sign, 'both')
    assert.equal(
      codeOf(await server.send(body, { user: '7', secret, sign: 'hmac' })),
      'access_denied',
    )
    await assert.rejects(users.sign(8, 'hmac'), { code: 'user_not_found' })
    await assert.rejects(users.sign(7, 'none' as Sign), { code: 'not_possible' })
    await assert.rejects(users.sign(7, []), { code: 'not_possible' })
    await assert.rejects(users.sign(7, ['path', 'both' as 'hmac']), { code: 'not_possible' })
    await assert.rejects(users.add({ sign: 'none' as Sign }), { code: 'not_possible' })
    await server.close()
  })
})

/**
 * A client written from wire 1.10 in the manner of the service's newest official one: signs each
 * try in headers, and tries again after a 5xx, a time-out or a lost connection.
 */
async function post(
  url: string,
  secret: string,
  ops: object[],
  patience_ms: number,
  tries_max = 5,
): Promise<unknown> {
  const sent = Buffer.from(JSON.stringify({ ops }))
  for (let tries = 1; ; tries++) {
    const timestamp = String(Math.floor(Date.now() / 1000))
    const signature = createHmac('sha256', secret).update(timestamp).update(sent).digest('hex')
    const headers = {
      'Content-Type': 'application/json',
      'X-API-Login': user,
      'X-API-Timestamp': timestamp,
      'X-API-Signature': signature,
    }
    const signal = AbortSignal.timeout(patience_ms)
    try {
      const answer = await fetch(`${url}/api/2/json`, {
        method: 'POST',
        headers,
        body: sent,
        signal,
      })
      if (answer.status < 500) return await answer.json()
    } catch (error) {
      if (tries === tries_max) throw error
    }
  }
}

describe('a client that retries', () => {
  /** [what the first tries meet, after the engine has done their work or before] */
  const rows: [string, 'done' | 'not done', () => Promise<never>][] = [
    ['500', 'done', () => Promise.reject(new Error('a bug'))],
    ['500', 'not done', () => Promise.reject(new Error('a bug'))],
    ['503', 'done', () => Promise.reject(fault('store_failed'))],
    ['503', 'not done', () => Promise.reject(fault('overloaded'))],
    ['507', 'not done', () => Promise.reject(fault('no_space'))],
    ['no answer', 'done', () => new Promise(() => {})],
    ['no answer', 'not done', () => new Promise(() => {})],
  ]
  for (const [meets, when, trouble] of rows) {
    test(`${meets}, ${when}: makes one task`, async () => {
      let tries = 0
      const over: { submit: TestHttp['engine']['submit'] } = {
        async submit(ops, caller) {
          const is_first = ++tries <= 2
          const results =
            !is_first || when === 'done' ? await server.engine.submit(ops, caller) : []
          return is_first ? trouble() : results
        },
      }
      const server = await openHttp({ limits: { drain_ms_max: 50 } }, over)
      const op = { type: 'create', obj: 'task', conv_id, ref: 'order-1', data: { amount: 10 } }
      // A try that would be answered has all the time it takes.
      const patience_ms = meets === 'no answer' ? 1_000 : 60_000
      const answer = await post(server.http.url, server.secret, [op], patience_ms)
      assert.equal(tries, 3)
      const [task, ...more] = await tasksOf(server.engine, conv_id)
      assert.deepEqual(more, [])
      const ref = 'order-1'
      const result = { id: '', proc: 'ok', obj: 'task', ref, obj_id: task?.obj_id }
      assert.deepEqual(answer, { request_proc: 'ok', ops: [result] })
      await server.close()
    })
  }
})
