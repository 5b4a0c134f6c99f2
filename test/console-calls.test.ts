/**
 * The calls of the operator's page: what each answers, and what it says to an input that is none.
 * Who may call what is the server's to test.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { newDrawings } from '../src/console/diagram/drawings.ts'
import { newOverviews } from '../src/console/overview/overview.ts'
import type { CallContext } from '../src/console/server/calls/call.ts'
import { calls, type TableCall } from '../src/console/server/calls.ts'
import type { ConsoleCalls } from '../src/console/server/messages.ts'
import { isFault } from '../src/core/faults.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/open.ts'
import { fakeClock } from './support/fake-clock.ts'
import { top } from './support/package-folder.ts'
import { pick } from './support/pick.ts'
import { fill } from './support/search-setup.ts'

const clock = fakeClock(1_700_000_000_000)
const engine = servedEngine(await openEngine(':memory:', { clock, background: false }))
const drawings = newDrawings()
const context: CallContext = { engine, overviews: newOverviews(engine), drawings }
const ids = await fill(engine, clock, 120)

after(async () => {
  context.overviews.close()
  await drawings.close()
  await engine.close()
})

function call<Name extends TableCall>(
  name: Name,
  input: ConsoleCalls[Name]['in'],
): Promise<ConsoleCalls[Name]['out']> {
  return askFor(name, input) as Promise<ConsoleCalls[Name]['out']>
}

async function askFor(name: TableCall, input: unknown): Promise<unknown> {
  return calls[name].run(context, input)
}

const named = { conv_id: 'a', obj_id: ids[1] ?? '' }
const long_data = JSON.stringify({ text: 'x'.repeat(131_072) })
const too_many_ids = Array.from({ length: 1_001 }, (_, at) => at.toString(16).padStart(24, '0'))

/** What is given to an import that only looks. */
function file(text: string, name = 'a.json'): ConsoleCalls['import']['in'] {
  return { name, content_base64: Buffer.from(text).toString('base64'), store: false }
}

