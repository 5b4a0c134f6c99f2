/**
 * Downloads of many processes as a zip, and `process export --all`: what they hold is imported into
 * another file and is the same there.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { signatureOf } from '../src/codec/signature.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { readExport } from '../src/files/read-export.ts'
import { zipOf } from '../src/files/zip-writer.ts'
import { exportAll } from '../src/management/export-all.ts'
import { openEngine } from '../src/open.ts'
import { definition, node, openHttp, type TestHttp } from './support/http-server.ts'

type Json = Readonly<Record<string, unknown>>
type Entry = Record<string, unknown>

const [admin, editor] = ['13001', '13002']
const secrets = new Map<string, string>()
let served: TestHttp

const processOf = (id: number, title: string, value = '{{env_var[@token]}}'): object => ({
  ...definition(id, [
    node('start', 1, [{ type: 'go', to_node_id: 'set' }]),
    node('set', 0, [
      { type: 'set_param', extra: { a: value }, extra_type: { a: 'string' }, err_node_id: 'end' },
      { type: 'go', to_node_id: 'end' },
    ]),
    node('end', 2, []),
  ]),
  title,
})

const file = (name: string, value: unknown) => ({
  name,
  text: JSON.stringify(value),
  is_found: true,
})

before(async () => {
  served = await openHttp()
  const { engine } = served
  secrets.set(admin, (await engine.users.add({ id: admin })).secret)
  secrets.set(editor, (await engine.users.add({ id: editor })).secret)
  await engine.users.administer(admin, true)
  await engine.processes.importFiles([
    file('5_shop.project/7_dev.stage/7_dev.stage.json', {
      ...{ obj_type: 6, obj_id: 7, title: 'dev/ünïcode', short_name: 'dev', project_id: 5 },
    }),
    file('5_shop.project/7_dev.stage/70_a.conv.json', processOf(70, 'a: "b"/ц')),
    file('5_shop.project/8_prod.stage/80_a.conv.json', processOf(80, 'x'.repeat(300))),
    file('5_shop.project/7_dev.stage/_ALIASES_.json', [{ short_name: 'orders', obj_to_id: 70 }]),
    file('5_shop.project/8_prod.stage/_ALIASES_.json', [{ short_name: 'orders', obj_to_id: 80 }]),
    file('5_shop.project/7_dev.stage/_ENV_VARS_.json', [
      { short_name: 'token', obj_id: 608, data_type: 'raw', value: 'dev' },
      { short_name: 'conf', data_type: 'json', value: '{"n":1.50,"s":"x"}' },
      { short_name: 'hidden', env_var_type: 'secret' },
    ]),
    file('9_plain.conv.json', processOf(9, 'plain', 'z'.repeat(90_000))),
    file('_ALIASES_.json', [{ short_name: 'plain', obj_to_id: 9 }]),
    file('_ENV_VARS_.json', [{ short_name: 'token', data_type: 'json', value: '"all"' }]),
  ])
  await engine.processes.share('70', editor, ['show', 'edit'])
})
after(() => served.close())

function signedPath(user: string, body: string): string {
  const time = String(Math.floor(served.engine.clock.now_ms() / 1000))
  return `${user}/${time}/${signatureOf(time, secrets.get(user) as string, body)}`
}

async function addresses(user: string, ops: readonly Json[]): Promise<Entry[]> {
  const body = JSON.stringify({ ops: ops.map((op) => ({ obj: 'obj_scheme', ...op })) })
  const path = `/api/2/download/${signedPath(user, body)}`
  const answer = await fetch(`http://127.0.0.1:${served.port}${path}`, { method: 'POST', body })
  return ((await answer.json()) as { ops: Entry[] }).ops
}

const get = (url: unknown, user: string): Promise<Response> =>
  fetch(`${url}/${signedPath(user, '')}`)

async function zipFrom(user: string, op: Json): Promise<Buffer> {
  const [{ proc, download_url } = {}] = await addresses(user, [{ format: 'zip', ...op }])
  assert.equal(proc, 'ok')
  const answer = await get(download_url, user)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/zip')
  return Buffer.from(await answer.arrayBuffer())
}

const read = (zip: Buffer) => readExport([{ name: 'x.zip', chunks: [zip] }])

async function namesIn(zip: Buffer): Promise<string[]> {
  return (await read(zip)).map(({ name }) => name.slice('x.zip/'.length)).sort()
}

/** What another file has after an import: definitions, aliases, stages. */
async function contentOf(engine: Engine): Promise<unknown> {
  const all = await exportAll(servedEngine(engine), {})
  return new Map(all.files.map(({ name, text }) => [name, JSON.parse(text)]))
}

