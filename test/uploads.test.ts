/** Uploads of schemes, as forms and as ops: what is made, what is refused, and what is signed. */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundaryOf, partsOf, signedText } from '../src/codec/multipart.ts'
import { signatureOf } from '../src/codec/signature.ts'
import type { ServedEngine } from '../src/engine/served-engine.ts'
import { answerOthers } from '../src/management/requests.ts'
import { definition, node, openHttp } from './support/http-server.ts'
import { zipOf } from './support/zip-file.ts'

type Json = Readonly<Record<string, unknown>>
type Entry = Record<string, unknown>

const boundary = '5b9d0c0f7e6a4d2b'
const form_type = `multipart/form-data; boundary=${boundary}`

function form(parts: Readonly<Record<string, string | Buffer>>, between = boundary): Buffer {
  const pieces = Object.entries(parts).map(([name, value]) => {
    const file =
      name === 'scheme' ? '; filename="a-b.json"\r\nContent-Type: application/octet-stream' : ''
    const head = `--${between}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`
    return Buffer.concat([Buffer.from(head), Buffer.from(value), Buffer.from('\r\n')])
  })
  return Buffer.concat([...pieces, Buffer.from(`--${between}--\r\n`)])
}

/** As `genMultipartSignature` of a client of the service makes it of `form({ obj, scheme })`. */
const text_of_form =
  'Content-Disposition: form-data; name="obj"\r\nobj_scheme' +
  'Content-Disposition: form-data; name="scheme"; filename="a-b.json"\r\n' +
  'Content-Type: application/octet\r\n[]'

test('the text that clients sign is the form without its boundaries and ends of lines', () => {
  const body = form({ obj: 'obj_scheme', scheme: '[]' })
  assert.equal(signedText(body, boundary)?.toString(), text_of_form)
  const ended = form({ obj: 'obj_scheme', scheme: 'à\n ' })
  const expected = text_of_form.replace('[]', 'à')
  assert.equal(signedText(ended, boundary)?.toString(), expected)
})

/** [what, parts]: forms whose text another form has too. */
const unclear: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['a line end', { a: 'x\r\ny', scheme: '[]' }],
  ['a dash at the beginning', { a: '-x', scheme: '[]' }],
  ['an end that looks like a boundary', { a: 'x--y', scheme: '[]' }],
  ['a header at the beginning', { a: 'Content-Type: x', scheme: '[]' }],
  ['a disposition', { a: 'xContent-Disposition: form-data; name="b"', scheme: '[]' }],
  ['white space at the end of all', { scheme: '[]', a: 'x ' }],
]
for (const [what, parts] of unclear) {
  test(`a form with ${what} is signed by its bytes alone`, () => {
    assert.equal(signedText(form(parts), boundary), undefined)
  })
}

test('the text of a large form is made in linear time', () => {
  const dashes = form({ scheme: '-'.repeat(8_000_000) })
  const words = form({ scheme: `[${'-a'.repeat(4_000_000)}]` })
  const began_ms = performance.now()
  assert.equal(signedText(dashes, boundary), undefined)
  assert.ok(signedText(words, boundary) !== undefined)
  assert.ok(performance.now() - began_ms < 5_000)
})

/** [what, content type, boundary] */
const types: readonly (readonly [string | undefined, string | undefined])[] = [
  [form_type, boundary],
  ['Multipart/Form-Data;charset=utf-8; boundary="a b"', 'a b'],
  ['multipart/form-data', undefined],
  ['application/json; boundary=x', undefined],
  [undefined, undefined],
]
for (const [type, expected] of types) {
  test(`the boundary of ${type}`, () => assert.equal(boundaryOf(type), expected))
}

const whole = form({ obj: 'obj_scheme', scheme: '[]' }).toString('latin1')
/** [what, body] */
const broken: readonly (readonly [string, string])[] = [
  ['nothing', ''],
  ['no boundary', '[]'],
  ['cut off in a value', whole.slice(0, -30)],
  ['cut off in a head', whole.slice(0, 40)],
  ['without its end', whole.slice(0, -4)],
  ['a part without a name', whole.replace('name="obj"', 'x="obj"')],
  ['two parts of one name', whole.replace('name="obj"', 'name="scheme"')],
  ['a long head', whole.replace('name="obj"', `x="${'y'.repeat(2_000)}"; name="obj"`)],
]
for (const [what, body] of broken) {
  test(`no form: ${what}`, () => {
    assert.throws(() => partsOf(Buffer.from(body, 'latin1'), boundary), { code: 'format_error' })
  })
}

interface Setting extends AsyncDisposable {
  readonly engine: ServedEngine
  upload(
    body: Buffer,
    how?: { signed?: Buffer; user?: string; time?: string },
  ): Promise<[number, Entry]>
  send(op: Json): Promise<Entry | undefined>
}

const now = (engine: ServedEngine): string => String(Math.floor(engine.clock.now_ms() / 1000))