/** What a call refuses, by the beginning of its sentence. */
const refused: [name: TableCall, input: unknown, code: string, says: string][] = [
  ['tasks', [], 'bad_request', 'the input is no object'],
  ['tasks', { limit: 501 }, 'bad_request', 'limit is no whole number from 1 to 500'],
  ['tasks', { newest_first: 1 }, 'bad_request', 'newest_first is neither true nor false'],
  ['tasks', { cursor: 7 }, 'bad_request', 'cursor is no text'],
  ['tasks', { cursor: 'AAAA' }, 'bad_cursor', 'cursor: it is none'],
  ['tasks', { where_text: '{' }, 'bad_filter', 'filter: where is no JSON object'],
  ['tasks', { where: {}, colour: 1 }, 'bad_filter', 'filter: there is no "colour"'],
  ['tasks', { conv_id: 'z' }, 'conv_not_found', ''],
  ['find', null, 'bad_request', 'the input is no object'],
  ['find', { text: '' }, 'bad_request', 'text is no text'],
  ['find', { text: 'x'.repeat(511) }, 'bad_request', 'text is over 510 characters long'],
  ['find', { text: 'x', ref: 1 }, 'bad_request', 'there is no "ref"; the call takes text, conv_id'],
  ['find', { text: 'x', conv_id: 7 }, 'bad_request', 'conv_id is no text of 1 to 64 characters'],
  ['process', { conv_id: 'a', laid_out: 'no' }, 'bad_request', 'laid_out is neither true nor'],
  ['process', { conv_id: 'a', version: 1.5 }, 'bad_request', 'version is no whole number above 0'],
  ['process', { conv_id: 'a', version: 2 }, 'not_possible', 'process a has the versions 1 to 1'],
  ['process', { conv_id: 'z' }, 'conv_not_found', ''],
  ['versions', { conv_id: 'a', from: 1 }, 'bad_request', 'to is no whole number'],
  ['bulk_jobs', { all: true }, 'bad_request', 'there is no "all"; the call takes nothing'],
  ['modify', { conv_id: 'a', obj_id: 'x' }, 'bad_request', 'obj_id is no id of a task'],
  ['modify', { ...named, data_text: {} }, 'bad_request', 'data_text is no text'],
  ['modify', { ...named, data_text: '{}', is_sync: 1 }, 'bad_request', 'is_sync is neither'],
  ['modify', { ...named, data_text: '{}', node_id: '' }, 'bad_request', 'node_id is no text'],
  ['retry', { ...named, node_id: 7 }, 'bad_request', 'node_id is no text of 1 to 64'],
  ['retry', { ...named, force: 1 }, 'bad_request', 'there is no "force"; the call takes conv_id'],
  ['move', named, 'bad_request', 'node_id is no text of 1 to 64 characters'],
  ['cancel', { obj_id: named.obj_id }, 'bad_request', 'conv_id is no text'],
  ['pause', { conv_id: 'z' }, 'conv_not_found', ''],
  ['resume', { conv_id: '\u0000' }, 'bad_request', 'conv_id is no text'],
  ['bulk', { action: 'drop', filter: {} }, 'bad_request', 'action is one of cancel, retry, modify'],
  ['bulk', { action: 'cancel' }, 'bad_request', 'filter is no object'],
  [
    'bulk',
    { action: 'cancel', filter: {}, data_text: '{}' },
    'bad_request',
    'data_text is not for',
  ],
  ['bulk', { action: 'modify', filter: {} }, 'bad_request', 'data_text is missing'],
  [
    'bulk',
    { action: 'modify', filter: {}, data_text: '[]' },
    'bad_request',
    'data_text is no JSON',
  ],
  [
    ...(['bulk', { action: 'modify', filter: {}, data_text: long_data }] as const),
    ...(['bad_request', 'data_text is over 131072 bytes'] as const),
  ],
  ['bulk', { action: 'move', filter: {} }, 'bad_request', 'to_node_id is missing'],
  [
    'bulk',
    { action: 'move', filter: {}, to_node_id: 'x' },
    'bad_filter',
    'filter: conv_id is missing',
  ],
  [
    'bulk',
    { action: 'cancel', filter: {}, to_node_id: 'x' },
    'bad_request',
    'to_node_id is not for',
  ],
  [
    'bulk',
    { action: 'cancel', filter: {}, obj_ids: [] },
    'bad_request',
    'obj_ids is no list of 1 to',
  ],
  [
    'bulk',
    { action: 'cancel', filter: {}, obj_ids: [7] },
    'bad_request',
    'one of obj_ids is no id',
  ],
  [
    ...(['bulk', { action: 'cancel', filter: {}, obj_ids: too_many_ids }] as const),
    ...(['bad_request', 'obj_ids is no list of 1 to 1000 ids'] as const),
  ],
  ['bulk', { action: 'cancel', filter: { node: 'x' } }, 'bad_filter', 'filter: there is no "node"'],
  ['bulk', { action: 'cancel', filter: { status: 'ended' } }, 'bad_filter', 'filter: cancel takes'],
  ['bulk_count', { action: 'cancel', filter: {}, cursor: 'x' }, 'bad_cursor', 'cursor: it is none'],
  ['bulk_resume', { id: 'nobody' }, 'not_possible', 'there is no bulk job "nobody"'],
  ['bulk_resume', { id: 'x'.repeat(65) }, 'bad_request', 'id is over 64 characters long'],
  ['import', { name: 'a.json', content_base64: '' }, 'bad_request', 'store is neither true nor'],
  [
    'import',
    { name: 'a.json', content_base64: '!', store: false },
    'bad_request',
    'content_base64',
  ],
  ['import', { ...file('[]'), moves: [] }, 'bad_request', 'moves is no object'],
  ['import', { ...file('[]'), moves: { a: 1 } }, 'bad_request', 'moves of "a" is no text of 1 to'],
  ['import', file('{'), 'bad_definition', 'a.json: '],
  ['import', file('{"hello":"world"}'), 'bad_definition', ''],
  ['import', file('\u0089PNG'), 'bad_definition', 'a.json: '],
  ['task', {}, 'bad_request', 'obj_id is no id of a task'],
  ['task', { obj_id: 'f'.repeat(24) }, 'not_found', 'there is no task ffffff'],
  ['frame', { view: 'all' }, 'bad_request', 'view is one of overview, process, task'],
  ['frame', { view: 'task', obj_id: '<b>' }, 'bad_request', 'obj_id is no id of a task'],
  ['frame', { view: 'process', conv_id: 'z' }, 'conv_not_found', ''],
]
for (const [name, input, code, says] of refused) {
  test(`${name} ${JSON.stringify(input).slice(0, 60)} is refused: ${code}`, async () => {
    await assert.rejects(askFor(name, input), (error: unknown) => {
      assert.ok(isFault(error), String(error))
      assert.equal(error.code, code)
      assert.ok(error.message.startsWith(says), error.message)
      return true
    })
  })
}

