/** Where a call goes: the addresses that it may reach, and the redirects that it follows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  call,
  call_key,
  callTo,
  executorOf,
  failureOf,
  requestOf,
} from './support/call-executor.ts'
import { answerJson, callServer } from './support/call-server.ts'
import { pick } from './support/pick.ts'

test('URLs of our own are reached, and no others of their host', async () => {
  await using server = await callServer(answerJson())
  const own_urls = new Set<string>()
  const executor = executorOf({ own_urls })
  const signal = new AbortController().signal
  const run = async (path: string) =>
    failureOf(await executor.run(requestOf(`${server.url}${path}`), { key: call_key, signal }))
  assert.equal(await run('/own/x'), 'bad 127.0.0.1')
  own_urls.add(`${server.url}/own/`)
  assert.equal(await run('/own/x?y=1'), 'done')
  const others = ['/', '/own', '/ownx', '/own/../x', '/own/%2e%2e/x', '/x/own/', '//own/']
  const climbing = ['/own/..%2fx', '/own/a/%2E%2e%2Fx', '/own/a%2f..%5cx']
  for (const path of [...others, ...climbing]) {
    assert.equal(await run(path), 'bad 127.0.0.1', path)
  }
  assert.deepEqual(pick(server.asked, 'path'), ['/own/x?y=1'])
  await executor.close()
})

test('an attempt looks the address up once and connects to it', async () => {
  const server = await callServer(answerJson())
  const hosts: string[] = []
  const lookup = async (hostname: string) => {
    hosts.push(hostname)
    return hosts.length === 1 ? ['127.0.0.1'] : ['10.0.0.1']
  }
  const url = `http://name.example:${server.port}/`
  const outcome = await call(requestOf(url), {
    lookup,
    allow_hosts: [`name.example:${server.port}`],
  })
  await server.close()
  assert.equal(failureOf(outcome), 'done')
  assert.deepEqual(hosts, ['name.example'])
  assert.equal(server.asked[0]?.headers.host, `name.example:${server.port}`)
})

test('a name without an address may have one later', async () => {
  for (const lookup of [
    async () => [],
    async () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })),
  ]) {
    const outcome = await call(requestOf('http://none.example/'), { lookup })
    assert.equal(failureOf(outcome), 'bad failed_connect')
  }
})

const redirects: [status: number, method: string, then: string, keeps_body: boolean][] = [
  [301, 'POST', 'GET', false],
  [302, 'POST', 'GET', false],
  [303, 'PUT', 'GET', false],
  [307, 'POST', 'POST', true],
  [308, 'PUT', 'PUT', true],
  [302, 'GET', 'GET', false],
  [302, 'HEAD', 'HEAD', false],
]

const headers = [
  ['authorization', 'Bearer s3cret'],
  ['content-type', 'application/json'],
] as const

for (const [code, method, then, keeps_body] of redirects) {
  test(`${code} after ${method} on the same origin is followed by ${then}`, async () => {
    const body = method === 'GET' || method === 'HEAD' ? undefined : '{"a":1}'
    const { outcome, server } = await callTo(
      (asked, _request, response) => {
        if (asked.path === '/y') response.end('{}')
        else response.writeHead(code, { location: '/y' }).end()
      },
      { method, body, headers },
    )
    assert.equal(failureOf(outcome), 'done')
    const [, second] = server.asked
    assert.equal(second?.method, then)
    assert.equal(second?.path, '/y')
    assert.equal(second?.body, keeps_body ? '{"a":1}' : '')
    assert.equal(second?.headers.authorization, 'Bearer s3cret')
    assert.equal(second?.headers['idempotency-key'], call_key)
    if (body !== undefined) {
      assert.equal(second?.headers['content-type'], keeps_body ? 'application/json' : undefined)
    }
  })

  test(`${code} after ${method} to another origin drops headers and body`, async () => {
    const other = await callServer(answerJson('"other"'))
    const first = await callServer((_asked, _request, response) =>
      response.writeHead(code, { location: `http://u:p@${other.host}/z` }).end(),
    )
    const body = method === 'GET' || method === 'HEAD' ? undefined : '{"a":1}'
    const outcome = await call(requestOf(first.url, { method, body, headers }), {
      allow_hosts: [first.host, other.host],
    })
    await Promise.all([first.close(), other.close()])
    assert.equal(failureOf(outcome), 'done')
    const [second] = other.asked
    assert.equal(second?.method, method === 'HEAD' ? 'HEAD' : 'GET')
    assert.equal(second?.body, '')
    assert.deepEqual(Object.keys(second?.headers ?? {}).sort(), [
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ])
  })
}

test('headers and body dropped at another origin do not come back', async () => {
  let back = ''
  const other = await callServer((_asked, _request, response) =>
    response.writeHead(307, { location: back }).end(),
  )
  const first = await callServer((asked, _request, response) => {
    if (asked.path === '/back') response.end('{}')
    else response.writeHead(307, { location: other.url }).end()
  })
  back = `${first.url}/back`
  const outcome = await call(requestOf(first.url, { headers, body: '{"a":1}' }), {
    allow_hosts: [first.host, other.host],
  })
  await Promise.all([first.close(), other.close()])
  assert.equal(failureOf(outcome), 'done')
  const [, last] = first.asked
  assert.deepEqual([last?.method, last?.body, last?.headers.authorization], ['GET', '', undefined])
})

test('three redirects are followed and a fourth is not', async () => {
  for (const [count, expected, requests] of [
    [3, 'done', 4],
    [4, 'bad more than 3 redirects', 4],
    [1_000, 'bad more than 3 redirects', 4],
  ] as const) {
    let left = count
    const { outcome, server } = await callTo((_asked, _request, response) => {
      if (left-- === 0) response.end('{}')
      else response.writeHead(302, { location: '/x' }).end()
    })
    assert.equal(failureOf(outcome), expected)
    assert.equal(server.asked.length, requests)
  }
})