async function withCopy(zip: Buffer, run: (engine: Engine) => Promise<void>): Promise<void> {
  const engine = await openEngine(':memory:')
  try {
    await engine.processes.importFiles(await read(zip))
    await run(engine)
  } finally {
    await engine.close()
  }
}

test('the root folder: imported elsewhere, all is the same, and a second import changes nothing', async () => {
  // That of the test server waits in a file of its own.
  const zip = await zipFrom(admin, { obj_type: 'folder', obj_id: 0, with_alias: true })
  const folder = '0_Root folder.folder/'
  assert.deepEqual(await namesIn(zip), [
    `${folder}1234_process 1234.conv.json`,
    `${folder}5_shop.project/7_dev_ünïcode.stage/70_a_ _b__ц.conv.json`,
    `${folder}5_shop.project/7_dev_ünïcode.stage/7_dev_ünïcode.stage.json`,
    `${folder}5_shop.project/7_dev_ünïcode.stage/_ALIASES_.json`,
    `${folder}5_shop.project/7_dev_ünïcode.stage/_ENV_VARS_.json`,
    `${folder}5_shop.project/8_prod.stage/80_${'x'.repeat(80)}.conv.json`,
    `${folder}5_shop.project/8_prod.stage/8_prod.stage.json`,
    `${folder}5_shop.project/8_prod.stage/_ALIASES_.json`,
    `${folder}9_plain.conv.json`,
    `${folder}_ALIASES_.json`,
    `${folder}_ENV_VARS_.json`,
  ])
  await withCopy(zip, async (engine) => {
    const [here, there] = [await contentOf(served.engine), await contentOf(engine)]
    assert.deepEqual(there, here)
    for (const conv_id of ['70', '80', '9', '1234']) {
      const [one, other] = await Promise.all(
        [served.engine, engine].map((of) => of.processes.show(conv_id)),
      )
      assert.equal(other?.definition_text, one?.definition_text)
      assert.equal(other?.hash, one?.hash)
    }
    const again = await engine.processes.importFiles(await read(zip))
    assert.deepEqual([...new Set(again.processes.map(({ state }) => state))], ['unchanged'])
  })
})

test('secrets have no value, others keep theirs with its type', async () => {
  const zip = await zipFrom(admin, { obj_type: 'stage', obj_id: 7 })
  const files = await read(zip)
  const variables = files.find(({ name }) => name.endsWith('_ENV_VARS_.json'))
  const rows = JSON.parse(variables?.text ?? '') as Entry[]
  const shown = rows.map((row) => [row.short_name, row.data_type, row.env_var_type, row.value])
  assert.deepEqual(shown, [
    ['conf', 'json', 'visible', '{"n":1.50,"s":"x"}'],
    ['token', 'raw', 'visible', 'dev'],
  ])
  assert.equal(rows.find(({ short_name }) => short_name === 'token')?.obj_id, 608)
})

