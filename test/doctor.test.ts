/**
 * `doctor`: what it says of files that are served, closed, left by a kill, of another format, not
 * ours or broken; that it changes none of them and prints no secret; and how its rows judge facts.
 */
import assert from 'node:assert/strict'
import { chmodSync, copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Facts } from '../src/cli/doctor/facts.ts'
import { type Configured, risksOf } from '../src/cli/serve/risks.ts'
import { rowsOf } from '../src/cli/verbs/doctor.ts'
import { supported_node } from '../src/core/node-version.ts'
import { format_key } from '../src/engine/file/format.ts'
import { openEngine } from '../src/open.ts'
import { callback_process, failing_process } from './support/cli-process.ts'
import { run, tempFolder } from './support/cli-run.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { top } from './support/package-folder.ts'

const folder = tempFolder()
after(() => folder.remove())

interface Row {
  readonly name: string
  readonly level: string
  readonly says: string
  readonly help?: string
}

async function doctor(db: string, ...flags: string[]): Promise<{ exit: number; rows: Row[] }> {
  const env = { CONVEYOR_RUNTIME_DIR: join(folder.path, 'run') }
  const { exit, out, err } = await run(['doctor', '--db', db, '--json', ...flags], { env })
  assert.equal(err, '')
  return { exit, rows: (JSON.parse(out) as { checks: Row[] }).checks }
}

const saysOf = (rows: readonly Row[], name: string): string =>
  rows
    .filter((row) => row.name === name)
    .map(({ level, says }) => `${level}: ${says}`)
    .join('\n')

/** All files beside the data file with their bytes, but for LMDB's table of readers. */
function contents(db: string): Map<string, string> {
  const name = db.slice(folder.path.length + 1)
  const names = readdirSync(folder.path).filter((one) => one.startsWith(name))
  return new Map(
    names
      .filter((one) => !one.endsWith('-lock'))
      .map((one) => [one, readFileSync(join(folder.path, one)).toString('base64')]),
  )
}

