/**
 * Exports on disk: what is read of files, folders and archives, that archives made to do harm are
 * refused with a sentence, and that what is read is stored in one transaction.
 */

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { isObject, parseJson, stringifyJson } from '../src/codec/json.ts'
import type { JsonObject, JsonValue } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import type { ExportFile } from '../src/engine/api/process-api.ts'
import { readExport } from '../src/files/read-export.ts'
import { openEngine } from '../src/open.ts'
import { handler_types } from '../src/process/logics/table.ts'
import { rowsOf, run, tempFolder } from './support/cli-run.ts'
import { top } from './support/package-folder.ts'
import { pick } from './support/pick.ts'
import { node } from './support/processes.ts'
import { type ZipEnd, type ZipEntry, zip64, zipOf } from './support/zip-file.ts'

const folder = tempFolder()
after(() => folder.remove())

function write(name: string, content: string | Buffer | object): string {
  const path = join(folder.path, name)
  mkdirSync(dirname(path), { recursive: true })
  const is_raw = typeof content === 'string' || Buffer.isBuffer(content)
  writeFileSync(path, is_raw ? content : JSON.stringify(content))
  return path
}

function processOf(obj_id: number, conv_id?: unknown): JsonObject {
  const copy = { type: 'api_copy', mode: 'create', conv_id, data: {}, data_type: {} } as JsonObject
  const go = { type: 'go', to_node_id: 'end' }
  const nodes: JsonObject[] = [
    node('start', 1, conv_id === undefined ? [go] : [copy, go]),
    { id: 'end', obj_type: 2 },
  ]
  return { obj_type: 1, obj_id, parent_id: 9, title: `P${obj_id}`, scheme: { nodes } }
}

const alias = (short_name: string, obj_to_id: number | null) => ({
  ...{ description: '', obj_id: 1, obj_to_id, obj_to_title: 'P', obj_to_type: 'conv' },
  ...{ obj_type: 9, parent_id: 8, short_name, title: short_name, uuid: 'aaaa' },
})
const variable = (short_name: string, value: unknown, more: object = {}) => ({
  ...{ short_name, title: 'a title', data_type: 'raw', env_var_type: 'visible', value },
  ...more,
})

const aliases = [alias('other', 2), alias('nothing', null)]
const variables = [
  variable('url', 'http://x'),
  variable('limits', '{"a":1.10}', { data_type: 'json' }),
  variable('token', null, { env_var_type: 'secret' }),
]
const marker = { obj_type: 0, obj_id: 9, parent_id: 0, title: 'F', description: '' }

/** As the service exports a folder: everything under one folder, in folders. */
const tree: Tree = [
  ['9_F.folder/9_F.folder.json', marker],
  ['9_F.folder/_ALIASES_.json', aliases],
  ['9_F.folder/_ENV_VARS_.json', variables],
  ['9_F.folder/1_P1.conv.json', processOf(1, '@other')],
  ['9_F.folder/10_G.folder/2_P2.conv.json', processOf(2)],
  ['9_F.folder/10_G.folder/3_P3.conv.json', { ...processOf(3), scheme: { nodes: [] } }],
]

type Tree = readonly (readonly [name: string, content: object])[]
const zipped = (files: Tree, nameIn = (name: string) => name): Buffer =>
  zipOf(files.map(([name, content]) => ({ name: nameIn(name), text: JSON.stringify(content) })))
const archive = zipped(tree)

