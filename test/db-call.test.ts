/**
 * `db_call` over a real PostgreSQL: what comes back, what is refused, and what happens where the
 * database hangs, is away, or gives more than a task may hold.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { pause, systemClock } from '../src/core/clock.ts'
import type { DatabaseOptions } from '../src/engine/api/database-api.ts'
import type { Engine, EngineOptions } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { run } from './support/cli-run.ts'
import { node_args, startServe } from './support/cli-serve.ts'
import { asked, querying, saysOf } from './support/db-call.ts'
import { tempFolder } from './support/package-folder.ts'
import { no_postgres, postgresOrSkip, startPostgres } from './support/postgres.ts'
import { quickFolder } from './support/store-folder.ts'

const password = 'swordfish-4711'
const postgres = await postgresOrSkip({ password })
const skip = no_postgres ?? false
const instance = (more: Partial<DatabaseOptions> = {}): DatabaseOptions => ({
  ...{ driver: 'postgres', host: '127.0.0.1', port: postgres?.port ?? 1, database: 'postgres' },
  ...{ user: 'postgres', password, ...more },
})
const engines: Engine[] = []
async function opened(more: Partial<DatabaseOptions> = {}, options: EngineOptions = {}) {
  const engine = await openEngine(':memory:', { databases: { 7: instance(more) }, ...options })
  engines.push(engine)
  return engine
}
after(() => Promise.all(engines.map((engine) => engine.close())))

describe('PostgreSQL', { skip }, async () => {
  const engine = await opened()

  /** [query, data, what it says, more members] */
  const rows: readonly (readonly [string, object, string | RegExp, object?])[] = [
    ['select 1 as one', {}, '1: [{"one":1}]'],
    ['select 1 where false', {}, '0: []'],
    ['create table t (id int primary key, name text)', {}, '0: []'],
    ["insert into t values ({{id}}, '{{name}}')", { id: 1, name: "O'Brien" }, '1: []'],
    ['insert into t values ({{id}}, {{name}}) returning *', { id: 2 }, '1: [{"id":2,"name":null}]'],
    [
      "select * from t where name = '{{name}}'",
      { name: "O'Brien" },
      '1: [{"id":1,"name":"O\'Brien"}]',
    ],
    ["select * from t where name = '{{name}}'", { name: "' or '1'='1" }, '0: []'],
    ['select * from t where name = {{name}}', { name: "x'; drop table t; --" }, '0: []'],
    [
      'select * from t where id = {{id}}',
      { id: '1 or 1=1' },
      /^software db_call_executing_error: SQLSTATE 22P02: /,
    ],
    ['update t set name = {{name}}', { name: '{{id}}' }, '2: []'],
    ['select count(*) from t', {}, '1: [{"count":2}]'],
    ['select 1; select 2; select 3', {}, 'refused'],
    ['selec 1', {}, /^software db_call_executing_error: SQLSTATE 42601: syntax error/],
    [
      'insert into t values (1)',
      {},
      /^software db_call_executing_error: SQLSTATE 23505: duplicate key/,
    ],
    ['select 1/0', {}, /^software db_call_executing_error: SQLSTATE 22012: division by zero/],
    ['copy t to stdout', {}, '2: []'],
    ['copy t from stdin', {}, /^software db_call_executing_error: SQLSTATE 57014: COPY/],
    [
      "select true as b, 1.50::numeric as n, 2.5::float8 as f, null as x, 'NaN'::float8 as nan",
      {},
      '1: [{"b":true,"n":1.5,"f":2.5,"x":null,"nan":"NaN"}]',
    ],
    [
      'select 9007199254740993 as big, 12 as small, 0.1234567890123456789 as long, 0.00 as zero',
      {},
      '1: [{"big":"9007199254740993","small":12,"long":"0.1234567890123456789","zero":0}]',
    ],
    [
      'select \'{"a":[1,{"b":1.10}]}\'::jsonb as j, array[1,2] as l, array[\'x\',null] as t',
      {},
      '1: [{"j":{"a":[1,{"b":1.1}]},"l":[1,2],"t":["x",null]}]',
    ],
    [
      "select '2024-02-29 12:30:15.25'::timestamp as at, '\\xff00'::bytea as bytes, 1 as a, 2 as a",
      {},
      '1: [{"at":"2024-02-29 12:30:15.25","bytes":"\\\\xff00","a":2}]',
    ],
    ['select 1 as "__proto__", 2 as "constructor"', {}, '1: [{"__proto__":1,"constructor":2}]'],
    [
      'select {{id}}::int + {{add}}::int as sum',
      { id: 1 },
      '1: [{"sum":42}]',
      { params: { add: '{{n}}', id: '{{two}}' }, params_type: { add: 'number' } },
    ],
    [
      'select {{add}}::int as sum',
      { n: 'x' },
      /^software db_call_wrong_convert_param: /,
      { params: { add: '{{n}}' }, params_type: { add: 'number' } },
    ],
    [
      "select current_setting('statement_timeout') as t, current_setting('application_name') ~ '^conveyor [0-9a-f]{24}-[0-9]+-0$' as k",
      {},
      '1: [{"t":"1500ms","k":true}]',
      { timeout: 1.5 },
    ],
    ['select pg_sleep(5)', {}, /^hardware db_call_timeout: SQLSTATE 57014/, { timeout: 0.1 }],
    [
      'select generate_series(1, 20000) as n',
      {},
      'software db_call_size_overflow_limit: the answer has more than 10000 rows (rows_max): let the query return less',
    ],
    [
      "select generate_series(1, 100000000), repeat('x', 100) as t",
      {},
      'software db_call_size_overflow_limit: the answer has more than 131072 bytes: let the query return less',
    ],
    [
      "select repeat('x', 200000) as last_row",
      {},
      'software db_call_size_overflow_limit: the answer has more than 131072 bytes: let the query return less',
    ],
    [
      "select repeat('x', 100000000) as one_row",
      {},
      'software db_call_size_overflow_limit: the answer has too many bytes: let the query return less',
    ],
    ['select pg_terminate_backend(pg_backend_pid())', {}, /^hardware db_call_connection_error: /],
    ['begin', {}, '0: []'],
    ["select set_config('search_path', 'nowhere', false) as p", {}, '1: [{"p":"nowhere"}]'],
    ['select count(*) from t', {}, '1: [{"count":2}]'],
    [
      'select {{id}}',
      { id: 9 },
      /^software db_call_instance_not_found: instance_id "9" is not among/,
      { instance_id: 9 },
    ],
    [
      'select {{id}}',
      { id: 9 },
      /^software db_call_instance_not_found: instance_id names no database/,
      { instance_id: null },
    ],
    ['', {}, 'software db_call_executing_error: it is empty'],
  ]
  for (const [query, data, expected, more] of rows) {
    test(query, async () => {
      const says = await asked(engine, query, { n: 41, two: 1, ...data }, more).then(
        saysOf,
        (error) => {
          assert.equal(error.code, 'bad_definition')
          return 'refused'
        },
      )
      if (typeof expected === 'string') assert.equal(says, expected)
      else assert.match(says, expected)
    })
  }
})

