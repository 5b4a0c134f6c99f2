/**
 * Every verb on a real file that it opens itself: its output for people and programs, and its exit
 * code. The same verbs against a running server are in cli-serve.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openEngine } from '../src/open.ts'
import { callback_process, failing_process } from './support/cli-process.ts'
import { type Ran, type RunOptions, rowsOf, run, tempFolder } from './support/cli-run.ts'
import { pick } from './support/pick.ts'

const folder = tempFolder()
const db = join(folder.path, 'a.lmdb')
const definition = join(folder.path, 'order.conv.json')
after(() => folder.remove())

/** A verb on the file of this test. */
function on(line: string, options: RunOptions = {}): Promise<Ran> {
  return run([...line.split(' '), '--db', db], options)
}

async function ok(line: string, options: RunOptions = {}): Promise<string> {
  const { exit, out, err } = await on(line, options)
  assert.equal(exit, 0, `${line}: ${err}`)
  return out
}

async function okJson(line: string): Promise<Record<string, unknown>> {
  const [row, ...more] = rowsOf(await ok(`${line} --json`))
  assert.deepEqual(more, [], line)
  return row as Record<string, unknown>
}

before(async () => {
  writeFileSync(definition, JSON.stringify(callback_process))
  const failing = join(folder.path, 'failing.conv.json')
  writeFileSync(failing, JSON.stringify([failing_process]))
  await ok(`process import ${definition}`)
  await ok(`process import ${failing}`)
})

test('a verb on a missing file exits 3 and makes none', async () => {
  const missing = join(folder.path, 'missing.lmdb')
  const lines = ['check', 'task list 1', 'user list', 'process list', 'user rotate 1', 'backup x']
  for (const line of lines) {
    const { exit, err } = await run([...line.split(' '), '--db', missing])
    assert.equal(exit, 3, line)
    assert.match(err, /there is no file/)
  }
  assert.ok(!existsSync(missing))
})

test('a file that is no database exits 3', async () => {
  const { exit, err } = await run(['check', '--db', definition])
  assert.equal(exit, 3, err)
  assert.equal(err.split('\n').length, 2)
})

test('user add, list, rotate, remove', async () => {
  const first = await okJson('user add --id 14000 --name Ann')
  assert.deepEqual(Object.keys(first), ['id', 'secret'])
  assert.equal(first.id, 14000)
  assert.ok(String(first.secret).length >= 32)
  assert.match(await ok('user add'), /^user {4}14001\nsecret {2}\S{32,}\n.*only time/)
  assert.equal((await on('user add --id 14000')).exit, 1)

  const rotated = await okJson('user rotate 14000 --grace 1h')
  assert.notEqual(rotated.secret, first.secret)
  const users = rowsOf(await ok('user list --json'))
  assert.deepEqual(pick(users, 'id', 'name', 'secrets'), [
    [14000, 'Ann', 2],
    [14001, '', 1],
  ])
  const shown = await ok('user list')
  assert.match(shown, /^USER +NAME/)
  assert.ok(!shown.includes(String(rotated.secret)))

  await ok('user rotate 14000')
  assert.equal(rowsOf(await ok('user list --json'))[0]?.secrets, 1)
  const { secrets, key_id, old_key_id } = await okJson('user rekey')
  assert.equal(secrets, 2)
  const rekeyed = await ok('user rekey')
  assert.match(rekeyed, /^encrypted 2 secrets under the key [0-9a-f]{8}\nit is in .*a\.lmdb\.key: /)
  assert.ok(
    rekeyed.endsWith(`need the key ${key_id}: keep ${db}.key.${key_id} until they are gone\n`),
  )
  assert.ok(readdirSync(folder.path).includes(`a.lmdb.key.${old_key_id}`))
  assert.deepEqual(await okJson('user remove 14001'), { id: 14001, removed: true })
  assert.equal((await on('user remove 14001')).exit, 1)
})