test('a served file: failed tasks, a handler that nobody has, a lost key, and no secret', async () => {
  const db = join(folder.path, 'served.lmdb')
  const engine = await openEngine(db, {
    ...{ admin: true, runtime_dir: join(folder.path, 'run'), limits: { drain_ms_max: 0 } },
  })
  await engine.processes.put(failing_process)
  await engine.processes.put(callback_process)
  const { secret } = await engine.users.add()
  const remove = engine.handle('Wait "bank"', () => new Promise(() => {}))
  await engine.create({ conv_id: 77, ref: 'f', data: { text: 's3cret' } })
  await engine.create({ conv_id: 1234, ref: 'w', data: {} })
  remove()
  await engine.processes.pause('77')
  const { exit, rows } = await doctor(db, '--full')
  assert.equal(exit, 0, JSON.stringify(rows))
  assert.match(saysOf(rows, 'file'), /^ok: .* is served by process \d+$/)
  assert.match(
    saysOf(rows, 'failed tasks'),
    /^warn: 1 failed in process 77, the newest at .* with /,
  )
  assert.match(
    saysOf(rows, 'paused'),
    /^warn: process 77 is paused: it refuses ops, and its live tasks \(1\) /,
  )
  assert.match(saysOf(rows, 'jobs'), /1 tasks of process 1234 wait for the handler Wait "bank"/)
  assert.equal(saysOf(rows, 'invariants'), 'ok: all of them hold')
  const failed = rows.find(({ name }) => name === 'failed tasks')
  assert.match(failed?.help ?? '', /`conveyor task retry 77 --status failed --db /)
  for (const hidden of [secret, 's3cret']) assert.ok(!JSON.stringify(rows).includes(hidden))
  await engine.close()
  const closed = contents(db)
  chmodSync(`${db}.key`, 0o644)
  const open = await doctor(db)
  assert.equal(open.exit, 1)
  assert.match(saysOf(open.rows, 'rights'), /^bad: others may read the key/)
  assert.deepEqual(contents(db), closed, 'nothing is changed')
  rmSync(`${db}.key`)
  const gone = await doctor(db)
  assert.equal(gone.exit, 1)
  assert.match(saysOf(gone.rows, 'key'), /^bad: the key file is missing/)
  assert.ok(!readdirSync(folder.path).includes('served.lmdb.key'), 'none is made')
})

test('a file that a kill left is read with its commit log and stays as it is', async () => {
  const db = join(folder.path, 'killed.lmdb')
  const running = await openEngine(join(folder.path, 'running.lmdb'))
  await running.processes.put(failing_process)
  await running.create({ conv_id: 77, ref: 'f', data: { text: 'x' } })
  for (const end of ['', '-log-0', '-log-1']) copyFileSync(running.path + end, db + end)
  await running.close()
  const before = contents(db)
  const { exit, rows } = await doctor(db, '--full')
  assert.match(
    saysOf(rows, 'commit log'),
    /^warn: the commit log alone has the last changes \(\d+\)/,
  )
  assert.equal(saysOf(rows, 'invariants'), 'ok: all of them hold')
  assert.match(saysOf(rows, 'failed tasks'), /^warn: 1 failed in process 77/)
  assert.equal(exit, 0)
  assert.deepEqual(contents(db), before)
  assert.ok(!readdirSync(folder.path).includes('killed.lmdb-lock'))
  rmSync(`${db}-log-1`)
  const cut = await doctor(db)
  assert.equal(cut.exit, 1)
  assert.match(saysOf(cut.rows, 'file'), /^bad: it does not open: .*commit log/)
})

test('a file of an earlier format is bad, and stays as it is', async () => {
  const db = join(folder.path, 'first.lmdb')
  const tree = await openInProcess(db)
  tree.commit((writer) => writer.put(format_key, Buffer.from('1')))
  await tree.close()
  const before = contents(db)
  const { exit, rows } = await doctor(db)
  assert.equal(exit, 1)
  assert.match(saysOf(rows, 'file'), /^bad: .* was written by an older conveyor \(format 1\)/)
  assert.deepEqual(contents(db), before)
  const listed = await run(['task', 'list', '--db', db])
  assert.equal(listed.exit, 3)
  assert.match(listed.err, /was written by an older conveyor \(it has format 1, this one reads /)
})

test('what is missing or held is exit 3, what is not ours 1', async () => {
  const missing = await doctor(join(folder.path, 'missing.lmdb'))
  assert.equal(missing.exit, 3)
  assert.match(saysOf(missing.rows, 'file'), /^bad: there is no file/)
  const foreign = join(folder.path, 'foreign')
  writeFileSync(foreign, 'text')
  assert.equal((await doctor(foreign)).exit, 1)
  const db = join(folder.path, 'held.lmdb')
  const engine = await openEngine(db)
  const held = await doctor(db)
  await engine.close()
  assert.equal(held.exit, 3)
  assert.match(saysOf(held.rows, 'file'), /^bad: process \d+ holds it and cannot be asked/)
})

const now_ms = Date.UTC(2026, 5, 1)
const day_ms = 86_400_000
const facts: Facts = {
  ...{ now_ms, node: 'v20.20.2', is_full: false, db: 'x', state: 'missing', system: {} },
}
const certificate = {
  ...{ path: 'd/server.crt', from_ms: 0, until_ms: now_ms + 90 * day_ms, names: 'DNS:a' },
  ...{ is_issued: true, key: 'fits' as const },
}
const file = { path: 'x', mode: 0o100600, bytes: 1, at_ms: now_ms }

/** [the row, facts, what it says] */
// biome-ignore format: a table
const judged: readonly (readonly [string, Partial<Facts>, RegExp])[] = [
  ['node',         { node: 'v20.19.9' },                             /^bad: Node v20.19.9 is not/],
  ['node',         { node: 'v21.7.0' },                              /^bad/],
  ['node',         { node: 'v24.21.0' },                             /^ok/],
  ['file system',  { disk: { type: 0x6969, free_bytes: 1e12 } },     /^warn: .*\(NFS\)/],
  ['file system',  { disk: { type: 0x01021994, free_bytes: 1e12 } }, /^warn: it is in memory/],
  ['file system',  { disk: { type: -11317950, free_bytes: 1e12 } },  /^warn: .*\(CIFS\)/],
  ['file system',  { disk: { type: 0xef53, free_bytes: 1e12 } },     /^ok/],
  ['rights',       { file: { ...file, mode: 0o100640 } },            /^warn: others may read the data/],
  ['rights',       { file: { ...file, mode: 0o010640 } },            /^$/],
  ['clock',        { now_ms: Date.UTC(2009, 1, 1) },                 /^bad: it is 2009/],
  ['certificates', { certificates: [certificate] },                  /^ok: .*2026-08-30, for DNS:a/],
  ['certificates', { certificates: [{ ...certificate, until_ms: now_ms + 13 * day_ms }] }, /^warn: .*expires/],
  ['certificates', { certificates: [{ ...certificate, until_ms: now_ms - 1 }] }, /^bad: .*has expired/],
  ['certificates', { certificates: [{ ...certificate, is_issued: false }] },     /^bad: .*not issued/],
  ['certificates', { certificates: [{ ...certificate, key: 'open' }] },          /^bad: .*read by others/],
  ['certificates', { certificates: [{ ...certificate, error: 'is missing' }] }, /^bad: .*is missing/],
  ['public url',   { public_url: 'http://shop.example' },            /^warn: .*no https/],
  ['public url',   { public_url: 'https://shop.example' },           /^ok/],
  ['system limits', { system: { files_max: 40, files_open: 40 } }, /^bad: it has 40 files open of 40/],
  ['backup',       { backup: 'missing' },                            /^bad/],
  ['backup',       { backup: { ...file, at_ms: now_ms - 5 * day_ms } }, /^warn: the backup is 5 d old/],
]

for (const [name, given, says] of judged) {
  test(`doctor judges ${name}: ${says}`, () => {
    assert.match(saysOf(rowsOf({ ...facts, ...given }), name), says)
  })
}

test('the versions of Node are those of the package', () => {
  const { engines } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8'))
  assert.equal(supported_node, engines.node)
})

const safe: Configured = {
  ...{ wanted: {}, window_s: 300, allow_hosts: ['api.example:443'], has_webhook: false },
  ...{ file_system: 0xef53, uid: 1000, now_ms, certificates_until_ms: {}, databases: {} },
}
const database = { driver: 'postgres', host: '10.1.2.3', database: 'd', user: 'u' } as const
const http = { host: '127.0.0.1', port: 80 }
const grpc = { ...http, strict: true, reflection: false }

/** [what is risky, as it is configured] */
// biome-ignore format: a table
const risky: readonly (readonly [string, Partial<Configured>])[] = [
  ['', {}],
  ['', { wanted: { http, grpc }, allow_hosts: ['93.184.216.34:443'] }],
  ['plain_http',      { wanted: { http: { ...http, host: '0.0.0.0' } } }],
  ['plain_http',      { wanted: { http, http_sync: { ...http, host: '10.0.0.1' } } }],
  ['window_off',      { window_s: 0 }],
  ['grpc_not_strict', { wanted: { grpc: { ...grpc, strict: false } } }],
  ['reflection',      { wanted: { grpc: { ...grpc, reflection: true } } }],
  ['private_calls',   { allow_hosts: ['10.1.2.3:80'] }],
  ['private_calls',   { allow_hosts: ['localhost:80'] }],
  ['private_calls',   { allow_hosts: ['[::1]:80'] }],
  ['plain_database',  { databases: { a: { ...database, ssl: false } } }],
  ['',                { databases: { a: database, b: { ...database, ssl: false, host: '::1' } } }],
  ['no_public_url',   { has_webhook: true, wanted: { http } }],
  ['',                { has_webhook: true, wanted: { http: { ...http, public_url: 'https://a' } } }],
  ['file_system',     { file_system: 0x01021994 }],
  ['certificate_ends', { certificates_until_ms: { grpc: now_ms - 1 } }],
  ['certificate_ends', { certificates_until_ms: { operator: now_ms + 90 * day_ms, grpc: now_ms + 13 * day_ms } }],
  ['',                { certificates_until_ms: { grpc: now_ms + 15 * day_ms } }],
  ['console_plain_http', { wanted: { operator: { ...http, host: '0.0.0.0', console_plain_http: true } } }],
  ['',                { wanted: { operator: { ...http, console_plain_http: true } } }],
  ['',                { wanted: { operator: { ...http, host: '0.0.0.0', console_plain_http: true, tls: { folder: 'x' } } } }],
  ['root',            { uid: 0 }],
]

for (const [what, given] of risky) {
  test(`serve judges ${JSON.stringify(given)}: ${what || 'no risk'}`, () => {
    const found = risksOf({ ...safe, ...given })
    assert.equal(found.map((one) => one.what).join(), what)
    for (const { says } of found) assert.match(says, /; /, 'it says what helps')
  })
}

test('serve tells its risks in the log, and one line where nothing is logged', async () => {
  const lines = async (...flags: string[]): Promise<string> => {
    let stop = (): void => {}
    const argv = ['serve', '--http', '127.0.0.1:0', '--window', '0', ...flags]
    const { exit, err } = await run([...argv, '--db', join(folder.path, 'risks.lmdb')], {
      env: { CONVEYOR_RUNTIME_DIR: join(folder.path, 'run') },
      onWait: (end) => {
        stop = end
      },
      onOut: () => stop(),
    })
    assert.equal(exit, 0, err)
    return err
  }
  assert.match(
    await lines(),
    /"level":"warn".*"event":"risky","what":"window_off","says":"with --window 0/,
  )
  assert.match(await lines('--log-level', 'silent'), /^conveyor: --log-level silent: failures/)
})