/** As the service exports a stage: other objects beside, and names encoded as UTF-8 twice. */
const stage: Tree = [
  ...tree.map(([name, content]) => [`7_дім_рік.stage/${name}`, content] as const),
  ['7_дім_рік.stage/7_дім_рік.stage.json', { obj_type: 6, obj_id: 7, title: 'дім' }],
  ['7_дім_рік.stage/8_db.instance.json', { obj_id: 8, title: 'db', data: { password: 'x' } }],
  ['7_дім_рік.stage/.git/9_x.conv.json', []],
]
for (const [name, content] of stage) write(`stage/${name}`, content)
const twice = (name: string): string => Buffer.from(name).toString('latin1')
const packed = (name: string, bytes: Buffer): ZipEntry => ({ name, text: bytes, stored: true })
const stage_zip = zipOf([packed('stage_7_7.zip', zipped(stage, twice))])
const instance = write('8_db.instance.json', { obj_id: 8, instance_type: 'mysql', data: {} })
const nested = {
  ...marker,
  list: [processOf(1, '@other'), { ...marker, obj_id: 10, children: [processOf(2)] }],
  scheme: [{ ...processOf(3), scheme: { nodes: [] } }],
}
for (const [name, content] of tree) write(`tree/${name}`, content)
write('tree/package.json', { name: 'x', version: '1' })
write('tree/readme.txt', 'text')
write('tree/empty/_ALIASES_.json', [])
write('tree/.git/x.json', 'broken')
write('tree/node_modules/y/x.conv.json', 'broken')
symlinkSync('/etc', join(folder.path, 'tree/9_F.folder/etc'))
symlinkSync(write('outside.json', processOf(66)), join(folder.path, 'tree/9_F.folder/6.conv.json'))
write('zips/all.zip', archive)

// [what is given, whether it brings variables, what is skipped, the stage that it is of]
const exports: readonly (readonly [string, string[], boolean, string[], string?])[] = [
  ['a directory', [join(folder.path, 'tree')], true, [join(folder.path, 'tree/package.json')]],
  ['a zip', [write('all.zip', archive)], true, []],
  ['a directory with a zip', [join(folder.path, 'zips')], true, []],
  ['a zip by content, not by name', [write('all.bin', archive)], true, []],
  ['a stage', [write('stage.zip', zipped(stage))], true, [], '7'],
  ['a directory of a stage', [join(folder.path, 'stage')], true, [], '7'],
  ['a zip in a zip', [write('stage_7.zip', stage_zip)], true, [], '7'],
  ['that in a zip', [write('in.zip', zipOf([packed('a/b.zip', stage_zip)]))], true, [], '7'],
  ['files, one by one', tree.map(([name, content]) => write(`one/${name}`, content)), true, []],
  ['a folder file and aliases', [write('f.json', nested), write('a.json', aliases)], false, []],
  ['an array', [write('array.json', [...aliases, nested])], false, []],
  [
    'a folder file beside what it connects to',
    [join(folder.path, 'f.json'), write('a.json', aliases), instance],
    false,
    [],
  ],
]

for (const [what, paths, has_variables, skipped, stage_id] of exports) {
  const of = stage_id === undefined ? {} : { stage_id }
  test(`imports ${what}`, async () => {
    await using engine = await openEngine(':memory:')
    const result = await engine.processes.importFiles(await readExport(paths))
    const states = (list: readonly { state: string }[]) => list.map(({ state }) => state)
    const ids = result.processes.map(({ conv_id }) => conv_id).sort()
    assert.deepEqual([ids, states(result.processes)], [['1', '2', '3'], Array(3).fill('created')])
    assert.deepEqual(result.aliases, [{ name: 'other', conv_id: '2', ...of, state: 'created' }])
    const brought = [
      { name: 'url', ...of, state: 'created' },
      { name: 'limits', ...of, state: 'created' },
      { name: 'token', ...of, state: 'not_stored' },
    ]
    assert.deepEqual(result.variables, has_variables ? brought : [])
    assert.deepEqual(result.skipped, skipped)
    assert.equal((await engine.processes.show(3)).status, 'draft')
    const again = await engine.processes.importFiles(await readExport(paths))
    assert.deepEqual(
      new Set([...states(again.processes), ...states(again.aliases)]),
      new Set(['unchanged']),
    )
    assert.deepEqual((await engine.check()).breaches, [])
  })
}