test('a stage, a project, a process, and each address of several ops', async () => {
  const stage = await namesIn(await zipFrom(admin, { obj_type: 'stage', obj_id: 8 }))
  assert.ok(stage.every((name) => name.startsWith('8_prod.stage/')) && stage.length === 3)
  const project = await namesIn(await zipFrom(admin, { obj_type: 'project', obj_id: 5 }))
  assert.equal(project.filter((name) => name.endsWith('.conv.json')).length, 2)
  const process = await namesIn(await zipFrom(editor, { obj_type: 'conv', obj_id: 70 }))
  assert.equal(process.length, 3)
  const without = await zipFrom(editor, { obj_type: 'conv', obj_id: 70, with_alias: false })
  assert.ok((await namesIn(without)).every((name) => !name.endsWith('_ALIASES_.json')))
  const ops = [70, 80, 9].map((obj_id) => ({ obj_type: 'conv', obj_id, format: 'zip' }))
  const found = await addresses(admin, ops)
  assert.equal(new Set(found.map(({ download_url }) => download_url)).size, 3)
  for (const [at, { download_url }] of found.entries()) {
    const names = await namesIn(Buffer.from(await (await get(download_url, admin)).arrayBuffer()))
    assert.ok(names.some((name) => name.includes(`${[70, 80, 9][at]}_`)))
  }
})

test('an editor gets his processes in the folder, without variables', async () => {
  const names = await namesIn(await zipFrom(editor, { obj_type: 'folder', obj_id: 0 }))
  assert.deepEqual(
    names.filter((name) => !name.endsWith('.stage.json')).map((name) => name.split('/').at(-1)),
    ['70_a_ _b__ц.conv.json', '_ALIASES_.json'],
  )
  const [{ download_url } = {}] = await addresses(editor, [{ obj_type: 'folder' }])
  const list = (await (await get(download_url, editor)).json()) as Entry[]
  assert.deepEqual(
    list.map(({ obj_id }) => obj_id),
    [70],
  )
})

/** [what, user, op, proc] */
const refused: readonly (readonly [string, string, Json, string])[] = [
  ['a folder that is none', admin, { obj_type: 'folder', obj_id: 7 }, 'error'],
  ['a stage for a project', admin, { obj_type: 'project', obj_id: 7 }, 'error'],
  ['a stage for an editor', editor, { obj_type: 'stage', obj_id: 7 }, 'access_denied'],
  ['another format', admin, { obj_type: 'folder', format: 'tar' }, 'error'],
  ['another type', admin, { obj_type: 'dashboard', obj_id: 7 }, 'error'],
  ['a process without the right', editor, { obj_type: 'conv', obj_id: 80 }, 'access_denied'],
]
for (const [what, user, op, proc] of refused) {
  test(`${what} is refused`, async () => {
    const [answer] = await addresses(user, [op])
    assert.equal(answer?.proc, proc)
  })
}

test('an address changed, or of another user, leads nowhere', async () => {
  const op = { obj_type: 'conv', obj_id: 70, format: 'zip' }
  const [{ download_url } = {}] = await addresses(editor, [op])
  const url = String(download_url)
  const folder = String((await addresses(editor, [{ obj_type: 'folder' }]))[0]?.download_url)
  for (const [changed, user] of [
    [url, admin],
    [url.replace('.zip', '.json'), editor],
    [url.replace('conv_70_', 'stage_7_'), editor],
    [folder.replace('folder_0_', 'stage_7_'), editor],
    [folder.replace('_00000000', '_80000000'), editor],
  ] as const) {
    assert.equal((await get(changed, user)).status, 404, changed)
  }
})

test('a zip holds texts that compress better than an import takes, and empty ones', async () => {
  const texts = ['', 'short', JSON.stringify('a'.repeat(5_000_000))]
  const files = texts.map((text, at) => ({ name: `ж/${at}.json`, text }))
  const path = join(mkdtempSync(join(tmpdir(), 'zip-')), 'x.zip')
  writeFileSync(path, await zipOf(files, Date.UTC(2026, 10, 28, 1, 2, 3)))
  const found = await readExport([path])
  assert.deepEqual(
    found.map(({ name, text }) => [name.slice(path.length + 1), text]),
    files.map(({ name, text }) => [name, text]),
  )
})