/** A task that is under way at its query, and what it says in the end. */
async function under(engine: Engine, query: string, more: object = {}) {
  await engine.processes.put(querying(query, more))
  const { obj_id = '' } = await engine.create({ conv_id: '1', data: {} })
  return engine.result({ conv_id: '1', obj_id }).then(saysOf)
}

const running = "select pid from pg_stat_activity where query like 'select pg_sleep%'"

async function untilRunning(count: number): Promise<void> {
  for (;;) {
    const found = (await postgres?.sql(running)) ?? []
    if (found.length === count) return
    await pause(systemClock, 20)
  }
}

describe('trouble with PostgreSQL', { skip }, () => {
  test('a session is as new for the next task, and no transaction stays open', async () => {
    const engine = await opened({ max: 1 })
    await asked(engine, 'begin')
    await asked(engine, "select pg_advisory_lock(1), set_config('work_mem', '1MB', false)")
    const locks = "select count(*)::int as n from pg_locks where locktype = 'advisory'"
    const open = "select count(*)::int as n from pg_stat_activity where state like 'idle in tr%'"
    assert.deepEqual(await postgres?.sql(locks), [{ n: 0 }])
    assert.deepEqual(await postgres?.sql(open), [{ n: 0 }])
    const show = "select current_setting('work_mem') as m"
    assert.equal(saysOf(await asked(engine, show)), '1: [{"m":"4MB"}]')
  })

  test('a connection that is cut while idle is opened again, one cut at work is not', async () => {
    const engine = await opened({ max: 1 })
    await asked(engine, 'select 1')
    await postgres?.restart()
    assert.equal(saysOf(await asked(engine, 'select 1 as a')), '1: [{"a":1}]')
    const cut = under(engine, 'select pg_sleep(20)')
    await untilRunning(1)
    await postgres?.kill()
    assert.match(await cut, /^hardware db_call_connection_error: /)
    assert.match(saysOf(await asked(engine, 'select 1')), /connection_error: .*ECONNREFUSED/)
    await postgres?.start()
    assert.equal(saysOf(await asked(engine, 'select 1 as a')), '1: [{"a":1}]')
  })

  test('a server that stands still is waited for no longer than the query may take', async () => {
    const engine = await opened({ max: 1 })
    await asked(engine, 'select 1')
    postgres?.signal('SIGSTOP')
    const began_ms = performance.now()
    const says = await asked(engine, 'select 1', {}, { timeout: 0.3 }).then(saysOf)
    postgres?.signal('SIGCONT')
    assert.equal(says, 'hardware db_call_connection_error: the database does not answer')
    const late = under(engine, 'select pg_sleep(20)', { timeout: 0.6 })
    await untilRunning(1)
    postgres?.signal('SIGSTOP')
    assert.equal(await late, 'hardware db_call_timeout: the query took too long')
    postgres?.signal('SIGCONT')
    assert.ok(performance.now() - began_ms < 5_000)
  })

  const refused: readonly (readonly [string, Partial<DatabaseOptions>, RegExp])[] = [
    ['a wrong password', { password: 'wrong' }, /SQLSTATE 28P01: password authentication failed/],
    ['another database', { database: 'nowhere' }, /SQLSTATE 3D000: database "nowhere" does not/],
    ['no TLS there', { ssl: true }, /: The server does not support SSL connections/],
    ['no such host', { host: 'no-host.invalid', ssl: false }, /ENOTFOUND|EAI_AGAIN/],
  ]
  for (const [what, more, expected] of refused) {
    test(`refused: ${what}`, async () => {
      const says = saysOf(await asked(await opened(more), 'select 1', {}, { timeout: 5 }))
      assert.match(says, /^hardware db_call_connection_error: /)
      assert.match(says, expected)
      assert.ok(!says.includes(password))
    })
  }

  test('no more connections than max, and who waits too long for one fails', async () => {
    const limits = { call_wait_ms_max: 300 }
    const engine = await opened({ max: 2 }, { limits })
    await engine.processes.put(querying('select pg_sleep(1)'))
    const ids = await Promise.all(
      [1, 2, 3, 4].map(async () => (await engine.create({ conv_id: '1', data: {} })).obj_id ?? ''),
    )
    await untilRunning(2)
    const ends = await Promise.all(ids.map((obj_id) => engine.result({ conv_id: '1', obj_id })))
    const says = ends.map(saysOf).sort()
    assert.deepEqual(says.slice(0, 2), ['1: [{"pg_sleep":""}]', '1: [{"pg_sleep":""}]'])
    for (const one of says.slice(2)) assert.match(one, /^hardware db_call_expire_query: /)
    assert.deepEqual(engine.statistics().jobs.db, { done: 2, expired: 2 })
  })

  test('a close cuts a query off, and it is made again under its key', async () => {
    const folder = await quickFolder('conveyor-db-call-')
    const path = join(folder, 'tasks.lmdb')
    const options = { databases: { 7: instance() }, limits: { drain_ms_max: 50 } }
    const first = await openEngine(path, options)
    await postgres?.sql('create table made (key text)')
    const query = "insert into made select current_setting('application_name') from pg_sleep({{s}})"
    await first.processes.put(querying(query))
    const { obj_id = '' } = await first.create({ conv_id: '1', data: { s: 1 } })
    const at_work = "select pid from pg_stat_activity where query like 'insert into made%'"
    while ((await postgres?.sql(at_work))?.length !== 1) await pause(systemClock, 20)
    assert.deepEqual((await first.tasks.list({ conv_id: '1' })).tasks.length, 1)
    await first.close()
    const next = await openEngine(path, options)
    engines.push(next)
    assert.equal(saysOf(await next.result({ conv_id: '1', obj_id })), '1: []')
    const made = (await postgres?.sql<{ key: string }>('select distinct key from made')) ?? []
    assert.equal(made.length, 1)
    assert.match(made[0]?.key ?? '', new RegExp(`^conveyor ${obj_id}-[0-9]+-0$`))
    await rm(folder, { recursive: true })
  })
})

