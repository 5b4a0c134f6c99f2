/** Tasks as CSV on the operator's page: those of a search out, and rows of a file in. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { token_header } from '../src/console/server/messages.ts'
import { type ConsoleHarness, openHarness, type SignedIn } from './support/console-harness.ts'

let harness: ConsoleHarness
let look: SignedIn
let operate: SignedIn

before(async () => {
  harness = await openHarness()
  look = await harness.as('look')
  operate = await harness.as('operate')
})
after(() => harness.close())

const sent = (query: string, body: string, as = operate, headers: object = {}) =>
  harness.ask(`/console/csv?${query}`, {
    ...{ method: 'POST', body, as },
    headers: { 'Content-Type': 'text/csv', [token_header]: as.token, ...headers },
  })

const post = (search: unknown, as: SignedIn) =>
  harness.ask('/console/csv', {
    ...{ method: 'POST', body: JSON.stringify(search), as },
    headers: { 'Content-Type': 'application/json', [token_header]: as.token },
  })

test('rows become tasks, with the ref and the numbers as they are written', async () => {
  const query = 'conv_id=1234&ref_column=id&convert=amount:number&divider=%3B'
  const body = 'id;amount;note\r\na;1.10;"x;y"\r\nb;zwei;n\r\nc;2;\'=1\r\na;3;again\r\n'
  const { status, text } = await sent(query, body)
  assert.equal(status, 200, text)
  const outcome = JSON.parse(text) as { mistakes: { line: number; says: string }[] }
  const { mistakes, ...counts } = outcome
  assert.deepEqual(counts, { created: 2, refused: 2, line: 5 })
  assert.deepEqual(
    mistakes.map(({ line }) => line),
    [3, 5],
  )
  const task = await harness.engine.task({ conv_id: 1234, ref: 'a' })
  assert.equal(task?.data_text, '{"id":"a","amount":1.10,"note":"x;y"}')
  assert.deepEqual(
    (await harness.engine.task({ conv_id: 1234, ref: 'c' }))?.data_text,
    '{"id":"c","amount":2,"note":"=1"}',
  )
  const line = harness.told.findLast(({ event }) => event === 'console_acted')
  assert.deepEqual(
    [line?.act, line?.conv_id, line?.tasks, line?.code],
    ['import_tasks', '1234', 2, 'ok'],
  )
})

test('a search is sent as CSV over all its pages, and is read again', async () => {
  const rows = Array.from({ length: 1_300 }, (_, at) => `many-${at},${at}`)
  const made = await sent('conv_id=1234&ref_column=ref', `ref,n\n${rows.join('\n')}\n`)
  assert.equal(JSON.parse(made.text).created, 1_300)
  const filter = { conv_id: '1234', status: 'live', ref_prefix: 'many-' }
  const asked = await post(filter, look)
  assert.deepEqual(JSON.parse(asked.text), { id: 1 })
  assert.equal(await harness.codeOf('/console/csv?id=1', { as: operate }), 'not_found')
  assert.equal(await harness.codeOf('/console/csv?id=2', { as: look }), 'not_found')
  const { status, text, headers } = await harness.ask('/console/csv?id=1', { as: look })
  assert.equal(status, 200, text)
  assert.equal(headers['content-type'], 'text/csv; charset=utf-8')
  assert.equal(headers['content-disposition'], 'attachment; filename="tasks.csv"')
  const lines = text.trimEnd().split('\r\n')
  assert.equal(lines.length, 1_301)
  assert.match(lines[0] ?? '', /^conv_id,obj_id,ref,status,node_id,node_title,.*,data$/)
  assert.equal(new Set(lines.slice(1).map((line) => line.split(',')[2])).size, 1_300)
  assert.ok(lines.some((line) => line.endsWith('"{""ref"":""many-7"",""n"":""7""}"')))
})

/** [what, query, body, session, headers, code] */
const refused: readonly (readonly [string, string, string, 'look' | 'operate', object, string])[] =
  [
    ['without the right', 'conv_id=1234', 'a\n1\n', 'look', {}, 'access_denied'],
    [
      'without the token',
      'conv_id=1234',
      'a\n1\n',
      'operate',
      { [token_header]: 'x' },
      'bad_request',
    ],
    [
      'as another type',
      'conv_id=1234',
      '{}',
      'operate',
      { 'Content-Type': 'text/plain' },
      'bad_request',
    ],
    ['of no process', '', 'a\n1\n', 'operate', {}, 'bad_request'],
    ['of an unknown process', 'conv_id=nope', 'a\n1\n', 'operate', {}, 'conv_not_found'],
    ['with a column twice', 'conv_id=1234', 'a,a\n1,2\n', 'operate', {}, 'bad_request'],
    [
      'without the column of refs',
      'conv_id=1234&ref_column=b',
      'a\n1\n',
      'operate',
      {},
      'bad_request',
    ],
    ['with another divider', 'conv_id=1234&divider=x', 'a\n1\n', 'operate', {}, 'bad_request'],
    ['in an unknown encoding', 'conv_id=1234&encoding=x', 'a\n1\n', 'operate', {}, 'bad_request'],
    ['of an unknown type', 'conv_id=1234&convert=a:date', 'a\n1\n', 'operate', {}, 'bad_request'],
  ]
