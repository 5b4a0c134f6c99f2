/**
 * What is wrong with the way to the database, or with what is there: each has its sentence, which
 * says what to do and never holds the password, and what can become right by itself is waited for.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { env } from 'node:process'
import { test } from 'node:test'
import { checkedCluster, initCluster } from '../src/cluster/database/schema.ts'
import { type Settings, settingsFault } from '../src/cluster/database/settings.ts'
import { databaseOf, passwordFor } from '../src/cluster/database/url.ts'
import type { Fault } from '../src/core/faults.ts'
import { openEngine } from '../src/open.ts'
import { postgresLog } from '../src/postgres.ts'
import { connectionTo, log_id, newCluster } from './support/database-cluster.ts'
import { fakeChance } from './support/fake-clock.ts'
import { tempFolder } from './support/package-folder.ts'
import { pick } from './support/pick.ts'
import { no_postgres, postgresOrSkip } from './support/postgres.ts'
import { withEvents } from './support/told-events.ts'

const secret = 'swordfish-4711'
const hidden = 'do-not-show-4712'

// Before the first test, or the run ends before it is there.
const postgres = await postgresOrSkip({
  password: secret,
  tls: true,
  settings: { listen_addresses: '127.0.0.1,::1' },
})

/** A url, and the hosts and TLS that it stands for, or the sentence that refuses it. */
const urls: [url: string, expected: string | RegExp][] = [
  ['postgres://u@db/name', 'db:5432 tls'],
  ['postgresql://u@db:1/name?sslmode=disable', 'db:1'],
  ['postgres://localhost/name', 'localhost:5432'],
  ['postgres://127.0.0.1,[::1]:6/name', '127.0.0.1:5432 [::1]:6'],
  ['postgres://u@127.0.0.1/name?sslmode=verify-full', '127.0.0.1:5432 tls'],
  ['postgres://u@a:1,b:2,10.0.0.3:3/n', 'a:1 tls b:2 tls 10.0.0.3:3 tls'],
  ['postgres://u@a/n?target_session_attrs=read-write', 'a:5432 tls'],
  ['postgres://u@%2Frun%2Fpostgresql/n', '/run/postgresql:5432'],
  [`postgres://u:${hidden}@db/n`, /must not hold a password: set PGPASSWORD/],
  [`postgres://db/n?password=${hidden}`, /must not hold a password/],
  [`postgres://db/n?${hidden}=1`, /has an unknown parameter/],
  [`mysql://${hidden}@db/n`, /: write postgres:\/\/USER@HOST:PORT\/DATABASE/],
  [`postgres://${hidden}`, /: write postgres/],
  ['postgres://db', /: write postgres/],
  ['', /: write postgres/],
  ['postgres://db:0/n', /has a host that cannot be/],
  ['postgres://db:65536/n', /has a host that cannot be/],
  ['postgres://[::1/n', /has a host that cannot be/],
  ['postgres://a,,b/n', /has a host that cannot be/],
  ['postgres://db/%zz', /a % that begins no character/],
  ['postgres://db/n?sslmode=require', /an unknown sslmode: set verify-full/],
  ['postgres://db/n?sslmode=prefer', /an unknown sslmode: set verify-full/],
  ['postgres://db/n?target_session_attrs=any', /must ask for a primary/],
  [`postgres://${Array(17).fill('db').join()}/n`, /more than 16 hosts/],
]

test('the address of the commit log', () => {
  for (const [url, expected] of urls) {
    if (typeof expected === 'string') {
      const hosts = databaseOf(url, 'node').hosts.map(({ name, has_tls }) =>
        has_tls ? `${name} tls` : name,
      )
      assert.equal(hosts.join(' '), expected, url)
      continue
    }
    assert.throws(
      () => databaseOf(url, 'node'),
      ({ code, message }: Fault) => {
        assert.equal(code, 'not_possible', url)
        assert.match(message, expected, url)
        assert.ok(!message.includes(hidden), message)
        return true
      },
    )
  }
})

/** A file of passwords, and what it has for the user `u` of the database `n` at `db:5432`. */
const files: [lines: string, expected: string | undefined][] = [
  ['db:5432:n:u:one', 'one'],
  ['# db:5432:n:u:no\n*:*:*:*:any\n', 'any'],
  ['db:5432:n:other:no\r\ndb:5432:*:u:with:colons\\\\ and \\:', 'with:colons\\ and :'],
  ['d\\b:5432:n:u:escaped', 'escaped'],
  ['db:5432:n:u:', undefined],
  ['db:5432:n:u', undefined],
  ['other:5432:n:u:no', undefined],
  ['', undefined],
]

