/**
 * Authentication of the gRPC server: the handshakes that it refuses, the user that a certificate's
 * names act as, and changes while a connection is open.
 */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectPlain, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep_ms } from 'node:timers/promises'
import { type ConnectionOptions, connect } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import type { Emit } from '../src/core/events.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { serveGrpc } from '../src/grpc.ts'
import { openEngine } from '../src/open.ts'
import {
  makeCa,
  makeClient,
  makeServer,
  type TestCertificate,
  writeFolder,
} from './support/grpc-certs.ts'
import { openClient } from './support/grpc-client.ts'
import { type EmittedEvent, openGrpc, type TestGrpc } from './support/grpc-server.ts'
import { refused_certificates } from './support/hostile/certificates.ts'
import { process_definition } from './support/http-server.ts'
import { tasksOf } from './support/tasks-of.ts'
import { eventually } from './support/waits.ts'

const create = { conv_id: '1234' }

describe('the handshake', () => {
  let server: TestGrpc
  let other: TestCertificate
  before(async () => {
    server = await openGrpc()
    other = await makeCa('another CA')
  })
  after(async () => {
    assert.deepEqual(await tasksOf(server.engine, '1234'), [])
    await server.close()
    assert.deepEqual(server.bugs, [])
  })

  test('refuses plaintext', async () => {
    const client = openClient(server.grpc.address, credentials.createInsecure())
    assert.equal(await client.statusOf('CreateTask', create), 'UNAVAILABLE')
    client.close()
  })

  /** [name, options of tls.connect, the code that is told; undefined: kept] */
  const sockets: readonly (readonly [string, ConnectionOptions, string?])[] = [
    ['TLS 1.3', { ALPNProtocols: ['h2'] }],
    ['TLS 1.2', { ALPNProtocols: ['h2'], maxVersion: 'TLSv1.2' }],
    ['TLS 1.1', { ALPNProtocols: ['h2'], ...oldTls('TLSv1.1') }, 'old_tls'],
    ['TLS 1.0', { ALPNProtocols: ['h2'], ...oldTls('TLSv1') }, 'old_tls'],
    ['no protocol named', {}, 'no_protocol'],
    ['HTTP/1.1', { ALPNProtocols: ['http/1.1'] }, 'no_protocol'],
  ]
  for (const [name, options, code] of sockets) {
    test(`${code === undefined ? 'takes' : 'refuses'} ${name}`, async () => {
      const { cert, key } = server.client
      const port = Number(server.grpc.address.split(':')[1])
      const socket = connect({ host: '127.0.0.1', port, ca: server.ca.cert, cert, key, ...options })
      // An HTTP/2 server sends its settings first.
      const first = await new Promise<number>((resolve) => {
        socket.on('data', (bytes) => resolve(bytes.length))
        socket.on('error', () => resolve(0))
        socket.on('close', () => resolve(0))
      })
      socket.destroy()
      assert.equal(first > 0, code === undefined)
    })
  }

  test('each refused connection is told once, with its reason', async () => {
    await using fresh = await openGrpc()
    fresh.told.length = 0
    const port = Number(fresh.grpc.address.split(':')[1])
    const { cert, key } = server.client
    const trust = { port, host: '127.0.0.1', ca: server.ca.cert }
    const rows: [string, () => Promise<Socket>][] = [
      ...refused_certificates.map(([, code, make]): [string, () => Promise<Socket>] => [
        code,
        async () => connect({ ...trust, ALPNProtocols: ['h2'], ...(await make(server.ca, other)) }),
      ]),
      ...sockets.flatMap(([, options, code]): [string, () => Promise<Socket>][] =>
        code === undefined
          ? []
          : [[code, async () => connect({ ...trust, cert, key, ...options })]],
      ),
      ...[
        'GET / HTTP/1.1\r\n\r\n',
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        'CONNECT x:1 HTTP/1.1\r\n',
      ].map((bytes): [string, () => Promise<Socket>] => [
        'plain_text',
        async () => connectPlain(port, '127.0.0.1').end(bytes),
      ]),
      // Who only looks whether the port is open is told nowhere.
      ['', async () => connectPlain(port, '127.0.0.1').end()],
      ['', async () => connectPlain(port, '127.0.0.1').end('\x16\x03')],
    ]
    for (const [code, open] of rows) {
      const socket = await open()
      socket.on('error', () => {})
      await new Promise((resolve) => socket.on('close', resolve).resume())
      if (code !== '') await eventually(() => fresh.told.length > 0)
      const refusal = { event: 'certificate_refused', server: 'grpc', code, address: '127.0.0.1' }
      assert.deepEqual(fresh.told.splice(0), code === '' ? [] : [refusal])
    }
  })

  test('resumes no session, because a resumed one is not verified again', async () => {
    const { cert, key } = server.client
    const port = Number(server.grpc.address.split(':')[1])
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { port, ca: server.ca.cert, cert, key, ALPNProtocols: ['h2'], maxVersion }
      const once = async (session?: Buffer): Promise<{ reused: boolean; session?: Buffer }> => {
        const socket = connect({ ...options, ...(session ? { session } : {}) })
        let kept: Buffer | undefined = session
        socket.on('session', (given) => {
          kept = given
        })
        await new Promise((resolve) => socket.once('data', resolve))
        const reused = socket.isSessionReused()
        kept ??= socket.getSession()
        socket.destroy()
        return { reused, ...(kept ? { session: kept } : {}) }
      }
      const { session } = await once()
      assert.equal((await once(session)).reused, false, maxVersion)
    }
  })
})