test('imported variables have values, given ones come first, secrets are not stored', async () => {
  await using engine = await openEngine(':memory:', { variables: { url: 'given' } })
  const reads = processOf(1)
  const set = {
    ...{ type: 'set_param', extra_type: {} },
    extra: { got: '{{env_var[@url]}} {{env_var[@limits].a}} {{env_var[@token]}}' },
  }
  const [start] = (reads.scheme as { nodes: { condition: { logics: object[] } }[] }).nodes
  start?.condition.logics.unshift(set)
  const env = [...variables.slice(0, 2), variable('token', 'a secret', { env_var_type: 'secret' })]
  const paths = [write('v/1.conv.json', reads), write('v/_ENV_VARS_.json', env)]
  const { processes } = await engine.processes.importFiles(await readExport(paths))
  assert.deepEqual(processes[0]?.waits_for.variables, ['token'])
  const got = async () => {
    const nodes = reads.scheme as { nodes: { options?: string }[] }
    nodes.nodes[1] = { ...nodes.nodes[1], options: '{"save_task":true}' }
    await engine.processes.put(reads)
    const { obj_id } = await engine.create({ conv_id: 1, data: {} })
    return (await engine.task({ conv_id: 1, obj_id: obj_id as string }))?.data
  }
  assert.deepEqual(await got(), { got: 'given 1.10 ' })
  engine.setVariables({})
  assert.deepEqual(await got(), { got: 'http://x 1.10 ' })
  // The other shape: a map of names.
  const map = { url: { description: 'x', value: 'mapped' }, none: { description: 'y' } }
  const again = await engine.processes.importFiles(
    await readExport([write('m/_ENV_VARS_.json', map)]),
  )
  assert.deepEqual(again.variables, [
    { name: 'url', state: 'updated' },
    { name: 'none', state: 'not_stored' },
  ])
  assert.deepEqual(await got(), { got: 'mapped 1.10 ' })
})

const ok: ZipEntry = { name: 'w/1_P1.conv.json', text: JSON.stringify(processOf(1)) }
const json = (name: string, says: NonNullable<ZipEntry['says']>): ZipEntry => ({
  ...ok,
  name,
  says,
})
const ff = 0xffffffff
const letters = 'a'.repeat(1024 * 1024)

// [what is wrong, entries, what the end says, the mistake]
const hostile: readonly (readonly [string, ZipEntry[], ZipEnd, RegExp])[] = [
  ['an absolute name', [json('/etc/x.json', {})], {}, /absolute path/],
  ['a way out', [json('w/../../x.json', {})], {}, /invalid relative path/],
  ['a backslash', [json('w\\..\\x.json', {})], {}, /invalid characters in fileName/],
  ['a drive letter', [json('C:/x.json', {})], {}, /absolute path/],
  ['a long name', [json(`${'x'.repeat(1_000)}.json`, {})], {}, /has a name over 1000 characters/],
  ['a NUL', [json('w/a\0.json', {})], {}, /has a control character in its name/],
  ['a link', [json('w/x.json', { mode: 0o120777 })], {}, /is a link or a special file/],
  ['a device', [json('w/dev', { mode: 0o020666 })], {}, /is a link or a special file/],
  ['an encrypted entry', [json('w/x.json', { flags: 0x801 })], {}, /is encrypted/],
  ['an unknown method', [json('w/x.json', { method: 14 })], {}, /unsupported compression method/],
  ['a wrong checksum', [json('w/x.json', { crc: 7 })], {}, /its checksum is wrong/],
  ['the same name twice', [ok, ok], {}, /is there twice/],
  ['too many bytes stated', [json('w/x.json', { size: 2 ** 30 })], {}, /over 16777216 bytes/],
  ['more bytes than stated', [json('w/x.json', { size: 10 })], {}, /too many bytes/],
  ['fewer bytes than stated', [json('w/x.json', { size: 5_000 })], {}, /not enough bytes/],
  ['a bomb', [{ name: 'w/x.json', text: letters }], {}, /grows more than 250 times/],
  ['an entry over another', [ok, json('w/y.json', { offset: 5 })], {}, /overlaps another entry/],
  ['data beyond the file', [json('w/x.json', { packed: 9_999 })], {}, /overflows|exceeds|bounds/],
  ['an entry that is not there', [json('w/x.json', { offset: 2 ** 31 })], {}, /./],
  [
    'a size of 2^53 in zip64',
    [json('w/x.json', { size: ff, extra: zip64(2n ** 53n) })],
    {},
    /over 16777216 bytes|too large|safe/,
  ],
  ['a zip64 size that is not there', [json('w/x.json', { size: ff })], {}, /./],
  ['more entries than there are', [ok], { count: 9 }, /invalid central directory|unexpected|./],
  ['a directory elsewhere', [ok], { directory_at: 3 }, /invalid central directory/],
  ['a name that is no UTF-8', [{ name: 'w/x.json', text: Buffer.from([0xff]) }], {}, /not UTF-8/],
]