test('the file of passwords', (t) => {
  const folder = tempFolder()
  t.after(folder.remove)
  const PGPASSFILE = join(folder.path, 'passwords')
  const login = { host: 'db', port: 5432, database: 'n', user: 'u' }
  for (const [lines, expected] of files) {
    writeFileSync(PGPASSFILE, lines, { mode: 0o600 })
    if (expected !== undefined) assert.equal(passwordFor(login, { PGPASSFILE }), expected)
    else assert.throws(() => passwordFor(login, { PGPASSFILE }), /has no line for db:5432:n/)
  }
  chmodSync(PGPASSFILE, 0o644)
  assert.throws(() => passwordFor(login, { PGPASSFILE }), /chmod 600/)
  assert.throws(() => passwordFor(login, { PGPASSFILE: `${PGPASSFILE}-not` }), /ENOENT/)
  assert.equal(passwordFor(login, { PGPASSFILE, PGPASSWORD: 'p' }), 'p')
})

const sound: Settings = {
  ...{ is_standby: false, read_only: 'off', fsync: 'on', full_page_writes: 'on' },
  ...{ synchronous_commit: 'on', synchronous_standby_names: '', followers: 0 },
}

/** What differs from sound settings, and the refusal; and whether one takes them who says so. */
const settingsRows: [Partial<Settings>, expected: RegExp | undefined, unsafe?: RegExp][] = [
  [{}, undefined],
  [{ is_standby: true }, /^overloaded .* read-only/, /^overloaded/],
  [{ read_only: 'on' }, /^overloaded .* read-only/, /^overloaded/],
  [{ synchronous_commit: 'local' }, undefined],
  [{ synchronous_commit: 'local', synchronous_standby_names: '*' }, /= local although standbys/],
  [{ synchronous_commit: 'remote_apply', synchronous_standby_names: '*' }, undefined],
  [{ followers: 1 }, /^not_possible the database at db:1 has standbys none of which is synchr/],
  [{ followers: 2, synchronous_standby_names: 'ANY 1 (a, b)' }, undefined],
]

test('settings under which a commit could be lost', () => {
  for (const [differs, expected = /^sound$/, unsafe = /^sound$/] of settingsRows) {
    for (const [is_unsafe, pattern] of [[false, expected] as const, [true, unsafe] as const]) {
      const found = settingsFault({ ...sound, ...differs }, 'db:1', is_unsafe)
      const text = found === undefined ? 'sound' : `${found.code} ${found.message}`
      assert.match(text, pattern, JSON.stringify(differs))
    }
  }
})