for (const [what, query, body, as, headers, code] of refused) {
  test(`a file ${what} is refused`, async () => {
    const { status, text } = await sent(query, body, as === 'look' ? look : operate, headers)
    assert.notEqual(status, 200)
    assert.equal((JSON.parse(text) as { error: string }).error, code)
  })
}

test('a search that cannot be meant, and one of nobody, are refused', async () => {
  const codeOf = async (search: unknown, as = look) =>
    (JSON.parse((await post(search, as)).text) as { error?: string }).error
  assert.equal(await harness.codeOf('/console/csv?id=1'), 'bad_signature')
  assert.equal(await harness.codeOf('/console/csv', { as: look }), 'not_found')
  assert.equal(await codeOf({}, { ...look, token: 'x' }), 'bad_request')
  assert.equal(await codeOf([]), 'bad_request')
  const { id } = JSON.parse((await post({ status: 'x' }, look)).text) as { id: number }
  assert.equal(await harness.codeOf(`/console/csv?id=${id}`, { as: look }), 'bad_filter')
  assert.equal(
    await harness.codeOf('/console/csv', { method: 'PUT', as: look }),
    'method_not_allowed',
  )
})

test('a file that breaks off in bytes that are no text says up to which line it is in', async () => {
  const rows = Array.from({ length: 2_000 }, (_, at) => `cut-${at},${'x'.repeat(300)}`)
  const body = Buffer.concat([Buffer.from(`ref,x\n${rows.join('\n')}\n`), Buffer.from([0xff])])
  const url = `http://127.0.0.1:${harness.port}/console/csv?conv_id=1234&ref_column=ref`
  const { token, cookie } = operate
  const headers = { 'Content-Type': 'text/csv', [token_header]: token, Cookie: cookie }
  const answer = await fetch(url, { method: 'POST', body, headers })
  assert.equal(answer.status, 200)
  const { created, line, stopped } = (await answer.json()) as Record<string, unknown>
  assert.match(String(stopped), /not text in utf-8.*after line \d+ may not be in/)
  assert.ok(Number(created) > 0 && Number(created) < 2_000)
  assert.equal(line, Number(created) + 1)
  const last = await harness.engine.task({ conv_id: 1234, ref: `cut-${Number(created) - 1}` })
  assert.equal(last?.status, 'delayed')
  assert.equal(await harness.engine.task({ conv_id: 1234, ref: `cut-${created}` }), undefined)
})

test('a connection that breaks leaves the batches that had come, and is no bug', async () => {
  const { port } = harness
  const sent = request({ port, method: 'POST', path: '/console/csv?conv_id=1234&ref_column=ref' })
  sent.on('error', () => {})
  sent.setHeader('Content-Type', 'text/csv')
  sent.setHeader(token_header, operate.token)
  sent.setHeader('Cookie', operate.cookie)
  const before = harness.told.length
  sent.write(`ref\n${Array.from({ length: 600 }, (_, at) => `off-${at}`).join('\n')}\n`)
  const there = () => harness.engine.task({ conv_id: 1234, ref: 'off-499' })
  while ((await there()) === undefined) await new Promise((resume) => setTimeout(resume, 5))
  sent.destroy()
  const acted = () => harness.told.slice(before).find(({ event }) => event === 'console_acted')
  while (acted() === undefined) await new Promise((resume) => setTimeout(resume, 5))
  assert.deepEqual([acted()?.code, acted()?.tasks], ['bad_request', 500])
  assert.equal(await harness.engine.task({ conv_id: 1234, ref: 'off-500' }), undefined)
  assert.equal((await harness.ask('/console/session', { as: operate })).status, 200)
})