describe('on an open connection', () => {
  test('changed bindings and users apply from the next call on, also in a stream', async () => {
    await using server = await openGrpc()
    const client = server.connect()
    const name = 'uri:conveyor:test'
    const { users } = server.engine
    const status = (): Promise<string> => client.statusOf('CreateTask', create)
    assert.equal(await status(), 'OK')
    const stream = client.stream()
    const answers: string[] = []
    const ended = new Promise<number>((resolve) => stream.on('status', ({ code }) => resolve(code)))
    stream.on('error', () => {})
    stream.write({ ops: [{ create }] })
    await new Promise<void>((resolve) =>
      stream.on('data', ({ proc }) => {
        answers.push(proc)
        resolve()
      }),
    )
    await users.unbind(name)
    assert.equal(await status(), 'PERMISSION_DENIED')
    stream.write({ ops: [{ create }] })
    assert.equal(await ended, 7)
    assert.deepEqual(answers, ['ok'])
    await users.bindAll(name)
    assert.equal(await status(), 'OK')
    await users.unbind(`sha256:${server.client.sha256}`)
    assert.equal(await status(), 'PERMISSION_DENIED')
    assert.equal((await tasksOf(server.engine, '1234')).length, 3)
  })

  test('a certificate that expires meanwhile is UNAUTHENTICATED', async () => {
    await using server = await openGrpc()
    // The times in a certificate are whole seconds.
    const to = new Date(Math.ceil(Date.now() / 1000 + 2) * 1000)
    const client = server.connect(await makeClient(server.ca, { to }))
    assert.equal(await client.statusOf('CreateTask', create), 'OK')
    await sleep_ms(to.getTime() - Date.now() + 10)
    assert.equal(await client.statusOf('CreateTask', create), 'UNAUTHENTICATED')
  })
})