test('over TLS with a server that is verified, also a row that is too long', { skip }, async () => {
  const server = await startPostgres({ password, tls: true })
  try {
    const at = { port: server.port, ssl: true }
    const engine = await opened({ ...at, ca_file: server.ca as string })
    const own = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()'
    assert.equal(saysOf(await asked(engine, own)), '1: [{"ssl":true}]')
    const long = saysOf(await asked(engine, "select repeat('x', 100000000)"))
    assert.match(long, /size_overflow_limit: the answer has too many bytes/)
    const says = saysOf(await asked(await opened(at), 'select 1'))
    assert.match(says, /^hardware db_call_connection_error: .*certificate/)
    const plain = saysOf(await asked(await opened({ port: server.port }), 'select 1'))
    assert.match(plain, /^hardware db_call_connection_error: SQLSTATE 28000: no pg_hba.conf entry/)
  } finally {
    await server.remove()
  }
})

test('serve with a file of databases: an import, a task and what is warned of', {
  skip,
}, async () => {
  const folder = tempFolder()
  const of = (name: string, text: string): string => {
    const path = join(folder.path, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  of('password', `${password}\n`)
  const { password: _, ...one } = instance()
  const plain = { ...one, host: '10.255.255.1', ssl: false }
  const given = { stock: { ...one, password_file: 'password' }, far: plain }
  const databases = of('databases.json', JSON.stringify(given))
  const db = join(folder.path, 'tasks.lmdb')
  const at = ['--db', db, '--databases', databases, '--http', '127.0.0.1:0', '--json']
  const served = await startServe([process.execPath, ...node_args, 'serve', ...at])
  try {
    const file = of('shop.json', JSON.stringify(querying('select {{a}}', { instance_id: 'stock' })))
    const imported = await run(['process', 'import', file, '--db', db])
    assert.equal(imported.exit, 0, imported.err)
    const data = JSON.stringify({ a: "it's" })
    await run(['task', 'create', '1', '--ref', 'r', '--data', data, '--db', db])
    const ended = async () => (await run(['task', 'show', '1', 'r', '--json', '--db', db])).out
    while (!(await ended()).includes('"node_id":"done"')) await pause(systemClock, 50)
    assert.match(await ended(), /"result":\[\{"\?column\?":"it's"\}\],"rows_count":1/)
    assert.match(served.err(), /"what":"plain_database","says":"queries of far and their rows/)
  } finally {
    assert.equal(await served.stop(), 0)
    folder.remove()
  }
})

test('a time semaphor sends a task on while its query is under way', { skip }, async () => {
  const engine = await opened()
  const late = { type: 'time', value: 1, to_node_id: 'failed' }
  await engine.processes.put(querying('select pg_sleep(2)', {}, '1', [late]))
  const { obj_id = '' } = await engine.create({ conv_id: '1', data: {} })
  const { node_id, data } = await engine.result({ conv_id: '1', obj_id })
  assert.deepEqual([node_id, data], ['failed', {}])
})

test('a server that accepts and says nothing is no connection', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const engine = await opened({ port })
  const says = saysOf(await asked(engine, 'select 1', {}, { timeout: 0.2 }))
  assert.equal(says, 'hardware db_call_connection_error: the database does not answer')
  silent.close()
})

test('a handler runs in place of the query, and without databases nothing else does', async () => {
  const handlers = { db_call: () => ({ rows_count: 5, result: 'handled' }) }
  const handled = await opened({ port: 1 }, { handlers })
  assert.equal(saysOf(await asked(handled, 'select * from {{name}}')), '5: "handled"')
  const none = await openEngine(':memory:')
  engines.push(none)
  await assert.rejects(none.processes.put(querying('select 1')), /type "db_call" is not run here/)
  const git = { type: 'git_call', query: '' }
  await assert.rejects(handled.processes.put(querying('', git)), /type "git_call" is not run here/)
})