test('user rekey --forget-secrets asks for the number of users', async () => {
  const lost = join(folder.path, 'lost.lmdb')
  const forget = (stdin: string, ...flags: string[]) =>
    run(['user', 'rekey', '--forget-secrets', '--db', lost, ...flags], { stdin })
  await run(['user', 'add', '--db', lost])
  const kept = await forget('1\n')
  assert.equal(kept.exit, 1)
  assert.match(kept.err, /nothing is lost: the secrets can be read/)
  rmSync(`${lost}.key`)
  const unsure = await forget('2\n')
  assert.equal(unsure.exit, 1)
  assert.match(unsure.err, /^all users \(1\) lose .* nothing was changed\n$/s)
  const { exit, out } = await forget('1\n')
  assert.equal(exit, 0)
  assert.match(
    out,
    /^forgot 1 secrets; .*\nit is in .*\n.* user rotate ID gives a new one: 13000\n$/,
  )
  const doctor = async () => (await run(['doctor', '--db', lost])).out
  assert.match(await doctor(), /^warn +users +13000 have no secret to sign with$/m)
  assert.equal((await run(['user', 'rotate', '13000', '--db', lost])).exit, 0)
  assert.doesNotMatch(await doctor(), /no secret to sign/)
  rmSync(`${lost}.key`)
  assert.equal((await forget('', '--yes', '--json')).exit, 0)
})