describe('the files', () => {
  test('are reloaded as whole sets, and unusable ones are reported once', async () => {
    const [ca, next_ca] = [await makeCa(), await makeCa('next')]
    const [server, next_server] = [await makeServer(ca), await makeServer(next_ca)]
    const client = await makeClient(ca)
    const next_client = await makeClient(next_ca)
    const folder = writeFolder(ca, server)
    const engine = await openEngine(':memory:')
    await engine.processes.put(process_definition)
    const told: EmittedEvent[] = []
    const emit: Emit = (event, fields) => {
      if (event !== 'certificate_refused') told.push({ event, ...fields })
    }
    const served = { ...servedEngine(engine), emit }
    const limits = { tls_reload_ms: 10 }
    const grpc = await serveGrpc(served, { port: 0, tls: { folder }, limits })
    assert.deepEqual(told.splice(0), [
      { event: 'listening', server: 'grpc', address: grpc.address },
    ])
    /** The next event, which is the only one, after some looks at the files. */
    const next = async (event: string): Promise<EmittedEvent> => {
      await eventually(() => told.length > 0)
      await sleep_ms(50)
      const [one, ...others] = told.splice(0)
      assert.deepEqual(others, [])
      assert.deepEqual([one?.event, one?.server], [event, 'grpc'])
      return one as EmittedEvent
    }
    const connected = openClient(grpc.address, { ca, client })
    const fresh = async (keys: { ca: TestCertificate; client: TestCertificate }) => {
      const once = openClient(grpc.address, keys)
      const status = await once.statusOf('CreateTask', create)
      once.close()
      return status
    }
    assert.equal(await connected.statusOf('CreateTask', create), 'OK')

    const breaks: readonly (readonly [string, Buffer, RegExp])[] = [
      ['server.crt', next_server.cert, /key does not belong/],
      ['server.key', Buffer.from('x'), /./],
      ['ca.crt', Buffer.from(''), /holds no certificate/],
    ]
    for (const [file, bytes, message] of breaks) {
      writeFileSync(join(folder, file), bytes)
      assert.match(String((await next('certificates_unusable')).error), message)
      assert.equal(await fresh({ ca, client }), 'OK', file)
      writeFolder(ca, server, undefined, folder)
      await sleep_ms(50)
    }
    rmSync(join(folder, 'server.crt'))
    assert.match(String((await next('certificates_unusable')).error), /server\.crt/)
    assert.equal(await fresh({ ca, client }), 'OK')

    writeFolder(next_ca, next_server, undefined, folder)
    await eventually(async () => (await fresh({ ca: next_ca, client: next_client })) === 'OK')
    assert.equal(await fresh({ ca: next_ca, client }), 'UNAVAILABLE')
    assert.equal(await connected.statusOf('CreateTask', create), 'OK')
    assert.match(String((await next('certificates_reloaded')).valid_until), / GMT$/)
    connected.close()
    await grpc.drain()
    await engine.close()
    rmSync(folder, { recursive: true })
  })

  /** [what is done to a good folder, what serveGrpc rejects with] */
  const bad: readonly (readonly [string, (folder: string) => void, object | RegExp])[] = [
    ['no folder', (folder) => rmSync(folder, { recursive: true }), { code: 'ENOENT' }],
    ['no key', (folder) => rmSync(join(folder, 'server.key')), { code: 'ENOENT' }],
    ['an empty authority', (folder) => writeFileSync(join(folder, 'ca.crt'), ''), /no certificate/],
    [
      'the key of another',
      (folder) => copyFileSync(join(folder, 'client.key'), join(folder, 'server.key')),
      /does not belong/,
    ],
    [
      'a certificate that is none',
      (folder) => writeFileSync(join(folder, 'server.crt'), 'x'),
      Error,
    ],
  ]
  for (const [name, spoil, error] of bad) {
    test(`${name}: not served`, async () => {
      const good = await openGrpc()
      const folder = mkdtempSync(join(tmpdir(), 'conveyor-tls-'))
      cpSync(good.folder, folder, { recursive: true })
      spoil(folder)
      await assert.rejects(serveGrpc(good.engine, { port: 0, tls: { folder } }), error)
      await good.close()
      rmSync(folder, { recursive: true, force: true })
    })
  }

  test('may be named one by one', async () => {
    await using good = await openGrpc()
    const at = (name: string) => join(good.folder, name)
    const tls = { ca_path: at('ca.crt'), cert_path: at('server.crt'), key_path: at('server.key') }
    const server = await serveGrpc(good.engine, { port: 0, tls })
    const client = openClient(server.address, good)
    assert.equal(await client.statusOf('CreateTask', create), 'OK')
    client.close()
    await server.drain()
  })
})

function oldTls(version: 'TLSv1' | 'TLSv1.1'): ConnectionOptions {
  return { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' }
}

test('no caller holds the drain: one whose handshake ends late, one that is gone', async () => {
  await using server = await openGrpc({ limits: { drain_ms_max: 60_000 } })
  const { cert, key } = await makeClient(server.ca)
  const port = Number(server.grpc.address.split(':')[1])
  const how = { port, ca: server.ca.cert, cert, key, ALPNProtocols: ['h2'] }
  const gone = connect({ ...how, servername: 'localhost', ...{ allowHalfOpen: true } })
  await once(gone, 'secureConnect')
  gone.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1')
  gone.pause()
  const socket = connectPlain(port)
  await once(socket, 'connect')
  const client = server.connect()
  assert.equal(await client.statusOf('CreateTask', create), 'OK')
  const ended: string[] = []
  const drained = server.grpc.drain().then(() => ended.push('drain'))
  const late = connectHttp2('https://localhost', {
    createConnection: () => connect({ ...how, socket, servername: 'localhost' }),
  })
  late.on('error', () => {}).on('close', () => ended.push('late'))
  await drained
  assert.deepEqual(ended, ['late', 'drain'])
  gone.destroy()
})
