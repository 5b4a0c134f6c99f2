/**
 * Certificates: that TLS accepts them for their purpose and nothing else, and that no file is ever
 * overwritten.
 */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { addClient, initFolder, missingOf, serverFiles } from '../src/certs/folder.ts'
import { fingerprintOf } from '../src/certs/issue.ts'
import { loadX509 } from '../src/certs/x509.ts'
import { systemClock } from '../src/core/clock.ts'
import { run, tempFolder } from './support/cli-run.ts'
import { fakeChance } from './support/fake-clock.ts'

const folder = tempFolder()
const set = join(folder.path, 'set')
const day_ms = 86_400_000
const now_ms = systemClock.now_ms()
const options = { now_ms, chance: fakeChance() }
const read = (name: string, from = set): string => readFileSync(join(from, name), 'utf8')
const parse = (name: string, from = set) => new X509Certificate(read(name, from))

before(async () => {
  await initFolder(set, ['conveyor.internal', '10.1.2.3'], options)
  await addClient(set, 'billing', options)
})
after(() => folder.remove())

test('a folder: its files, their modes, and the files that a server needs', async () => {
  assert.deepEqual(readdirSync(set).sort(), [
    'billing.crt',
    'billing.key',
    'ca.crt',
    'ca.key',
    'server.crt',
    'server.key',
  ])
  assert.equal(statSync(set).mode & 0o777, 0o700)
  for (const name of ['ca', 'server', 'billing']) {
    assert.equal(statSync(join(set, `${name}.key`)).mode & 0o777, 0o600, name)
  }
  assert.deepEqual(await missingOf(set, serverFiles), [])
})

/** [file, is an authority, days, usage, alternative names] */
// biome-ignore format: a table
const made: readonly (readonly [string, boolean, number, string | undefined, string | undefined])[] = [
  ['ca.crt',      true,  3_650, undefined,           undefined],
  ['server.crt',  false, 365,   '1.3.6.1.5.5.7.3.1', 'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:conveyor.internal, IP Address:10.1.2.3'],
  ['billing.crt', false, 365,   '1.3.6.1.5.5.7.3.2', 'URI:conveyor:billing'],
]
for (const [file, is_ca, days, usage, names] of made) {
  test(`${file} has the usage and names it is issued for`, () => {
    const certificate = parse(file)
    assert.equal(certificate.ca, is_ca)
    assert.equal(certificate.verify(parse('ca.crt').publicKey), true)
    assert.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1')
    const ends_ms = Date.parse(certificate.validTo)
    assert.ok(Math.abs(ends_ms - (now_ms + days * day_ms)) < 1_000, certificate.validTo)
    assert.ok(Date.parse(certificate.validFrom) < now_ms)
    assert.deepEqual(certificate.keyUsage, usage === undefined ? undefined : [usage])
    assert.equal(certificate.subjectAltName, names)
    const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase()
    assert.equal(fingerprintOf(read(file)), fingerprint)
  })
}

describe('a handshake', () => {
  let foreign = ''
  before(async () => {
    foreign = join(folder.path, 'foreign')
    await initFolder(foreign, [], options)
    await addClient(foreign, 'billing', options)
  })

  /** [what, the client's certificate, its authority, the host it calls, succeeds] */
  // biome-ignore format: a table
  const shakes: readonly (readonly [string, string | undefined, 'ours' | 'theirs', string, boolean])[] = [
    ['our client, localhost',          'billing', 'ours',   'localhost',         true],
    ['our client, a --host',           'billing', 'ours',   'conveyor.internal', true],
    ['our client, a host not named',   'billing', 'ours',   'other.internal',    false],
    ['no certificate',                 undefined, 'ours',   'localhost',         false],
    ['a client of another authority',  'billing', 'theirs', 'localhost',         false],
    ['a server as a client',           'server',  'ours',   'localhost',         false],
  ]
  for (const [what, name, whose, servername, succeeds] of shakes) {
    test(`${what}: ${succeeds ? 'succeeds' : 'fails'}`, async () => {
      const server = createServer({
        ca: read('ca.crt'),
        cert: read('server.crt'),
        key: read('server.key'),
        requestCert: true,
        rejectUnauthorized: true,
      })
      server.on('secureConnection', (socket: TLSSocket) => {
        socket.on('error', () => {})
        socket.end('hello')
      })
      server.on('tlsClientError', () => {})
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const from = whose === 'ours' ? set : foreign
      const pair =
        name === undefined
          ? {}
          : { cert: read(`${name}.crt`, from), key: read(`${name}.key`, from) }
      const { port } = server.address() as AddressInfo
      const socket = connect({ port, host: '127.0.0.1', servername, ca: read('ca.crt'), ...pair })
      const heard = await new Promise((resolve) => {
        socket.on('data', (data) => resolve(String(data)))
        socket.on('error', () => resolve('nothing'))
        socket.on('close', () => resolve('nothing'))
      })
      assert.equal(heard, succeeds ? 'hello' : 'nothing')
      socket.destroy()
      server.close()
    })
  }
})

