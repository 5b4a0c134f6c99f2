/** The databases that an operator gives: their file, its refusals, and what `doctor` says of them. */
import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { GivenDatabases } from '../src/engine/api/database-api.ts'
import { newAnswer, numberCell } from '../src/executors/databases/answer.ts'
import { readDatabases } from '../src/executors/databases/instances.ts'
import { openEngine } from '../src/open.ts'
import { run, tempFolder } from './support/cli-run.ts'
import { querying } from './support/db-call.ts'
import { top } from './support/package-folder.ts'

const folder = tempFolder()
after(() => folder.remove())
const readme = readFileSync(join(top, 'src/executors/databases/README.md'), 'utf8')
const good = { driver: 'postgres', host: 'db', database: 'd', user: 'u' }
const open_file = join(folder.path, 'open')
writeFileSync(open_file, 'secret\n', { mode: 0o644 })
chmodSync(open_file, 0o644)
const password_file = join(folder.path, 'password')
writeFileSync(password_file, 'swordfish\n', { mode: 0o600 })

describe('refused', () => {
  const rows: readonly (readonly [unknown, string])[] = [
    [[], 'databases: an object was expected'],
    [{ a: 1 }, 'databases["a"]: an object was expected'],
    [{ a: { ...good, pasword: 'x' } }, 'databases["a"] has no member pasword'],
    [{ a: { ...good, host: undefined } }, 'databases["a"].host is missing'],
    [{ a: { ...good, host: '' } }, 'databases["a"].host: a text was expected'],
    [{ a: { ...good, max: 0 } }, 'databases["a"].max: a whole number of 1 or more was expected'],
    [{ a: { ...good, port: 70_000 } }, 'databases["a"].port: a number up to 65535 was expected'],
    [{ a: { ...good, ssl: 'yes' } }, 'databases["a"].ssl: true or false was expected'],
    [
      { a: { ...good, driver: 'oracle' } },
      'databases["a"].driver "oracle" is not run here: only postgres and mysql are',
    ],
    [
      { a: { ...good, driver: 'db2' } },
      'databases["a"].driver "db2" is not known: only postgres and mysql are',
    ],
    [
      { a: { ...good, password: 'hidden', password_file } },
      'databases["a"] has a password and a password_file: give one of them',
    ],
    [
      { a: { ...good, password_file: '/nowhere/p' } },
      'databases["a"]: the password_file /nowhere/p cannot be read (ENOENT)',
    ],
    [
      { a: { ...good, password_file: open_file } },
      `databases["a"]: others may read the password_file ${open_file}: chmod 600 it`,
    ],
    [
      { a: { ...good, ssl: false, ca_file: open_file } },
      'databases["a"].ca_file is for `"ssl": true`',
    ],
  ]
  for (const [given, message] of rows) {
    test(message, async () => {
      assert.throws(() => readDatabases(given as GivenDatabases), { name: 'RangeError', message })
      const databases = given as GivenDatabases
      await assert.rejects(openEngine(':memory:', { databases }), { message })
    })
  }
})

test('what is left out has a default, TLS is on beyond this machine, and the password is read', () => {
  const databases = readDatabases({
    a: { ...good, password_file } as never,
    b: { ...good, driver: 'mysql', host: '127.0.0.1', password: 'p', ca_file: undefined } as never,
    c: { ...good, host: '/run/postgresql' } as never,
  })
  const shown = [...databases].map(([name, { login, ...rest }]) => [name, rest, login()])
  const each = { database: 'd', user: 'u', max: 8, timeout_ms: 30_000, rows_max: 10_000 }
  assert.deepEqual(shown, [
    [
      'a',
      { ...each, driver: 'postgres', host: 'db', port: 5432, ssl: true },
      { password: 'swordfish', ca: undefined },
    ],
    [
      'b',
      { ...each, driver: 'mysql', host: '127.0.0.1', port: 3306, ssl: false },
      { password: 'p', ca: undefined },
    ],
    [
      'c',
      { ...each, driver: 'postgres', host: '/run/postgresql', port: 5432, ssl: false },
      { password: undefined, ca: undefined },
    ],
  ])
})

test('the file and the node of the README are taken', async () => {
  const [file = '', node = ''] = ['databases file', 'databases definition'].map(
    (mark) => new RegExp(`<!-- ${mark} -->\\n\`\`\`json\\n([\\s\\S]*?)\`\`\``).exec(readme)?.[1],
  )
  const databases = JSON.parse(file.replace('shop.password', password_file)) as GivenDatabases
  const engine = await openEngine(':memory:', { databases })
  const { query, ...more } = JSON.parse(node) as { query: string }
  const { warnings } = await engine.processes.put(querying(query, more))
  assert.deepEqual(warnings, [])
  await engine.close()
})

