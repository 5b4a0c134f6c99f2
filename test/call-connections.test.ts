/** The connections of calls: proxies, certificates of both sides, reuse and closing. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { issueClient, issueServer, newAuthority } from '../src/certs/issue.ts'
import { systemChance } from '../src/core/clock.ts'
import {
  call,
  call_key,
  callTo,
  executorOf,
  failureOf,
  requestOf,
} from './support/call-executor.ts'
import { answerJson, callServer } from './support/call-server.ts'

test('proxies of the environment are ignored', async () => {
  const proxy = await callServer(answerJson('"proxy"'))
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'NODE_USE_ENV_PROXY']
  for (const name of names) process.env[name] = name.startsWith('NODE') ? '1' : proxy.url
  try {
    const { outcome } = await callTo(answerJson('"server"'))
    assert.equal(outcome.outcome === 'done' && outcome.text, '"server"')
    assert.equal(proxy.asked.length, 0)
  } finally {
    for (const name of names) delete process.env[name]
    await proxy.close()
  }
})

const term = { now_ms: Date.now(), days: 30, chance: systemChance }

test('a client certificate is presented, on connections of its own', async () => {
  const authority = await newAuthority(term)
  const { key: server_key, certificate: cert } = await issueServer(authority, ['127.0.0.1'], term)
  const clients = await Promise.all(
    ['one', 'two'].map((name) => issueClient(authority, name, term)),
  )
  const names: unknown[] = []
  const sockets = new Set<unknown>()
  await using server = await callServer(
    (_asked, request, response) => {
      names.push((request.socket as TLSSocket).getPeerCertificate().subject?.CN)
      sockets.add(request.socket)
      response.end('{}')
    },
    { secure: { key: server_key, cert, ca: authority.certificate, requestCert: true } },
  )
  const executor = executorOf({ allow_hosts: [server.host], ca: authority.certificate })
  const signal = new AbortController().signal
  const pems = clients.map(({ key: private_key, certificate }) => private_key + certificate)
  const rows: [cert_pem: string | undefined, expected: string][] = [
    [pems[0], 'done'],
    [undefined, 'bad failed_connect'],
    [pems[1], 'done'],
    [pems[0], 'done'],
    [undefined, 'bad failed_connect'],
    [clients[0]?.certificate, 'hardware api_bind_error'],
    [`${clients[0]?.key}${clients[1]?.certificate}`, 'hardware api_bind_error'],
  ]
  for (const [cert_pem, expected] of rows) {
    const outcome = await executor.run(requestOf(server.url, { cert_pem }), {
      key: call_key,
      signal,
    })
    assert.match(failureOf(outcome), new RegExp(expected), JSON.stringify(outcome))
    assert.ok(!JSON.stringify(outcome).includes('PRIVATE'))
  }
  assert.deepEqual(names, ['one', 'two', 'one'])
  assert.equal(sockets.size, 2)
  await executor.close()
})

test('certificates are verified, whatever the environment says', async () => {
  const authority = await newAuthority(term)
  const foreign = await newAuthority(term)
  const good = await issueServer(authority, ['name.example', '127.0.0.1'], term)
  const other = await issueServer(authority, ['other.example'], term)
  const rows = [
    ['of an authority that is known', good, authority, 'name.example', 'done'],
    ['for the address itself', good, authority, '127.0.0.1', 'done'],
    ['of another name', other, authority, 'name.example', 'bad the certificate is not accepted'],
    [
      'of an unknown authority',
      good,
      foreign,
      'name.example',
      'bad the certificate is not accepted',
    ],
    [
      'of an authority the system does not know',
      good,
      undefined,
      'name.example',
      'bad the certificate is not accepted',
    ],
  ] as const
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  try {
    for (const [what, { key: private_key, certificate: cert }, ca, name, expected] of rows) {
      const server = await callServer(answerJson(), { secure: { key: private_key, cert } })
      const outcome = await call(requestOf(`https://${name}:${server.port}/`), {
        ...(ca && { ca: ca.certificate }),
        lookup: async () => ['127.0.0.1'],
        allow_hosts: [`${name}:${server.port}`],
      })
      await server.close()
      assert.equal(failureOf(outcome), expected, what)
      assert.equal(server.asked.length, expected === 'done' ? 1 : 0, what)
    }
  } finally {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
  }
})

test('connections are reused, and closed with the executor', async () => {
  const sockets = new Set<unknown>()
  await using server = await callServer((_asked, request, response) => {
    sockets.add(request.socket)
    response.end('{}')
  })
  const executor = executorOf({ allow_hosts: [server.host] })
  const signal = new AbortController().signal
  for (let n = 0; n < 5; n++) {
    assert.equal(
      failureOf(await executor.run(requestOf(server.url), { key: call_key, signal })),
      'done',
    )
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(sockets.size, 1)
  await executor.close()
  const [socket] = sockets as Set<Socket>
  if (!socket?.destroyed) await new Promise((resolve) => socket?.once('close', resolve))
})

test('an idle connection that the server closed is no failure of a GET', async () => {
  await using server = await callServer((_asked, request, response) => {
    response.end('{}')
    // Closes without announcing it in the response.
    response.on('finish', () => setImmediate(() => request.socket.resetAndDestroy()))
  })
  const executor = executorOf({ allow_hosts: [server.host] })
  const signal = new AbortController().signal
  const get = requestOf(server.url, { method: 'GET', body: undefined })
  for (let n = 0; n < 20; n++) {
    assert.equal(failureOf(await executor.run(get, { key: call_key, signal })), 'done', `${n}`)
  }
  await executor.close()
})

test('what a server has seen on a kept connection is not sent again', async () => {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    let left = 1
    await using server = await callServer((_asked, request, response) => {
      if (left-- > 0) response.end('{}')
      else request.socket.resetAndDestroy()
    })
    const executor = executorOf({ allow_hosts: [server.host] })
    const signal = new AbortController().signal
    const request = requestOf(server.url, { method })
    assert.equal(failureOf(await executor.run(request, { key: call_key, signal })), 'done')
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(
      failureOf(await executor.run(request, { key: call_key, signal })),
      'bad failed_connect',
    )
    assert.equal(server.asked.length, 2, method)
    await executor.close()
  }
})

test('closing aborts running calls', async () => {
  await using server = await callServer(() => {})
  const executor = executorOf({ allow_hosts: [server.host] })
  const running = executor.run(requestOf(server.url), {
    key: call_key,
    signal: new AbortController().signal,
  })
  while (server.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
  await executor.close()
  assert.equal(failureOf(await running), 'hardware api_fatal_error')
})
