/** `db_call` over a real MariaDB, where it differs from PostgreSQL: db-call.test.ts. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { pause, systemClock } from '../src/core/clock.ts'
import type { DatabaseOptions } from '../src/engine/api/database-api.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { asked, querying, saysOf } from './support/db-call.ts'
import { mariadbOrSkip, no_mariadb } from './support/mariadb.ts'

const password = 'swordfish-4711'
const mariadb = await mariadbOrSkip(password)
const long_row = "select repeat('x', 15000000), repeat('x', 15000000), sleep(1)"
const engines: Engine[] = []
async function opened(more: Partial<DatabaseOptions> = {}) {
  const login = { host: '127.0.0.1', port: mariadb?.port ?? 1, user: 'shop', password }
  const one: DatabaseOptions = { driver: 'mysql', database: 'shop', ...login, ...more }
  const engine = await openEngine(':memory:', { databases: { 7: one } })
  engines.push(engine)
  return engine
}
after(() => Promise.all(engines.map((engine) => engine.close())))

describe('MariaDB', { skip: no_mariadb ?? false }, async () => {
  const engine = await opened()

  /** [query, data, what it says, more members] */
  const rows: readonly (readonly [string, object, string | RegExp, object?])[] = [
    ['select 1 as one', {}, '1: [{"one":1}]'],
    ['select 1 from dual where 1 = 0', {}, '0: []'],
    ['create table t (id int primary key, name text, at datetime, j json, b blob)', {}, '0: []'],
    ["insert into t (id, name) values ({{id}}, '{{name}}')", { id: 1, name: "O'Brien\\" }, '1: []'],
    ['insert into t (id, name) values ({{id}}, {{yes}})', { id: 2, yes: true }, '1: []'],
    ["select id from t where name = '{{name}}'", { name: "O'Brien\\" }, '1: [{"id":1}]'],
    ["select * from t where name = '{{name}}'", { name: "' or '1'='1" }, '0: []'],
    ["select * from t where name = '{{name}}'", { name: "\\' or 1=1 -- " }, '0: []'],
    ['select * from t where name = {{name}}', { name: "x'; drop table t; --" }, '0: []'],
    ['select id from t limit {{n}}', { n: 1 }, '1: [{"id":1}]'],
    [
      "update t set at = {{at}}, j = '{\"a\":[{{id}}]}', b = 'a\\n'",
      { at: '2024-02-29 12:30:15', id: 1 },
      '2: []',
    ],
    [
      'select at, j, b from t where id = 1',
      {},
      '1: [{"at":"2024-02-29 12:30:15","j":{"a":[1]},"b":"0x610a"}]',
    ],
    [
      'select 9007199254740993 as big, 1.50 as n, cast(1.1 as float) as f, 2.5e0 as d, null as x',
      {},
      '1: [{"big":"9007199254740993","n":1.5,"f":1.1,"d":2.5,"x":null}]',
    ],
    ['selec 1', {}, /^software db_call_executing_error: SQLSTATE 42000: /],
    [
      'insert into t (id) values (1)',
      {},
      /^software db_call_executing_error: SQLSTATE 23000: Duplicate/,
    ],
    ['select 1; select 2; select 3', {}, 'refused'],
    ['select * from {{name}}', {}, 'refused'],
    ['select sleep(5)', {}, /^hardware db_call_timeout: /, { timeout: 0.2 }],
    [
      'select seq from seq_1_to_20000',
      {},
      'software db_call_size_overflow_limit: the answer has more than 10000 rows (rows_max): let the query return less',
    ],
    [
      "select seq, repeat('x', 100) from seq_1_to_100000000",
      {},
      'software db_call_size_overflow_limit: the answer has more than 131072 bytes: let the query return less',
    ],
    [
      "select repeat('x', 200000) as last_row",
      {},
      'software db_call_size_overflow_limit: the answer has more than 131072 bytes: let the query return less',
    ],
    ['kill connection_id()', {}, /^hardware db_call_connection_error: /],
    ['select 1 as one', {}, '1: [{"one":1}]'],
  ]
  for (const [query, data, expected, more] of rows) {
    test(query, async () => {
      const says = await asked(engine, query, data, more).then(saysOf, (error) => {
        assert.equal(error.code, 'bad_definition')
        return 'refused'
      })
      if (typeof expected === 'string') assert.equal(says, expected)
      else assert.match(says, expected)
    })
  }

  test('a session is as new for the next task, and no transaction stays open', async () => {
    const one = await opened({ max: 1 })
    await asked(one, "select get_lock('mine', 1)")
    await asked(one, 'begin')
    assert.equal(mariadb?.sql("select is_free_lock('mine')"), '1\n')
    assert.equal(mariadb?.sql('select count(*) from information_schema.innodb_trx'), '0\n')
    assert.equal(saysOf(await asked(one, 'select 1 as a')), '1: [{"a":1}]')
  })

  test('the list of processes shows the key, and a connection that is cut is lost', async () => {
    const one = await opened({ max: 1 })
    await one.processes.put(querying('select sleep(20)'))
    const { obj_id = '' } = await one.create({ conv_id: '1', data: {} })
    const at_work =
      "select id, info from information_schema.processlist where info like '%sleep(20)'"
    let found = ''
    for (; found === ''; found = mariadb?.sql(at_work) ?? '-') await pause(systemClock, 20)
    assert.match(found, new RegExp(`^[0-9]+\\s/\\* conveyor ${obj_id}-[0-9]+-0 \\*/`))
    mariadb?.sql(`kill ${Number.parseInt(found, 10)}`)
    const says = saysOf(await one.result({ conv_id: '1', obj_id }))
    assert.match(says, /^hardware db_call_connection_error: /)
  })

  test('a server that stands still is waited for no longer than the query may take', async () => {
    const one = await opened({ max: 1 })
    await asked(one, 'select 1')
    mariadb?.signal('SIGSTOP')
    const says = [
      saysOf(await asked(one, 'select 1', {}, { timeout: 0.2 })),
      saysOf(await asked(one, 'select 1', {}, { timeout: 0.2 })),
    ]
    mariadb?.signal('SIGCONT')
    // Which of the two times ends first depends on the machine.
    const ends =
      /^hardware db_call_(connection_error: the database does not answer|timeout: .* took too long)$/
    for (const one of says) assert.match(one, ends)
  })

  test('over TLS with a server that is verified, also a row that is too long', async () => {
    const one = await opened({ ssl: true, ca_file: mariadb?.ca as string })
    const [cipher = ''] = [saysOf(await asked(one, "show status like 'ssl_cipher'"))]
    assert.match(cipher, /^1: .*"Value":"TLS/)
    assert.match(saysOf(await asked(one, long_row)), /size_overflow_limit: .* has too many bytes/)
    const named = await opened({ ssl: true, ca_file: mariadb?.ca as string, host: 'localhost' })
    assert.equal(saysOf(await asked(named, 'select 1 as a')), '1: [{"a":1}]')
  })

  const refused: readonly (readonly [string, Partial<DatabaseOptions>, RegExp])[] = [
    ['a wrong password', { password: 'wrong' }, /SQLSTATE 28000: Access denied for user 'shop'/],
    ['no password', { password: undefined } as object, /SQLSTATE 28000: Access denied/],
    ['another database', { database: 'nowhere' }, /database|Access denied/i],
    ['nobody there', { port: 1 }, /ECONNREFUSED/],
    ['an authority that is not known', { ssl: true }, /certificate/],
  ]
  for (const [what, more, expected] of refused) {
    test(`refused: ${what}`, async () => {
      const says = saysOf(await asked(await opened(more), 'select 1', {}, { timeout: 5 }))
      assert.match(says, /^hardware db_call_connection_error: /)
      assert.match(says, expected)
      assert.ok(!says.includes(password))
    })
  }
})