for (const [what, entries, end, mistake] of hostile) {
  test(`refuses an archive with ${what}`, async () => {
    const path = write('hostile.zip', zipOf(entries, end))
    const error = await readExport([path]).then(
      () => assert.fail('was read'),
      (thrown: { code: string; mistakes: string[] }) => thrown,
    )
    assert.equal(error.code, 'bad_definition')
    assert.match(String(error.mistakes), mistake)
    assert.ok(String(error.mistakes).includes('hostile.zip'), String(error.mistakes))
    assert.ok(String(error.mistakes).length < 1_000)
  })
}

/** An archive in an archive, so many of them. */
function zipsIn(depth: number, entry: ZipEntry): Buffer {
  const inner = zipOf([entry])
  return depth === 1 ? inner : zipsIn(depth - 1, packed(`${depth}.zip`, inner))
}

// [what is wrong, the archive, the mistake]
const hostile_zips: readonly (readonly [string, Buffer, RegExp])[] = [
  ['too deep', zipsIn(5, ok), /\/5\.zip: more than 4 archives in one another$/],
  ['none', zipsIn(2, { name: 'x.zip', text: 'text' }), /hostile\.zip\/2\.zip\/x\.zip: /],
  ['with a way out', zipsIn(3, json('../x.json', {})), /invalid relative path/],
  ['a bomb', zipsIn(3, { name: 'x.json', text: letters }), /grows more than 250 times/],
  ['a packed bomb', zipsIn(2, { name: 'x.zip', text: letters }), /grows more than 250 times/],
  ['the same twice', zipOf([packed('a.zip', archive), packed('a.zip', archive)]), /is there twice/],
]

for (const [what, bytes, mistake] of hostile_zips) {
  test(`refuses an archive in an archive: ${what}`, async () => {
    await assert.rejects(readExport([write('hostile.zip', bytes)]), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'bad_definition')
      assert.match(error.message, mistake)
      return true
    })
  })
}

test('archives in an archive share one budget of entries, files and bytes', async () => {
  const many = zipOf([ok], { count: 0xffff })
  const few = ['a', 'b', 'c'].map((name) => packed(`${name}.zip`, many))
  await assert.rejects(readExport([write('many.zip', zipOf(few))]), {
    code: 'bad_definition',
    message: /many\.zip\/b\.zip: more than 100000 entries$/,
  })
  // Such repeats grow about 100 times, which is no bomb yet.
  const some = Array.from({ length: 4_000 }, (_, at) => (at * 7_919) % 9_973).join()
  const inner = zipOf([{ name: 'x.json', text: Buffer.alloc(11 * 1024 * 1024, some) }])
  const large = ['a', 'b', 'c'].map((name) => packed(`${name}.zip`, inner))
  await assert.rejects(readExport([write('large.zip', zipOf(large))]), {
    code: 'bad_definition',
    message: /large\.zip\/c\.zip: more than 33554432 bytes$/,
  })
})