test('user console: what a user may on the operator’s page', async () => {
  await ok('user add --id 15600')
  const listed = async () =>
    rowsOf(await ok('user list --json')).find(({ id }) => id === 15600)?.console
  assert.equal(await listed(), undefined)
  for (const right of ['look', 'administer', 'operate']) {
    const json = await okJson(`user console 15600 ${right}`)
    assert.deepEqual([json, await listed()], [{ id: 15600, console: right }, right])
  }
  assert.match(await ok('user list'), /^15600 .* both +operate/m)
  await ok('user sign 15600 hmac')
  assert.equal(await listed(), 'operate')
  assert.deepEqual(await okJson('user console 15600 off'), { id: 15600, console: null })
  assert.equal(await listed(), undefined)
  await ok('user remove 15600')
  assert.equal((await on('user console 15600 all')).exit, 2)
  assert.equal((await on('user console 99 look')).exit, 1)
  const { exit, err } = await on('console link')
  assert.equal(exit, 1)
  assert.match(err, /no operator's page is served of this file: `.* serve --operator HOST:PORT`/)
})

test('user administer and share --can edit: the rights on processes over the API', async () => {
  await ok('user add --id 15700 --administer')
  await ok('user add --id 15701')
  const listed = async () =>
    pick(
      rowsOf(await ok('user list --json')).filter(({ id }) => Number(id) >= 15700),
      ...(['id', 'is_administrator'] as const),
    )
  assert.deepEqual(await listed(), [
    [15700, true],
    [15701, undefined],
  ])
  assert.match(await ok('user list'), /^15700 .* all \(administer\)/m)
  const given = await okJson('user administer 15701 on')
  assert.deepEqual(given, { id: 15701, administer: true })
  await ok('user sign 15701 hmac')
  await ok('user administer 15700 off')
  assert.deepEqual(await listed(), [
    [15700, undefined],
    [15701, true],
  ])
  assert.equal((await on('user administer 15700 maybe')).exit, 2)
  assert.equal((await on('user administer 99 on')).exit, 1)
  assert.equal((await on('process share 1234 15700 --can edit,all')).exit, 2)
  await ok('user remove 15700')
  await ok('user remove 15701')
})

test('user sign: which signatures a user may use', async () => {
  await ok('user add --id 15500 --sign hmac')
  await ok('user add --id 15501')
  const longer = ['path', 'path:sha256']
  assert.deepEqual(await okJson(`user sign 15501 ${longer}`), { id: 15501, sign: longer })
  assert.deepEqual(await okJson('user sign 15501 path'), { id: 15501, sign: 'path' })
  const listed = rowsOf(await ok('user list --json')).filter(({ id }) => Number(id) >= 15500)
  assert.deepEqual(pick(listed, 'id', 'sign'), [
    [15500, 'hmac'],
    [15501, 'path'],
  ])
  assert.match(await ok('user list'), /^15500 .* hmac/m)
  for (const line of ['user sign 15500 md5', 'user add --sign md5']) {
    const { exit, err } = await on(line)
    assert.equal(exit, 2)
    assert.match(err, /is one of path, .*path:sha512, hmac, both/)
  }
  assert.equal((await on('user sign 99 hmac')).exit, 1)
  await ok('user remove 15500')
  await ok('user remove 15501')
})

test('user bind, unbind, bindings', async () => {
  await ok('user add --id 16000')
  const fingerprint = `sha256:${'ab'.repeat(32)}`
  assert.equal(await ok('user bind 16000 uri:conveyor:billing'), '')
  const bound = await okJson('user bind --all dns:ops.local')
  assert.deepEqual(bound, { name: 'dns:ops.local', acts_as: 'all' })
  assert.deepEqual(await okJson(`user unbind ${fingerprint}`), { name: fingerprint, acts_as: null })
  assert.deepEqual(rowsOf(await ok('user bindings --json')), [
    { name: 'dns:ops.local', acts_as: 'all' },
    { name: fingerprint, acts_as: null },
    { name: 'uri:conveyor:billing', acts_as: 16000 },
  ])
  await ok('user unbind uri:conveyor:billing')
  const shown = await ok('user bindings')
  assert.match(shown, /^NAME +ACTS AS\n/)
  assert.match(shown, /^uri:conveyor:billing +refused$/m)

  assert.equal((await on('user bind 404 cn:x')).exit, 1)
  const bad = await on('user unbind sha256:ab')
  assert.equal(bad.exit, 1)
  assert.match(bad.err, /64 hex digits/)
  await ok('user remove 16000')
})

test('a key from the environment encrypts the secrets and is then required', async () => {
  const other = join(folder.path, 'keyed.lmdb')
  const env = { CONVEYOR_KEY: 'ab'.repeat(32), CONVEYOR_DB: other, CONVEYOR_JSON: '1' }
  assert.equal((await run(['user', 'add'], { env })).exit, 0)
  assert.ok(!readdirSync(folder.path).includes('keyed.lmdb.key'))
  const next = { ...env, CONVEYOR_NEW_KEY: 'cd'.repeat(32) }
  assert.equal((await run(['user', 'rekey'], { env: next })).exit, 0)
  const old = await run(['user', 'rotate', '13000'], { env })
  assert.equal(old.exit, 1)
  assert.match(old.err, /CONVEYOR_KEY is the key of another file/)
  const later = { ...env, CONVEYOR_KEY: 'cd'.repeat(32) }
  assert.equal((await run(['user', 'rotate', '13000'], { env: later })).exit, 0)

  const file = join(folder.path, 'new-key')
  writeFileSync(file, `${Buffer.alloc(32, 7).toString('base64')}\n`)
  const by_file = ['user', 'rekey', '--new-key-file', file]
  assert.equal((await run(by_file, { env: { ...later, CONVEYOR_NEW_KEY: 'ef' } })).exit, 2)
  const rekeyed = await run(by_file, { env: { ...later, CONVEYOR_JSON: '0' } })
  assert.match(rekeyed.out, /\nCONVEYOR_KEY must hold it from the next start on\n.*: keep it until/)
  const last = { ...env, CONVEYOR_KEY: '07'.repeat(32) }
  assert.equal((await run(['user', 'rotate', '13000'], { env: last })).exit, 0)
  writeFileSync(file, 'abcd')
  assert.match((await run(by_file, { env: last })).err, /a key is 32 bytes in hex or base64/)
})

test('process import: again, under another id, from standard input', async () => {
  const [again, counts] = rowsOf(await ok(`process import ${definition} --json`))
  assert.deepEqual([again?.conv_id, again?.version, again?.state], ['1234', 1, 'unchanged'])
  const waits_for = { handlers: [], variables: [], aliases: [], processes: [] }
  const brought = { aliases: [], variables: [], skipped: [] }
  const summary = { imported: 0, unchanged: 1, warned: 1, refused: 0, waits_for, ...brought }
  assert.deepEqual(counts, { summary })
  const [other] = rowsOf(await ok(`process import ${definition} --id 99 --json`))
  assert.equal(other?.conv_id, '99')
  const exported = await on('process import -', { stdin: await ok('process export 99') })
  assert.match(exported.out, /^process 99: unchanged, version 1\n/)
  const renamed = JSON.stringify({ ...callback_process, title: 'New' })
  const tried = await on('process import - --id 99 --dry-run', { stdin: renamed })
  assert.match(
    tried.out,
    /^process 99: updated, version 2\n[\s\S]*\na dry run: nothing is stored\n$/,
  )
  const { out, err } = await on('process import - --id 99', { stdin: `\ufeff${renamed}` })
  const last = 'imported 1, unchanged 0, warned 1, refused 0\n'
  assert.equal(out, `process 99: updated, version 2\n${last}`)
  assert.match(err, /warning: process \d+: .*time limit/)
  await ok('process remove 99')
})

test('process import --dry-run without a file answers, and makes none', async () => {
  const missing = join(folder.path, 'not-yet.lmdb')
  const dry = ['process', 'import', definition, '--dry-run', '--db', missing]
  const { exit, out } = await run(dry)
  assert.equal(exit, 0)
  assert.match(out, /^process 1234: created, version 1\n/)
  assert.ok(
    out.endsWith(`a dry run: nothing is stored, and there is no file ${missing} yet\n`),
    out,
  )
  assert.equal((await run([...dry, '--json'])).exit, 0)
  assert.ok(!readdirSync(folder.path).some((name) => name.startsWith('not-yet')))
})

test('a refused process import prints its warnings too', async () => {
  const [start, ...others] = callback_process.scheme.nodes
  const broken = { ...start, condition: { logics: [{ type: 'git_call' }], semaphors: [] } }
  const lost = { id: 'lost', title: 'Lost', obj_type: 0, condition: { logics: [], semaphors: [] } }
  const refused = { ...callback_process, scheme: { nodes: [broken, ...others, lost] } }
  const stdin = JSON.stringify(refused)
  const { exit, out, err } = await on('process import - --dry-run', { stdin })
  assert.equal(exit, 1)
  assert.match(err, /type "git_call" is not run here \(a handler in a program that embeds/)
  assert.match(err, /\n {2}warning: process 1234: .*"Lost": nothing leads here from the start\n/)
  assert.match(out, /, warned 1, refused \d/)
  const json = await on('process import - --json', { stdin })
  const { warnings } = JSON.parse(json.err) as { warnings: { text: string; conv_id: string }[] }
  assert.ok(warnings.some(({ text, conv_id }) => /nothing leads/.test(text) && conv_id === '1234'))
  await using engine = await openEngine(':memory:')
  const texts = warnings.map(({ text, ...of }) => ({ ...of, text: text.split('input: ')[1] }))
  await assert.rejects(engine.processes.put(refused), { code: 'bad_definition', warnings: texts })
})

test('process alias: set, listed, removed', async () => {
  await ok('process alias @paid 1234')
  assert.match(await ok('process aliases'), /^ALIAS +PROCESS +STAGE\n@paid +1234 +-\n$/)
  assert.deepEqual(await okJson('process aliases'), { name: 'paid', conv_id: '1234' })
  assert.deepEqual(await okJson('process alias paid --off'), { name: 'paid', conv_id: null })
  assert.equal(await ok('process aliases'), '')
  assert.equal((await on('process alias paid 4321')).exit, 1)
  assert.equal((await on('process alias paid')).exit, 2)
  assert.equal((await on('process alias paid 1234 --off')).exit, 2)
})

test('process webhook prints, opens and closes the addresses of a process', async () => {
  const path = /^\/api\/1\/json\/public\/1234\/[0-9a-f]{40}$/
  const closed = await okJson('process webhook 1234')
  assert.deepEqual([closed.address, closed.user], [null, null])
  const opened = await okJson('process webhook 1234 --new')
  assert.match(String(opened.address), path)
  assert.deepEqual(await okJson('process webhook 1234'), opened)
  assert.match(await ok('process webhook 1234'), /^webhook +\/api.*\ncallback \S+ +\/api.*\n$/)
  await ok('user add --id 16000')
  const demanding = await okJson('process webhook 1234 --basic-auth 16000')
  assert.deepEqual([demanding.address, demanding.user], [opened.address, '16000'])
  assert.match(await ok('process webhook 1234'), /\nuser +16000\n/)
  assert.notEqual((await okJson('process webhook 1234 --new')).address, opened.address)
  assert.equal((await on('process webhook 1234 --new --off')).exit, 2)
  assert.equal((await on('process webhook 1234 --off --basic-auth 16000')).exit, 2)
  assert.equal((await on('process webhook 1234 --basic-auth 16001')).exit, 1)
  assert.equal((await on('process webhook 404')).exit, 1)
  assert.match(await ok('process webhook 1234 --off'), /^webhook +-\n/)
  await ok('user remove 16000')
})

test('a bad definition names every mistake and stores none of the file', async () => {
  const bad = {
    ...callback_process,
    obj_id: 501,
    scheme: { nodes: [...callback_process.scheme.nodes, { id: 'x', obj_type: 9 }, { id: 'end' }] },
  }
  const stdin = JSON.stringify([{ ...callback_process, obj_id: 500 }, bad, 7])
  const people = await on('process import -', { stdin })
  assert.equal(people.exit, 1)
  assert.match(
    people.err,
    /\d mistakes in the definition, nothing was stored\n {2}standard input: definition 2: /,
  )
  assert.match(people.err, /definition 3: no JSON object/)
  assert.match(people.out, /^imported 0, unchanged 0, warned 2, refused [3-9]\n$/)
  const program = await on('process import - --json', { stdin })
  const [refused] = rowsOf(program.out) as [{ summary: { refused: number } }]
  assert.ok(refused.summary.refused >= 3)
  const { error, mistakes } = JSON.parse(program.err) as { error: string; mistakes: string[] }
  assert.equal(error, 'bad_definition')
  assert.ok(mistakes.length >= 3, String(mistakes))
  assert.equal((await on('process show 500')).exit, 1)

  const twice = JSON.stringify([callback_process, callback_process])
  assert.match((await on('process import -', { stdin: twice })).err, /a second one of 1234/)
  assert.equal((await on('process import -', { stdin: '{' })).exit, 1)
  assert.equal((await on('process import -', { stdin: Buffer.from([0xff]) })).exit, 1)
})

test('process list, show, export, share, unshare, pause, resume', async () => {
  await ok('user add --id 15000')
  const shared = await okJson('process share 1234 15000 --can create,show')
  assert.deepEqual(shared, { conv_id: '1234', user: 15000, can: ['create', 'show'] })
  assert.match(await ok('process list'), /^PROCESS +TITLE.*\n1234 +Order +active/)
  const details = await okJson('process show 1234')
  assert.deepEqual(details.shared_with, [{ user: '15000', can: ['create', 'show'] }])
  assert.ok(!('definition_text' in details))
  const page = await ok('process show 1234')
  assert.match(page, /shared +15000 \(create,show\)\n\nNODE +KIND/)
  assert.match(page, /Wait "bank" +logic +\d+ +0 +0 +callback +Done +wait/)
  assert.deepEqual(JSON.parse(await ok('process export 1234')), callback_process)

  await ok('process unshare 1234 15000')
  assert.match(await ok('process show 1234'), /shared +-\n/)
  assert.equal((await on('process share 1234 404')).exit, 1)

  assert.deepEqual(await okJson('process pause 1234'), { conv_id: '1234', status: 'paused' })
  const refused = await on('task create 1234')
  assert.deepEqual([refused.exit, refused.out], [1, ''])
  assert.match(refused.err, /conveyor_is_not_active/)
  assert.equal(await ok('process resume 1234'), '')
  assert.equal((await on('process pause 404')).exit, 1)
})

test('process export --all writes a zip that an import takes back', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'export-')), 'all.zip')
  const all = await okJson(`process export --all ${file}`)
  assert.deepEqual(Object.keys(all), ['file', 'processes'])
  assert.ok(Number(all.processes) >= 1)
  assert.match(await ok(`process import ${file}`), /process 1234: unchanged/)
  for (const words of [
    `process export --all ${file}`,
    'process export',
    `process export 1234 --all ${file}2`,
    'process export 1234 --stage x',
    `process export --stage x --all ${file}2`,
    `process export --project x --all ${file}2`,
  ]) {
    assert.notEqual((await on(words)).exit, 0, words)
  }
})