const [ann, bob] = ['13001', '13002']

async function setting(): Promise<Setting> {
  const { engine, send, port, close } = await openHttp()
  const secrets = new Map<string, string>()
  secrets.set(ann, (await engine.users.add({ id: ann, administer: true })).secret)
  secrets.set(bob, (await engine.users.add({ id: bob })).secret)
  return {
    engine,
    async upload(body, { signed = body, user = ann, time = now(engine) } = {}) {
      const signature = signatureOf(time, secrets.get(user) as string, signed)
      const url = `http://127.0.0.1:${port}/api/2/upload/${user}/${time}/${signature}`
      const headers = { 'Content-Type': form_type }
      const answer = await fetch(url, { method: 'POST', body: new Uint8Array(body), headers })
      const { ops, ...request } = (await answer.json()) as { ops?: Entry[] }
      return [answer.status, ops?.[0] ?? request]
    },
    async send(op) {
      const signing = { user: ann, secret: secrets.get(ann) as string, version: 2 } as const
      const { body } = await send(JSON.stringify({ ops: [op] }), signing)
      return (JSON.parse(body) as { ops: Entry[] }).ops[0]
    },
    [Symbol.asyncDispose]: close,
  }
}

const go = (to_node_id: string): Json => ({ type: 'go', to_node_id })
const called = definition(50, [node('start', 1, [go('end')]), node('end', 2, [])])
const calls = (conv_id: number): object =>
  definition(1234, [
    node('start', 1, [
      { type: 'api_rpc', conv_id, extra: {}, extra_type: {}, err_node_id: 'end' },
      go('end'),
    ]),
    node('end', 2, []),
  ])
const alias = { short_name: 'sub', obj_to_id: 50, obj_to_type: 'conv' }
const create = { type: 'create', obj: 'obj_scheme' }

const idIn = (answer: Entry | undefined): unknown =>
  (answer as { scheme: Entry[] } | undefined)?.scheme[0]?.obj_id

const ids = async ({ engine }: Setting): Promise<string[]> =>
  (await engine.processes.list()).map(({ conv_id }) => conv_id)

test('an upload makes new processes whose references follow, and its repeat makes none', async () => {
  await using given = await setting()
  const { engine, upload } = given
  const body = form({
    ...create,
    folder_id: '0',
    scheme: JSON.stringify([calls(50), called, alias]),
  })
  const time = now(engine)
  const [status, answer] = await upload(body, { time })
  assert.equal(status, 200)
  const rows = answer.scheme as Entry[]
  assert.deepEqual(
    rows.map(({ obj_id, old_obj_id, title }) => [obj_id, old_obj_id, title]),
    [
      [1235, 1234, 'process 1234'],
      [1236, 50, 'process 50'],
    ],
  )
  assert.deepEqual(await ids(given), ['1234', '1235', '1236'])
  const { definition_text } = await engine.processes.show(1235)
  assert.ok(definition_text.includes('"conv_id":1236') && definition_text.includes('"obj_id":1235'))
  assert.deepEqual(await engine.processes.aliases(), [{ name: 'sub', conv_id: '1236' }])
  assert.deepEqual(await upload(body, { time }), [status, answer])
  assert.equal((await ids(given)).length, 3)
  assert.deepEqual((await engine.check()).breaches, [])
})

test('an id that was never used stays, and a deleted one is not used again', async () => {
  await using given = await setting()
  const { send } = given
  const scheme = [definition(4000, [node('start', 1, [go('end')]), node('end', 2, [])])]
  const first = await send({ ...create, scheme })
  assert.equal(idIn(first), 4000)
  assert.equal((await send({ type: 'delete', obj: 'conv', obj_id: 4000 }))?.proc, 'ok')
  const second = await send({ ...create, id: 2, scheme })
  assert.equal(idIn(second), 4001)
})

test('a zip is taken, its text signed by bytes; the text form is taken where it is clear', async () => {
  await using given = await setting()
  const { upload } = given
  const files = [{ name: '50_a.conv.json', text: JSON.stringify(called) }]
  const [, zipped] = await upload(form({ ...create, scheme: zipOf(files) }))
  assert.equal((zipped.scheme as Entry[])[0]?.old_obj_id, 50)
  const body = form({ ...create, scheme: JSON.stringify(called) })
  const signed = signedText(body, boundary)
  assert.ok(signed !== undefined)
  const [status, answer] = await upload(body, { signed })
  assert.deepEqual([status, answer.proc], [200, 'ok'])
  const [wrong] = await upload(form({ ...create, scheme: JSON.stringify(calls(50)) }), { signed })
  assert.equal(wrong, 401)
})