test('a process without an id has that of its file', async () => {
  await using engine = await openEngine(':memory:')
  const { obj_id: _none, ...bare } = processOf(1)
  const last = '12345678901234567890'
  const paths = [
    write('n/4711_A_name.conv.json', bare),
    write('n/5_x.conv.json', { ...bare, obj_id: null }),
    write(`n/${last}_дім.conv.json`, { ...bare, obj_id: '' }),
    write('n/9999_other.conv.json', processOf(42)),
  ]
  const put = async (given: string[], options = {}) => {
    const { processes } = await engine.processes.importFiles(await readExport(given), options)
    return processes.map(({ conv_id, state }) => `${conv_id} ${state}`)
  }
  const ids = ['4711', '5', last, '42']
  assert.deepEqual(
    await put(paths),
    ids.map((id) => `${id} created`),
  )
  assert.deepEqual(
    await put(paths),
    ids.map((id) => `${id} unchanged`),
  )
  assert.deepEqual(await put(paths.slice(0, 1), { map: { 4711: '7' } }), ['7 created'])
  assert.deepEqual(await put(paths.slice(0, 1), { conv_id: 8 }), ['8 created'])
  assert.match((await engine.processes.show(4711)).definition_text, /"obj_id":4711/)
  for (const [name, content] of [
    ['n/name.conv.json', bare],
    ['n/4712.conv.json', bare],
    ['n/4712_x.json', bare],
    ['n/4712_x.conv.json', [bare]],
  ] as const) {
    await assert.rejects(put([write(name, content)]), { message: /obj_id is missing/ })
  }
})

test('an archive with too many entries, or too much in all, is refused at once', async () => {
  const many = zipOf([ok], { count: 0xffff })
  const paths = [write('many-1.zip', many), write('many-2.zip', many)]
  await assert.rejects(readExport(paths), { code: 'bad_definition' })
  const each = Buffer.alloc(15 * 1024 * 1024, JSON.stringify({ a: 'b', c: 12_345 }))
  const says = { says: { packed: 1024 * 1024 } }
  const large = ['a', 'b', 'c'].map((name) => ({ name: `${name}.json`, text: each, ...says }))
  await assert.rejects(readExport([write('large.zip', zipOf(large))]), {
    code: 'bad_definition',
    message: /large\.zip: more than 33554432 bytes$/,
  })
})

test('cut archives and random bytes are mistakes, never crashes', async () => {
  for (let cut = 1; cut < archive.length; cut += 37) {
    const bytes = Buffer.from(archive)
    const at = (cut * 31) % bytes.length
    bytes[at] = (bytes[at] as number) ^ 0x55
    for (const given of [bytes.subarray(0, archive.length - cut), bytes]) {
      await readExport([{ name: 'x.zip', chunks: [given] }]).catch((error: { code: string }) =>
        assert.equal(error.code, 'bad_definition'),
      )
    }
  }
})