test('the database', { skip: no_postgres ?? false }, async (t) => {
  assert.ok(postgres !== undefined)
  const { port, ca = '', sql } = postgres
  const folder = tempFolder()
  t.after(folder.remove)
  const silent = await listen(() => {})
  const plain = await listen((socket) => void socket.once('data', () => socket.write('N')))
  t.after(() => void [silent, plain].map(({ server }) => server.close()))
  const tls = `sslmode=verify-full&sslrootcert=${ca}`
  const foreign = join(folder.path, 'foreign.pem')
  writeFileSync(foreign, 'no certificate\n')
  const says: string[] = []

  /** The outcome of a connection: `connected`, or a code and a sentence. */
  async function outcomeOf(url: string, password = secret, ms_max = 5_000): Promise<string> {
    env.PGPASSWORD = password
    const connection = connectionTo(url, ms_max)
    try {
      await connection.connect()
      return 'connected'
    } catch (error) {
      const { code, message } = error as Fault
      says.push(message, JSON.stringify(error))
      return `${code}: ${message}`
    } finally {
      await connection.close()
    }
  }

  const user = 'postgres://postgres@'
  const rows: [what: string, url: string, expected: RegExp, password?: string][] = [
    ['TLS', `${user}127.0.0.1:${port}/postgres?${tls}`, /^connected/],
    ['TLS by name', `${user}localhost:${port}/postgres?${tls}`, /^connected/],
    [
      'IPv6',
      `${user}[::1]:${port}/postgres?${tls}`,
      // Node 22 finds no IPv6 address in a certificate.
      process.version.startsWith('v22.')
        ? /^(connected|overloaded|not_possible.*ALTNAME_INVALID)/
        : /^(connected|overloaded.*EADDRNOTAVAIL)/,
    ],
    [
      'a Unix socket',
      `${user}${encodeURIComponent(dirname(postgres.folder))}:${port}/postgres`,
      /^connected/,
    ],
    [
      'hosts that are away before one that is there',
      `${user}127.0.0.1:1,127.0.0.1:${silent.port},127.0.0.1:${port}/postgres?${tls}`,
      /^connected/,
    ],
    [
      'a wrong password',
      `${user}127.0.0.1:${port}/postgres?${tls}`,
      /^not_possible: the database at 127.0.0.1:\d+ says: password .* failed .*set PGPASSWORD/,
      hidden,
    ],
    [
      'no password',
      `${user}127.0.0.1:${port}/postgres?${tls}`,
      /^not_possible: the database wants a password: set PGPASSWORD/,
      '',
    ],
    [
      'another authority',
      `${user}127.0.0.1:${port}/postgres?sslmode=verify-full`,
      /^not_possible: the database at 127.0.0.1:\d+ is not trusted \(\w+\): set sslrootcert/,
    ],
    [
      'a file that is no certificate',
      `${user}127.0.0.1:${port}/postgres?sslmode=verify-full&sslrootcert=${foreign}`,
      /^not_possible: the database at 127.0.0.1:\d+ is not trusted/,
    ],
    [
      'a file that is not there',
      `${user}127.0.0.1:${port}/postgres?sslmode=verify-full&sslrootcert=/not/there`,
      /^not_possible: .* names \/not\/there as sslrootcert, which cannot be read \(ENOENT\)/,
    ],
    [
      'TLS where there is none',
      `${user}127.0.0.1:${plain.port}/postgres?${tls}`,
      /^not_possible: .* is not trusted \(The server does not support SSL .*sslmode=disable/,
    ],
    [
      'no TLS where it is wanted',
      `${user}127.0.0.1:${port}/postgres`,
      /^not_possible: .* no pg_hba.conf entry/,
    ],
    [
      'another database',
      `${user}127.0.0.1:${port}/nowhere?${tls}`,
      /^not_possible: .* database "nowhere" does not exist \(3D000\); create it/,
    ],
    [
      'another host',
      `${user}nowhere.invalid:${port}/postgres?${tls}`,
      /^overloaded: the database at nowhere.invalid:\d+ does not answer \((ENOTFOUND|EAI_AGAIN)\)/,
    ],
    [
      'nobody',
      `${user}127.0.0.1:1/postgres`,
      /^overloaded: the database at 127.0.0.1:1 does not answer \(ECONNREFUSED\): is it running/,
    ],
    [
      'several, none of which is there',
      `${user}127.0.0.1:1,[::1]:1/postgres`,
      /^overloaded: .*127.0.0.1:1 .*; the database at \[::1\]:1 /,
    ],
  ]
  await t.test('is reached, or a sentence says why not', async () => {
    for (const [what, url, expected, password] of rows) {
      assert.match(await outcomeOf(url, password), expected, what)
    }
    const url = `${user}127.0.0.1:${silent.port}/postgres`
    assert.match(await outcomeOf(url, secret, 100), /^overloaded: .* does not answer \(timeout/)
    for (const said of says) assert.ok(!said.includes(secret) && !said.includes(hidden), said)
  })

  const settings: [settings: string, undo: string, expected: RegExp][] = [
    ['fsync = off', 'fsync', /has fsync off, .* set fsync = on/],
    ['full_page_writes = off', 'full_page_writes', /has full_page_writes off/],
    ['synchronous_commit = off', 'synchronous_commit', /synchronous_commit = off, .*would lose/],
    ['default_transaction_read_only = on', 'default_transaction_read_only', /is read-only/],
  ]
  await t.test('has settings that keep what it has committed', async () => {
    const url = `${user}127.0.0.1:${port}/postgres?${tls}`
    for (const [setting, name, expected] of settings) {
      await sql(`ALTER SYSTEM SET ${setting}`)
      await reload(name, (value) => setting.endsWith(`= ${value}`))
      assert.match(await outcomeOf(url), expected, setting)
      await sql(`ALTER SYSTEM RESET ${name}`)
      await reload(name, (value) => !setting.endsWith(`= ${value}`))
    }
    assert.equal(await outcomeOf(url), 'connected')
  })

  await t.test('holds a cluster of ours', async () => {
    const url = await postgres.createDatabase()
    const name = url.slice(url.lastIndexOf('/') + 1)
    const connection = connectionTo(`${url}?${tls}`)
    const given = { id: fakeChance().bytes(16), log_id, partition: 0 }
    const init = (role?: string) => initCluster(connection, { ...given, role })
    const check = () => checkedCluster(connection)
    const run = (text: string) => sql(text, undefined, name)

    await assert.rejects(check(), /holds no cluster: run `npx conveyor cluster init`/)
    await run('CREATE SCHEMA conveyor; CREATE TABLE conveyor.belt (a int)')
    await assert.rejects(check(), /the schema conveyor in the database is of another program/)
    await assert.rejects(init(), /the schema conveyor in the database is of another program/)
    await run('DROP TABLE conveyor.belt')
    await assert.rejects(init('nobody'), /the database has no role nobody: run CREATE ROLE/)
    assert.deepEqual(await run(`SELECT 1 FROM pg_tables WHERE schemaname = 'conveyor'`), [])
    const other = connectionTo(`${url}?${tls}`)
    const made = await Promise.all([init(), initCluster(other, given)])
    assert.deepEqual(pick(made, 'was_there'), [false, true])
    await other.close()
    assert.deepEqual((await check()).id, given.id)
    await run('UPDATE conveyor.cluster SET schema_version = 99')
    await assert.rejects(check(), { code: 'newer_format' })
    await assert.rejects(init(), { code: 'newer_format' })
    await connection.close()
  })

  await t.test(
    'gives a node what it needs and no more, and takes it for away without',
    async () => {
      await sql(`CREATE ROLE node LOGIN PASSWORD '${secret}'`)
      const { url, sql: run } = await newCluster(postgres, 'node')
      assert.deepEqual(
        await run(`SELECT table_name::text, string_agg(privilege_type, ' ' ORDER BY privilege_type) AS rights
        FROM information_schema.role_table_grants WHERE grantee = 'node' GROUP BY 1 ORDER BY 1`),
        [
          { table_name: 'cluster', rights: 'SELECT' },
          { table_name: 'log', rights: 'DELETE INSERT SELECT' },
          { table_name: 'owner', rights: 'SELECT UPDATE' },
          { table_name: 'replica', rights: 'DELETE INSERT SELECT UPDATE' },
          { table_name: 'snapshot', rights: 'DELETE INSERT SELECT UPDATE' },
          { table_name: 'snapshot_chunk', rights: 'DELETE INSERT SELECT' },
        ],
      )
      await run('UPDATE conveyor.owner SET released = true')
      env.PGPASSWORD = secret
      const node_url = url.replace('postgres@', 'node@')
      const commit_log = postgresLog({ url: `${node_url}?${tls}`, node: 'a', lease_ms: 2_000 })
      const [, events] = await withEvents(async () => {
        await using engine = await openEngine(join(folder.path, 'a.lmdb'), { commit_log })
        await engine.users.add({ id: '1', name: 'one' })
        await run('REVOKE INSERT ON conveyor.log FROM node')
        const adding = engine.users.add({ id: '2', name: 'two' })
        const reason = (): string => commit_log.status().away_reason ?? ''
        while (reason() === '') await new Promise((done) => setImmediate(done))
        assert.match(
          reason(),
          /permission denied for table log \(42501\); run `npx conveyor cluster/,
        )
        await run('GRANT INSERT ON conveyor.log TO node')
        await adding
      })
      assert.equal(events.filter(({ event }) => event === 'database_away').length, 1)
      for (const event of events) assert.ok(!JSON.stringify(event).includes(secret))
      await run('REVOKE DELETE ON conveyor.log FROM node')
      await assert.rejects(
        openEngine(join(folder.path, 'a.lmdb'), { commit_log }),
        /the role of the commit log lacks rights on the schema conveyor: run/,
      )
    },
  )

  async function reload(name: string, isRight: (value: unknown) => boolean): Promise<void> {
    await sql('SELECT pg_reload_conf()')
    for (;;) {
      const [row] = await sql(`SHOW ${name}`)
      if (isRight(row?.[name])) return
    }
  }
})

/** A server that does this to whoever comes. */
async function listen(
  answer: (socket: Socket) => void,
): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    answer(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  return { server, port: (server.address() as { port: number }).port }
}