test('the hash of an upload says for its user what it has made, and nothing to others', async () => {
  await using given = await setting()
  const { send, engine } = given
  const { hash, scheme, proc } = (await send({ ...create, scheme: [called], async: true })) ?? {}
  assert.equal(proc, 'ok')
  assert.match(String(hash), /^[0-9a-f]{40}$/)
  const ask = { type: 'get', obj: 'statistics', id: hash }
  const found = { id: hash, proc: 'ok', obj: 'statistics', status: 'success', scheme }
  for (const by of [ask, { ...ask, id: 'x', hash }]) {
    assert.deepEqual(await send(by), { ...found, id: by.id })
  }
  const refused = await send({ ...ask, id: 'no' })
  assert.equal(refused?.description, 'Object statistics with id no does not exist')
  assert.equal((await send({ type: 'get', obj: 'statistics' }))?.key, 'id')
  const second = await send({ ...create, id: 2, scheme: [called] })
  assert.notEqual(second?.hash, hash)
  const valid = await send({ ...create, type: 'validate', id: 3, scheme: [called] })
  assert.equal(valid?.hash, undefined)
  const parsed = { type: 'show', ref: null, obj: 'task', proc: 'error', key: 'obj' } as const
  const asked = async (user: string, later_ms: number): Promise<unknown> => {
    const submitOthers = atTime(engine, engine.clock.now_ms() + later_ms)
    const body = Buffer.from(JSON.stringify({ ops: [ask] }))
    const request = { server: 'http', version: 2, caller: { user }, ops: [parsed], body } as const
    return JSON.parse(await answerOthers({ ...engine, submitOthers }, request)).ops[0].proc
  }
  assert.equal(await asked(ann, 599_000), 'ok')
  assert.equal(await asked(ann, 601_000), 'error')
  await engine.users.administer(bob, true)
  assert.equal(await asked(bob, 0), 'error')
})

/** As if the transaction began at another time. */
function atTime(engine: ServedEngine, now_ms: number): ServedEngine['submitOthers'] {
  return (ops, caller, { apply, is_change }) =>
    engine.submitOthers(ops, caller, {
      apply: (tx, some, by) => apply(Object.assign(Object.create(tx), { now_ms }), some, by),
      is_change,
    })
}

test('a validation makes nothing, and an alias is kept unless the upload may rewrite it', async () => {
  await using given = await setting()
  const { engine, send } = given
  await engine.processes.setAlias('sub', 1234)
  const scheme = JSON.stringify([called, alias])
  const valid = await send({ ...create, type: 'validate', scheme, rewrite_alias: 'true' })
  assert.equal(valid?.proc, 'ok')
  assert.equal((await send({ ...create, scheme }))?.description, 'alias @sub exists')
  assert.deepEqual(await ids(given), ['1234'])
  assert.equal((await send({ ...create, scheme, with_alias: false }))?.proc, 'ok')
  assert.equal((await send({ ...create, scheme, rewrite_alias: true }))?.proc, 'ok')
  assert.deepEqual(await engine.processes.aliases(), [{ name: 'sub', conv_id: '1236' }])
})

const bomb = zipOf([{ name: 'a.conv.json', text: Buffer.alloc(8_000_000, ' ') }])
const many = Array.from({ length: 10_001 }, (_, at) => node(`n${at}`, 2, []))
const bad_link = definition(50, [node('start', 1, [go('no')]), node('end', 2, [])])

/** [what, scheme, words of its answer] */
const refused: readonly (readonly [string, unknown, RegExp])[] = [
  ['no scheme', undefined, /Key 'scheme' is required/],
  ['what is no scheme', 7, /scheme: an export as JSON/],
  ['text that is no JSON', 'hello', /scheme/],
  ['JSON cut off', '[{"obj_type":1,', /./],
  ['an empty export', '[]', /there is no definition/],
  [
    'a definition with a mistake',
    [called, { ...bad_link, obj_id: 51 }],
    /"start":\["Key 'to_node_id'/,
  ],
  ['two definitions of one id', [called, called], /a second one of/],
  ['a bomb', bomb.toString('base64'), /grows more than 250 times/],
  ['a zip cut off', bomb.subarray(0, -30).toString('base64'), /scheme/],
  ['10,001 nodes', JSON.stringify(definition(50, many)), /10001 nodes/],
]
for (const [what, scheme, words] of refused) {
  test(`refused: ${what}`, async () => {
    await using given = await setting()
    const answer = await given.send({ ...create, ...(scheme === undefined ? {} : { scheme }) })
    assert.equal(answer?.proc, 'error')
    assert.match(JSON.stringify(answer), words)
    assert.deepEqual(await ids(given), ['1234'])
    assert.deepEqual((await given.engine.check()).breaches, [])
  })
}

test('of forms that are none the request is refused, and of users without the right the op', async () => {
  await using given = await setting()
  const body = form({ ...create, scheme: JSON.stringify(called) })
  assert.equal((await given.upload(body.subarray(0, -10)))[0], 400)
  const [status, answer] = await given.upload(body, { user: bob })
  assert.deepEqual([status, answer.proc], [200, 'access_denied'])
  assert.deepEqual(await ids(given), ['1234'])
})