test('every mistake names its file and place, and nothing is stored', async () => {
  await using engine = await openEngine(':memory:')
  const broken = { ...processOf(5), scheme: { nodes: [{ id: 'x', obj_type: 9 }] } }
  const paths = [
    write('bad/1.conv.json', processOf(1)),
    write('bad/again.json', [processOf(4), { ...marker, list: [processOf(1), broken] }]),
    write('bad/text.json', '{"a":'),
    write('bad/number.json', '7'),
    write('bad/_ALIASES_.json', [alias('x', 1), alias('', 2)]),
    write('bad/more/_ALIASES_.json', [alias('x', 2)]),
    write('bad/_ENV_VARS_.json', [variable('j', '{secret', { data_type: 'json' })]),
    write('bad/two/_ENV_VARS_.json', [variable('v', 'secret 1'), variable('v', 'secret 2')]),
  ]
  const error = await engine.processes.importFiles(await readExport(paths)).then(
    () => assert.fail('was stored'),
    (thrown: { mistakes: string[] }) => thrown,
  )
  const at = (name: string): string => join(folder.path, 'bad', name)
  const expected: [string, RegExp][] = [
    ['again.json', /: definition 2: list\[0\]: a second one of 1, after .*bad\/1\.conv\.json$/],
    ['again.json', /: definition 2: list\[1\]: nodes\[0\] "x": obj_type is 9/],
    ['text.json', /: /],
    ['number.json', /: no JSON object$/],
    ['_ALIASES_.json', /: definition 2: "" cannot name an alias$/],
    ['more/_ALIASES_.json', /alias @x is another one than in .*bad\/_ALIASES_\.json/],
    ['_ENV_VARS_.json', /: definition 1: variable @j is no JSON: /],
    ['two/_ENV_VARS_.json', /: definition 2: variable @v is another one than in /],
  ]
  for (const [name, says] of expected) {
    const found = error.mistakes.some((one) => one.startsWith(at(name)) && says.test(one))
    assert.ok(found, `${name} ${says}: ${error.mistakes.join('\n')}`)
  }
  assert.ok(!String(error.mistakes).includes('secret'))
  assert.deepEqual(await engine.processes.list(), [])
  assert.deepEqual(await engine.processes.aliases(), [])
  await assert.rejects(readExport([at('none'), write('bad/x.json', Buffer.from([0xff]))]), {
    mistakes: [`${at('none')}: there is no such file`, `${at('x.json')}: not UTF-8 text`],
  })
})

test('process import prints what it did and what waits for what', async () => {
  const db = join(folder.path, 'cli.lmdb')
  const uses = processOf(1, '@gone')
  uses.title = '{{env_var[@a]}}'
  const call = processOf(4, 77)
  const paths = [write('cli/1.json', uses), write('cli/4.json', call), write('cli/e.zip', archive)]
  const clash = await run(['process', 'import', ...paths, '--db', db])
  assert.equal(clash.exit, 1)
  assert.match(
    clash.err,
    /e\.zip\/9_F\.folder\/1_P1\.conv\.json: a second one of 1, after .*1\.json/,
  )
  assert.equal(clash.out, 'imported 0, unchanged 0, warned 1, refused 1\n')
  const done = await run(['process', 'import', ...paths.slice(0, 2), '--db', db])
  assert.equal(done.exit, 0, done.err)
  assert.deepEqual(done.out.split('\n').slice(2), [
    'imported 2, unchanged 0, warned 2, refused 0',
    'waits for aliases @gone: to be set by `process alias NAME ID`, or imported',
    'waits for processes 77: to be imported, or other ids for them given by `--map OLD=NEW`',
    '',
  ])
  const zip = await run(['process', 'import', paths[2] as string, '--json', '--db', db])
  const { summary } = rowsOf(zip.out).at(-1) as { summary: JsonObject }
  assert.deepEqual(
    { ...summary, waits_for: null },
    {
      ...{ imported: 3, unchanged: 0, warned: 1, refused: 0, waits_for: null, skipped: [] },
      aliases: [{ name: 'other', conv_id: '2', state: 'created' }],
      variables: [
        { name: 'url', state: 'created' },
        { name: 'limits', state: 'created' },
        { name: 'token', state: 'not_stored' },
      ],
    },
  )
  const stdin = await run(['process', 'import', '-', '--db', db], { stdin: archive })
  assert.match(stdin.out, /variable @token: a secret, not stored\n/)
  assert.match(stdin.out, /imported 0, unchanged 3, warned 1, refused 0/)
  const none = await run(['process', 'import', join(folder.path, 'none'), '--db', db])
  assert.deepEqual([none.exit, none.out], [2, ''])
})