test('process show --mermaid draws every node and way, and no text breaks out', async () => {
  const drawn = await ok('process show 1234 --mermaid')
  assert.equal(
    drawn,
    [
      'flowchart TD',
      '  n0(["Start"])',
      '  n1["Wait #34;bank#34;"]',
      '  n2((("Done")))',
      '  n0 --> n1',
      '  n1 --> n2',
      '',
    ].join('\n'),
  )
})

test('a task from create to its end, numbers and masks kept', async () => {
  const made = await on('task create 1234 --ref m1 --data {"card":"4111","n":1.10} --json')
  const { obj_id } = JSON.parse(made.out) as { obj_id: string }
  assert.equal(made.out, `{"ref":"m1","obj_id":"${obj_id}","proc":"ok"}\n`)
  const shown = await ok('task show 1234 m1 --json')
  assert.ok(shown.includes('"data":{"card":"***","n":1.10}}'), shown)
  assert.equal(await ok(`task show 1234 ${obj_id} --json`), shown)
  assert.equal(await ok(`task show 1234 --obj-id ${obj_id.toUpperCase()} --json`), shown)
  assert.match(await ok('task show 1234 m1'), /status +delayed\n/)
  assert.match(await ok('process show 1234 --mermaid'), /Wait #34;bank#34;<br\/>1 task"/)

  const elsewhere = await on('task modify 1234 m1 --node start')
  assert.equal(elsewhere.exit, 1)
  assert.match(elsewhere.err, /no_api_callback_in_node_with_task/)
  assert.equal(await ok('task modify 1234 m1 --sync --data {"paid":true}'), 'modified\n')
  for (const task of ['m1', obj_id]) {
    assert.match(await ok(`task show 1234 ${task}`), /status +processed\n/)
  }
  assert.equal((await on('task modify 1234 m1 --json')).exit, 1)
  const history = await ok(`task show 1234 ${obj_id} --history`)
  assert.match(
    history,
    /\nTIME .*\n.* create .*\n.* go .* Wait "bank" .*\n.* callback .*\n.* go .* end\n$/,
  )
  const { history: entries } = JSON.parse(await ok(`task show 1234 ${obj_id} --history --json`))
  assert.deepEqual(
    entries.map(({ why }: { why: string }) => why),
    ['create', 'go', 'callback', 'go'],
  )

  await openEngine(db).then((engine) =>
    engine.task({ conv_id: 1234, obj_id }).then((task) => {
      assert.equal(task?.data_text, '{"card":"4111","n":1.10,"paid":true}')
      return engine.close()
    }),
  )
})

test('a ref that looks like an obj_id is named by --ref', async () => {
  const ref = 'a'.repeat(24)
  await ok(`task create 1234 --ref ${ref}`)
  assert.equal((await on(`task show 1234 ${ref}`)).exit, 1)
  await ok(`task show 1234 --ref ${ref}`)
  assert.equal(await ok(`task cancel 1234 --ref ${ref}`), 'canceled, was delayed in node wait\n')
  assert.equal((await on(`task cancel 1234 --ref ${ref}`)).exit, 1)
})

test('task list pages, filters and prints nothing for no tasks', async () => {
  const lines = Array.from({ length: 1203 }, (_, at) => `{"ref":"p${at}","data":{}}`).join('\n')
  await ok('task create 1234 --file - --json', { stdin: lines })
  const all = rowsOf(await ok('task list 1234 --json --limit 0'))
  assert.equal(all.length, 1203)
  assert.equal(new Set(all.map(({ obj_id }) => obj_id)).size, 1203)
  assert.equal(rowsOf(await ok('task list 1234 --json')).length, 100)
  assert.equal(rowsOf(await ok('task list 1234 --json --limit 7 --node wait')).length, 7)
  assert.equal(await ok('task list 1234 --node start'), '')
  assert.equal(await ok('task list 1234 --status failed'), '')
  assert.equal(rowsOf(await ok('task list 1234 --json --status processed')).length, 1)
  const table = await ok('task list 1234 --limit 0')
  const widths = new Set(
    table
      .split('\n')
      .slice(1, -1)
      .map((line) => line.indexOf('wait')),
  )
  assert.equal(widths.size, 1, 'columns stay aligned over pages')
  assert.equal((await on('task list 404')).exit, 1)
})

test('a failed task is shown with its reason, retried and canceled', async () => {
  assert.equal((await on('task create 77 --ref f --data {"text":"none"}')).exit, 0)
  const shown = await ok('task show 77 f')
  assert.match(shown, /status +failed\nwhy +set_param_wrong_convert_param/)
  assert.equal(rowsOf(await ok('task list 77 --status failed --json')).length, 1)
  assert.equal((await on('task retry 77 f --to nowhere')).exit, 1)
  await ok('task modify 77 f --data {"text":"7"}')
  const did = 'runs again: processed in node end, was failed in node start\n'
  assert.equal(await ok('task retry 77 f'), did)
  assert.equal(
    (await on('task retry 77 f')).err,
    'conveyor: refused, not_found_task: not found task\n',
  )
  assert.equal((await on('task create 77 --ref f --data {"text":"none"}')).exit, 0)
  await ok('task cancel 77 f')
  for (const action of ['retry 77 f', 'cancel 77 f', 'move 77 f --to end']) {
    const { exit, err } = await on(`task ${action}`)
    const says = 'conveyor: refused, not_found_task: not found task: it has ended, canceled\n'
    assert.deepEqual([exit, err], [1, says])
  }
})

test('backup writes a file that opens; check is silent where all is well', async () => {
  const copy = join(folder.path, 'copy.lmdb')
  const { path, bytes, key_id } = await okJson(`backup ${copy}`)
  assert.equal(path, copy)
  assert.match(
    await ok(`backup ${copy}.2`),
    new RegExp(`, whose secrets need the key ${key_id}\\n$`),
  )
  assert.ok(Number(bytes) > 0)
  assert.equal((await run(['check', '--db', copy])).out, '')
  const no_backup: [string, RegExp][] = [
    [copy, /copy\.lmdb exists already; name a file that does not/],
    [db, /a\.lmdb exists already/],
    [join(folder.path, 'none', 'copy'), /its folder does not exist; create it first/],
  ]
  for (const [to, says] of no_backup) {
    const { exit, err } = await on(`backup ${to}`)
    assert.equal(exit, 1)
    assert.match(err, says)
  }
  assert.equal(await ok('check'), '')
  assert.deepEqual((await okJson('check')).breaches, [])
})

test('a file held by a process without a socket exits 3 and names it', async () => {
  const engine = await openEngine(db, { background: false })
  const { exit, err } = await on('check')
  assert.equal(exit, 3)
  assert.match(err, new RegExp(`held by process ${process.pid}`))
  await engine.close()
  await ok('check')
})

test('serve in this process: one line, then it ends on a stop signal', async () => {
  const stopped = await on('serve --http off --json', { onWait: stopSoon() })
  assert.equal(stopped.exit, 0, stopped.err)
  const off = { http: null, http_sync: null, grpc: null, operator: null, page: null }
  const listening = { event: 'listening', ...off }
  const line = { ...listening, db, pid: process.pid }
  assert.deepEqual(rowsOf(stopped.out), [line])
  const people = await on('serve --http 127.0.0.1:0 --base /x', { onWait: stopSoon() })
  assert.match(people.out, /^http {2}http:\/\/127\.0\.0\.1:\d+\/x\ngrpc {2}off\ndb {4}/)
  const sync = 'serve --http off --http-sync 127.0.0.1:0 --public-url https://x.example'
  const waiting = await on(`${sync} --json`, { onWait: stopSoon() })
  assert.match(String(rowsOf(waiting.out)[0]?.http_sync), /^http:\/\/127\.0\.0\.1:\d+$/)
  const lines = await on(sync, { onWait: stopSoon() })
  assert.match(lines.out, /^http {2}off\nsync {2}http:\/\/127\.0\.0\.1:\d+\ngrpc {2}off\ndb {4}/)
  assert.match((await on('serve --http-sync x')).err, /--http-sync takes HOST:PORT/)
  const odd = await on('serve --http 127.0.0.1:0 --unverified-bytes-max 1')
  assert.equal(odd.exit, 2, odd.err)
})

test('serve that cannot listen exits 3 and releases the file', async () => {
  const { exit, err } = await on('serve --http 192.0.2.1:80')
  assert.equal(exit, 3)
  assert.match(err, /cannot listen on 192\.0\.2\.1 port 80/)
  await ok('check')
})

/** Stops a verb a moment after it begins to wait. */
function stopSoon(): (stop: () => void) => void {
  return (stop) => void setTimeout(stop, 50)
}