describe('nothing is overwritten', () => {
  test('a second init is refused in one sentence and changes nothing', async () => {
    const before_it = readdirSync(set).map((name) => read(name))
    const { exit, err } = await run(['certs', 'init', set])
    assert.equal(exit, 1)
    assert.match(err, /^conveyor: .*server\.crt or server\.key already.*\n$/)
    assert.deepEqual(
      readdirSync(set).map((name) => read(name)),
      before_it,
    )
  })

  test('a second client of a name is refused, and so are the names of its own files', async () => {
    for (const name of ['billing', 'ca', 'server']) {
      const { exit, err } = await run(['certs', 'client', set, name])
      assert.equal(exit, 1)
      assert.match(err, new RegExp(`${name}\\.crt or ${name}\\.key already`))
    }
    assert.equal(parse('ca.crt').ca, true)
  })

  test('one file of a pair stays unchanged, and nothing else is created', async () => {
    const half = join(folder.path, 'half')
    await initFolder(half, [], options)
    writeFileSync(join(half, 'x.crt'), 'mine')
    await assert.rejects(addClient(half, 'x', options), { code: 'not_possible' })
    assert.equal(read('x.crt', half), 'mine')
    assert.ok(!readdirSync(half).includes('x.key'))
    rmSync(join(half, 'ca.key'))
    await assert.rejects(addClient(half, 'y', options), /no ca\.key/)
    await assert.rejects(initFolder(half, [], options), /no ca\.key/)
  })

  test('an existing folder keeps its mode', async () => {
    const open = join(folder.path, 'open')
    mkdirSync(open, { mode: 0o755 })
    await initFolder(open, [], options)
    assert.equal(statSync(open).mode & 0o777, 0o755)
  })
})

test('renewing: a pair moved away is issued again by the same authority', async () => {
  const renewed = join(folder.path, 'renewed')
  await initFolder(renewed, [], options)
  await addClient(renewed, 'a', options)
  const authority = read('ca.crt', renewed)
  for (const name of ['server.crt', 'server.key', 'a.crt', 'a.key']) {
    renameSync(join(renewed, name), join(renewed, `old-${name}`))
  }
  assert.deepEqual(await initFolder(renewed, [], { ...options, days: 30 }), [
    'server.key',
    'server.crt',
  ])
  const { names } = await addClient(renewed, 'a', options)
  assert.equal(read('ca.crt', renewed), authority)
  assert.equal(names[0], 'uri:conveyor:a')
  for (const name of ['server.crt', 'a.crt', 'old-a.crt']) {
    assert.ok(parse(name, renewed).verify(parse('ca.crt', renewed).publicKey), name)
  }
  assert.notEqual(parse('a.crt', renewed).serialNumber, parse('old-a.crt', renewed).serialNumber)
})

test('no certificate outlives its authority', async () => {
  const later = { ...options, now_ms: now_ms + 3_600 * day_ms, days: 365 }
  await addClient(set, 'late', later)
  assert.equal(parse('late.crt').validTo, parse('ca.crt').validTo)
  const too_late = { ...options, now_ms: now_ms + 3_651 * day_ms }
  await assert.rejects(addClient(set, 'later', too_late), /the authority has expired/)
})

test('malformed names and hosts are refused', async () => {
  const names = ['', '.', '..', '../x', 'a/b', '-x', '.x', 'a b', 'é', 'x'.repeat(65), 'a\nb']
  for (const name of names) {
    await assert.rejects(addClient(set, name, options), /1 to 64 letters/, JSON.stringify(name))
  }
  for (const host of ['', 'a b', 'http://x', 'x:1', '-x', 'é']) {
    const fresh = join(folder.path, 'none')
    await assert.rejects(initFolder(fresh, [host], options), /--host takes/, host)
    assert.ok(!readdirSync(folder.path).includes('none'))
  }
})

test('the verbs: files, names, and the line that binds', async () => {
  const cli = join(folder.path, 'cli')
  const init = await run(['certs', 'init', cli, '--host', 'a.example', '--host', '::2'])
  assert.deepEqual(init, { exit: 0, out: `${cli}: ca.key ca.crt server.key server.crt\n`, err: '' })
  assert.match(
    String(parse('server.crt', cli).subjectAltName),
    /DNS:a\.example, IP Address:0:.*:2$/,
  )
  const client = await run(['certs', 'client', cli, 'ops', '--days', '7'])
  const fingerprint = fingerprintOf(read('ops.crt', cli))
  const expected = [
    `${cli}: ops.key ops.crt`,
    'names  uri:conveyor:ops',
    `       sha256:${fingerprint}`,
    'To let it act as a user: conveyor user bind ID uri:conveyor:ops',
    '',
  ]
  assert.deepEqual(client, { exit: 0, out: expected.join('\n'), err: '' })
  const json = await run(['certs', 'client', cli, 'more', '--json'])
  const printed = JSON.parse(json.out) as { names: string[] }
  assert.equal(printed.names[0], 'uri:conveyor:more')
  const nowhere = await run(['certs', 'client', join(folder.path, 'nowhere'), 'x'])
  assert.equal(nowhere.exit, 1)
  assert.match(nowhere.err, /`conveyor certs init .*nowhere` makes them/)
})

test('loading the package leaves nothing in Reflect', async () => {
  await loadX509()
  for (const name of ['getMetadata', 'getOwnMetadata', 'defineMetadata']) {
    assert.ok(!(name in Reflect), name)
  }
})