/** Every object with nodes in a JSON value. */
function definitionsIn(value: JsonValue): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(definitionsIn)
  if (!isObject(value)) return []
  if (isObject(value.scheme) && Array.isArray(value.scheme.nodes)) return [value]
  return Object.values(value).flatMap(definitionsIn)
}

test('a file over the bounds is read no further than they go', async () => {
  let mebibytes = 0
  const endless = function* () {
    for (;;) {
      mebibytes++
      yield Buffer.alloc(1024 * 1024, ' ')
    }
  }
  await assert.rejects(readExport([{ name: 'x', chunks: endless() }]), {
    mistakes: ['x: over 33554432 bytes'],
  })
  assert.equal(mebibytes, 33)
  const long = write('long.json', `[${' '.repeat(16 * 1024 * 1024)}]`)
  await assert.rejects(readExport([long]), { mistakes: [`${long}: over 16777216 bytes`] })
  let deep = 'deep'
  for (let level = 0; level < 40; level++) deep = join(deep, 'd')
  write(join(deep, 'x.json'), '{}')
  await assert.rejects(readExport([join(folder.path, 'deep')]), {
    message: /nested deeper than 32 folders/,
  })
})

test('an id for the one definition goes for the aliases that lead to it', async () => {
  await using engine = await openEngine(':memory:')
  const files = await readExport([write('id.json', [processOf(2), alias('me', 2), alias('o', 3)])])
  const { processes, aliases: named } = await engine.processes.importFiles(files, {
    conv_id: '007',
  })
  assert.equal(processes[0]?.conv_id, '007')
  assert.deepEqual(pick(named, 'conv_id'), ['007', '3'])
  assert.match((await engine.processes.show('007')).definition_text, /"obj_id":"007"/)
})

test('a kind that nothing runs here, where no task comes, waits for its handler', async () => {
  await using engine = await openEngine(':memory:')
  const definition = processOf(1)
  const call = { type: 'db_call', query: 'x' }
  const { nodes } = definition.scheme as { nodes: JsonObject[] }
  nodes.push({
    ...{ id: 'apart', obj_type: 0 },
    condition: { logics: [call, { type: 'go', to_node_id: 'end' }] },
  })
  const put = await engine.processes.put(definition)
  assert.deepEqual(put.waits_for.handlers, ['db_call'])
  engine.handle('db_call', () => ({}))
  assert.deepEqual((await engine.processes.put(definition)).waits_for.handlers, [])
})

test('what is exported imports as unchanged, for every definition in the repository', async () => {
  await using engine = await openEngine(':memory:')
  await using other = await openEngine(':memory:')
  for (const type of handler_types) for (const one of [engine, other]) one.handle(type, () => ({}))
  let accepted = 0
  for (const place of ['src/examples', 'test/vectors']) {
    for (const name of readdirSync(join(top, place), { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.json')) continue
      const found = definitionsIn(parseJson(readFileSync(join(top, place, name), 'utf8')))
      for (const [at, definition] of found.entries()) {
        const file = { name: `${name} ${at}`, text: stringifyJson(definition) }
        const conv_id = `x${accepted}`
        const put = await engine.processes.importFiles([file], { conv_id }).catch(() => undefined)
        if (put === undefined) continue
        accepted++
        const made = await exported(engine, conv_id)
        for (const [given, own] of [
          [file, { conv_id }],
          [made, {}],
        ] as const) {
          const [again] = (await engine.processes.importFiles([given], own)).processes
          assert.deepEqual([again?.state, again?.conv_id], ['unchanged', conv_id], file.name)
        }
        await other.processes.importFiles([made])
        assert.equal((await exported(other, conv_id)).text, made.text)
      }
    }
  }
  assert.ok(accepted > 60, String(accepted))
})

async function exported(engine: Engine, conv_id: string): Promise<ExportFile> {
  return { name: conv_id, text: (await engine.processes.show(conv_id)).definition_text }
}