test('the table of the README has each call, with its right', () => {
  const readme = readFileSync(join(top, 'src/console/server/calls/README.md'), 'utf8')
  const rows = [...readme.matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name, right]) => [
    name,
    right,
  ])
  const table = Object.entries(calls).map(([name, { right }]) => [name, right])
  assert.deepEqual(rows, table)
})

test('pages of tasks follow each other, newest first, without data', async () => {
  const query = { conv_id: 'a', node_id: 'w1', newest_first: true, limit: 7 }
  const first = await call('tasks', query)
  const whole = await call('tasks', { ...query, limit: 500 })
  assert.deepEqual([first.rows.length, first.scanned], [7, 7], 'an index is read')
  assert.equal(whole.rows.length, 28)
  const { cursor = '' } = first
  const next = await call('tasks', { ...query, cursor })
  const shown = [...first.rows, ...next.rows].map(({ obj_id }) => obj_id)
  assert.deepEqual(
    shown,
    whole.rows.slice(0, 14).map(({ obj_id }) => obj_id),
  )
  assert.deepEqual(whole.rows[0]?.wait, { for: 'callback' })
  assert.equal(whole.rows[0]?.node_title, 'Wait')
  assert.ok(whole.rows.every((row) => !('data_text' in row) && !('data' in row)))
})

const found: [text: string, conv_id: string | undefined, refs: (string | null)[]][] = [
  ['bill-1', undefined, ['bill-1', 'bill-101', 'bill-103', 'bill-105']],
  ['bill-1', 'b', ['bill-105', 'bill-111', 'bill-117', 'bill-15']],
  ['order-110', undefined, ['order-110']],
  ['nobody', undefined, []],
  [ids[8]?.toUpperCase() ?? '', undefined, [null]],
  [ids[8] ?? '', 'b', []],
]
for (const [text, conv_id, refs] of found) {
  test(`${text} finds ${refs.join(', ') || 'nothing'}${conv_id ? ` in ${conv_id}` : ''}`, async () => {
    const { rows } = await call('find', { text, ...(conv_id && { conv_id }) })
    assert.deepEqual(
      rows.slice(0, 4).map(({ ref }) => ref),
      refs,
    )
  })
}

test('what is found is bounded', async () => {
  const { rows } = await call('find', { text: 'o' })
  assert.equal(rows.length, 20)
})

test('a frame has a view whole', async () => {
  const overview = await call('frame', { view: 'overview' })
  assert.ok(overview.view === 'overview')
  assert.deepEqual(pick(overview.overview.processes, 'conv_id'), ['a', 'b'])
  const process = await call('frame', { view: 'process', conv_id: 'a' })
  assert.ok(process.view === 'process')
  assert.equal(process.counts.conv_id, 'a')
  const task = await call('frame', { view: 'task', obj_id: ids[1] ?? '' })
  assert.ok(task.view === 'task')
  assert.equal(task.task.process_title, 'Process a')
})
