/**
 * The operator's page at the operator's listener: where it is served and where not, over what, by
 * whose links, and what a node of a cluster says that has no engine or may only look.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { after, before, describe, test } from 'node:test'
import type { NodeStatus } from '../src/cluster/node/status.ts'
import { fault } from '../src/core/faults.ts'
import { limitsWith } from '../src/core/limits.ts'
import { type ServedEngine, servedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/open.ts'
import { type OperatorOptions, type OperatorServer, serveOperator } from '../src/operator.ts'
import { serveNodeOperator } from '../src/server/operator/server.ts'
import { makeCa, makeServer, type TestCertificate, writeFolder } from './support/grpc-certs.ts'
import { conv_id, process_definition } from './support/http-server.ts'

let engine: ServedEngine
let ca: TestCertificate
let folder: string
before(async () => {
  engine = servedEngine(await openEngine(':memory:'))
  await engine.processes.put(process_definition)
  ca = await makeCa()
  folder = writeFolder(ca, await makeServer(ca))
})
after(async () => {
  rmSync(folder, { recursive: true })
  await engine.close()
})

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
}

interface Asking {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** A GET, or a POST of what is given. */
function ask(url: string, { body, headers = {} }: Asking = {}): Promise<Answer> {
  const request = url.startsWith('https') ? httpsRequest : httpRequest
  const method = body === undefined ? 'GET' : 'POST'
  return new Promise((resolve, reject) => {
    const sent = request(
      url.replace(/localhost|0\.0\.0\.0/, '127.0.0.1'),
      {
        ...{ method, agent: false, ca: ca.cert, servername: 'localhost' },
        headers: { 'Content-Type': 'application/json', ...headers },
      },
      async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      },
    )
    sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** The cookie of who signs in, and the attributes that it has. */
async function signIn(address: string): Promise<{ cookie: string; attributes: string }> {
  const [page = '', link] = address.split('#link=')
  const { status, headers, text } = await ask(`${page}api/sign_in`, { body: { link } })
  assert.equal(status, 200, text)
  const [cookie = '', attributes = ''] = String(headers['set-cookie']).split(/; (.*)/)
  return { cookie, attributes }
}

async function withListener(
  options: OperatorOptions,
  use: (operator: OperatorServer) => Promise<void>,
): Promise<void> {
  const operator = await serveOperator(engine, { port: 0, ...options })
  await use(operator).finally(() => operator.drain())
}

describe('where it is served', () => {
  const token = 'x'.repeat(16)
  const plain = { console_plain_http: true }
  const needs =
    /^\{"error":"bad_request","description":"beyond loopback .* needs TLS \(--operator-tls\)/
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, options: () => OperatorOptions, page: RegExp | undefined])[] = [
    ['on loopback',                          () => ({}),                                   /^http:\/\/127\.0\.0\.1:\d+\/console\/$/],
    ['on loopback with a token',             () => ({ token }),                            /^http:\/\/127\.0\.0\.1:\d+\/console\/$/],
    ['beyond it with a token alone: not',    () => ({ host: '0.0.0.0', token }),           undefined],
    ['beyond it over plain HTTP, as wanted', () => ({ host: '0.0.0.0', token, ...plain }), /^http:\/\/localhost:\d+\/console\/$/],
    ['beyond it over TLS',                   () => ({ host: '0.0.0.0', tls: { folder } }), /^https:\/\/localhost:\d+\/console\/$/],
    ['over TLS on loopback',                 () => ({ tls: { folder } }),                  /^https:\/\/127\.0\.0\.1:\d+\/console\/$/],
  ]
  for (const [what, options, page] of rows) {
    test(what, () =>
      withListener(options(), async (operator) => {
        const { status, text } = await ask(`${operator.url}/console/`)
        assert.equal((await ask(`${operator.url}/healthz`)).status, 200)
        if (page === undefined) {
          assert.equal(status, 403)
          assert.match(text, needs)
          assert.equal(operator.page, undefined)
          assert.throws(() => operator.link(), { code: 'not_possible' })
          const refused = await ask(`${operator.url}/console/api/sign_in`, { body: {} })
          assert.equal(refused.status, 403)
          return
        }
        assert.equal(status, 200)
        assert.match(String(operator.page), page)
        const { cookie, attributes } = await signIn(operator.link())
        assert.equal(/; Secure$/.test(attributes), operator.url.startsWith('https'))
        const found = await ask(`${operator.url}/console/session`, { headers: { cookie } })
        assert.equal(JSON.parse(found.text).right, 'administer')
      }),
    )
  }

  test('without a token plain HTTP beyond loopback is not listened on at all', () =>
    assert.rejects(serveOperator(engine, { port: 0, host: '0.0.0.0', ...plain }), RangeError))

  test('/ leads to it', () =>
    withListener({}, async (operator) => {
      const { status, headers } = await ask(`${operator.url}/`)
      assert.deepEqual([status, headers.location], [302, '/console/'])
    }))

  test('a name that is resolved to the machine is refused there, unless it asks for a token', () =>
    withListener({}, async (operator) => {
      const headers = { host: 'evil.example' }
      assert.equal((await ask(`${operator.url}/console/`, { headers })).status, 403)
      assert.equal(
        (await ask(`${operator.url}/console/api/sign_in`, { headers, body: {} })).status,
        403,
      )
    }))

  test('no session opens the rest of the listener, and its token opens no page', () =>
    withListener({ token }, async (operator) => {
      const { cookie } = await signIn(operator.link())
      assert.equal((await ask(`${operator.url}/metrics`, { headers: { cookie } })).status, 401)
      const headers = { authorization: `Bearer ${token}` }
      assert.equal((await ask(`${operator.url}/console/session`, { headers })).status, 401)
    }))

  test('read-only lets nobody change anything', () =>
    withListener({ read_only: true }, async (operator) => {
      const { cookie } = await signIn(operator.link('administer'))
      const found = await ask(`${operator.url}/console/session`, { headers: { cookie } })
      const { right, token } = JSON.parse(found.text)
      assert.equal(right, 'look')
      const body = { conv_id }
      const headers = { cookie, 'X-Conveyor-Token': token }
      const { status } = await ask(`${operator.url}/console/api/pause`, { headers, body })
      assert.equal(status, 403)
    }))

  test('it says where the other servers are, once they listen', async () => {
    const servers: { http?: string } = {}
    await withListener({ servers }, async (operator) => {
      servers.http = 'http://127.0.0.1:8080'
      const { cookie } = await signIn(operator.link())
      const found = await ask(`${operator.url}/console/session`, { headers: { cookie } })
      assert.deepEqual(JSON.parse(found.text).servers, { http: 'http://127.0.0.1:8080' })
    })
  })

  test('a drain ends what is live, and its links are made no more', async () => {
    const operator = await serveOperator(engine, { port: 0 })
    assert.equal(engine.consoles.size, 1)
    const { cookie } = await signIn(operator.link())
    const live = ask(`${operator.url}/console/live?view=overview`, { headers: { cookie } })
    const sent = (): number => servedEngine(engine).statistics().requests.operator?.ok ?? 0
    const before = sent()
    // The view has begun once it was counted with the readers: the drain ends it in either case.
    await ask(`${operator.url}/console/session`, { headers: { cookie } })
    await operator.drain()
    assert.match((await live).text, /^retry: \d+\n\nevent: frame\n/)
    assert.ok(sent() > before)
    assert.equal(engine.consoles.size, 0)
  })
})

describe('a node of a cluster', () => {
  const status = { role: 'standby', node: 'b', owner: { node: 'a', address: 'a:8080' } }
  const node = { status: () => status as unknown as NodeStatus }
  const source = { emit: () => {}, limits: limitsWith({}) }

  test('says who the owner is, serves its page as the owner, and may be looked at as a reader', async () => {
    const operator = await serveNodeOperator(node, source, { port: 0 })
    const { url } = operator
    const says = /"error":"overloaded","description":"[^"]*\ba\b[^"]*"/
    assert.equal((await ask(`${url}/console/`)).status, 200)
    assert.match((await ask(`${url}/console/session`)).text, says)
    const body = { user: '1', secret: 'x' }
    assert.match((await ask(`${url}/console/api/sign_in`, { body })).text, says)

    operator.use(engine)
    assert.equal(engine.consoles.size, 1)
    const { cookie } = await signIn(operator.link())
    const headers = { cookie }
    assert.equal((await ask(`${url}/console/session`, { headers })).status, 200)
    const live = ask(`${url}/console/live?view=overview`, { headers })
    const { token } = JSON.parse((await ask(`${url}/console/session`, { headers })).text)
    const calling = { headers: { cookie, 'X-Conveyor-Token': token } }
    assert.equal((await ask(`${url}/console/api/tasks`, { ...calling, body: {} })).status, 200)

    operator.use(undefined)
    assert.equal(engine.consoles.size, 0)
    await live
    assert.match((await ask(`${url}/console/api/tasks`, { ...calling, body: {} })).text, says)

    const refuse = () => Promise.reject(fault('overloaded', 'this standby answers reads only'))
    operator.read({ ...engine, processes: { ...engine.processes, pause: refuse } })
    assert.equal((await ask(`${url}/console/api/tasks`, { ...calling, body: {} })).status, 200)
    const paused = await ask(`${url}/console/api/pause`, { ...calling, body: { conv_id } })
    assert.match(paused.text, /"overloaded","description":"this standby answers reads only"/)
    operator.read(undefined)
    await operator.drain()
  })
})