/** [number of a database, JSON] */
const numbers: readonly (readonly [string, string])[] = [
  ['0', '0'],
  ['-0', '0'],
  ['0.00', '0'],
  ['1.50', '1.5'],
  ['-12', '-12'],
  ['1e+20', '100000000000000000000'],
  ['1e-7', '1e-7'],
  ['0.0000001', '1e-7'],
  ['9007199254740993', '"9007199254740993"'],
  ['0.1234567890123456789', '"0.1234567890123456789"'],
  ['1e400', '"1e400"'],
  ['NaN', '"NaN"'],
  ['Infinity', '"Infinity"'],
]
for (const [text, json] of numbers) {
  test(`the number ${text} is ${json}`, () => {
    assert.equal(numberCell(text), json)
  })
}

test('an answer is bounded by its rows and its bytes, and keeps none of them then', () => {
  const rows = newAnswer({ bytes_max: 1_000, rows_max: 2 })
  rows.names(['a'])
  assert.deepEqual([rows.add(['1']), rows.add(['2']), rows.add(['3'])], [true, true, false])
  assert.equal(rows.overflow(), 'more than 2 rows (rows_max)')
  const bytes = newAnswer({ bytes_max: 20, rows_max: 9 })
  bytes.names(['a', 'a', 'b'])
  assert.ok(bytes.add(['1', '2', 'null']))
  assert.equal(bytes.text(undefined), '{"result":[{"a":2,"b":null}],"rows_count":1}')
  assert.ok(!bytes.add(['1', '"é"', 'null']))
  assert.equal(bytes.overflow(), 'more than 20 bytes')
})

describe('the file of --databases', () => {
  const path = join(folder.path, 'databases.json')
  const db = join(folder.path, 'tasks.lmdb')

  /** [what it holds, its mode, the sentence] */
  const rows: readonly (readonly [string, number, RegExp])[] = [
    ['{', 0o600, /^conveyor: cannot use .*databases\.json: /],
    ['[]', 0o600, /cannot use .*: a JSON object was expected/],
    ['{"a":{"driver":"mssql"}}', 0o600, /cannot use .*databases\["a"\]\.host is missing/],
    ['{}', 0o644, /cannot read .*databases\.json: others may read it: chmod 600 it/],
  ]
  for (const [text, mode, expected] of rows) {
    test(`serve refuses ${text} of mode ${mode.toString(8)}`, async () => {
      writeFileSync(path, text)
      chmodSync(path, mode)
      const { exit, err } = await run(['serve', '--db', db, '--databases', path])
      assert.equal(exit, 2)
      assert.match(err, expected)
    })
  }

  test('serve refuses one that is not there', async () => {
    const { exit, err } = await run(['serve', '--db', db, '--databases', '/nowhere/f'])
    assert.equal(exit, 2)
    assert.match(err, /cannot read \/nowhere\/f: there is no such file/)
  })

  test('an import warns of a database that is not given, and doctor names it', async () => {
    const env = { CONVEYOR_RUNTIME_DIR: join(folder.path, 'run') }
    const options = { admin: true, runtime_dir: env.CONVEYOR_RUNTIME_DIR }
    const engine = await openEngine(db, { ...options, databases: { stock: good as never } })
    const { warnings } = await engine.processes.put(querying('select {{a}}'))
    const missing = 'instance_id 7 is not among the databases of this program (--databases)'
    assert.ok(warnings.some((text) => text.endsWith(missing.replace('7', '"7"'))))
    await engine.processes.put(querying('select {{a}}', { instance_id: 'stock' }, '2'))
    const doctor = async (...flags: string[]) => {
      const { out } = await run(['doctor', '--db', db, '--json', ...flags], { env })
      const { checks } = JSON.parse(out) as { checks: Record<'name' | 'level' | 'says', string>[] }
      return checks
        .filter(({ name }) => name === 'databases')
        .map(({ level, says }) => `${level}: ${says}`)
    }
    const of = (conv_id: number, name: string) =>
      `warn: process ${conv_id} queries databases that are not given: ${name}`
    writeFileSync(path, JSON.stringify({ 7: good }))
    chmodSync(path, 0o600)
    assert.deepEqual(await doctor(), [of(1, '7')])
    assert.deepEqual(await doctor('--databases', path), [of(2, 'stock')])
    await engine.close()
    assert.deepEqual(await doctor(), [of(1, '7'), of(2, 'stock')])
    writeFileSync(path, JSON.stringify({ 7: good, stock: good }))
    const fine = 'ok: 2 databases are given, and no process names another'
    assert.deepEqual(await doctor('--databases', path), [fine])
    writeFileSync(path, '{"a":{}}')
    const [wrong = ''] = await doctor('--databases', path)
    assert.match(wrong, /^bad: cannot use .*databases\["a"\]\.driver is missing/)
  })
})
