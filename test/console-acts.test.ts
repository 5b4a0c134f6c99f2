/**
 * The calls of the operator's page that change something, and those that show what a change does:
 * what becomes of the tasks, what the log is told, and that what only looks changes nothing.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newDrawings } from '../src/console/diagram/drawings.ts'
import { newOverviews } from '../src/console/overview/overview.ts'
import type { CallContext } from '../src/console/server/calls/call.ts'
import { exportOf } from '../src/console/server/calls/process.ts'
import { versionChanges } from '../src/console/server/calls/version-changes.ts'
import { calls, type TableCall } from '../src/console/server/calls.ts'
import type { Bulk, ConsoleCalls, TaskRow } from '../src/console/server/messages.ts'
import type { Fault } from '../src/core/faults.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/open.ts'
import { openHarness } from './support/console-harness.ts'
import { fakeClock } from './support/fake-clock.ts'
import { pick } from './support/pick.ts'
import { fill } from './support/search-setup.ts'
import { zipOf } from './support/zip-file.ts'

const clock = fakeClock(1_700_000_000_000)
const engine = servedEngine(await openEngine(':memory:', { clock, background: false }))
const drawings = newDrawings()
const context: CallContext = { engine, overviews: newOverviews(engine), drawings }
await fill(engine, clock, 120)

after(async () => {
  context.overviews.close()
  await drawings.close()
  await engine.close()
})

async function call<Name extends TableCall>(
  name: Name,
  input: ConsoleCalls[Name]['in'],
): Promise<ConsoleCalls[Name]['out']> {
  return calls[name].run(context, input) as Promise<ConsoleCalls[Name]['out']>
}

/** As the server puts it into the log. */
function told(name: TableCall, input: unknown, output?: unknown): object | undefined {
  const { acts } = calls[name] as { acts?(input: unknown, output?: unknown): object | undefined }
  return acts?.(input, output)
}

async function rowsIn(conv_id: string, node_id: string): Promise<readonly TaskRow[]> {
  return (await call('tasks', { conv_id, node_id, limit: 500 })).rows
}

function file(definition: unknown, store: boolean): ConsoleCalls['import']['in'] {
  const text = typeof definition === 'string' ? definition : JSON.stringify(definition)
  const content_base64 = Buffer.from(text).toString('base64')
  return { name: 'some.json', content_base64, store }
}

const nodeIn = (input: object): string => ('node_id' in input ? String(input.node_id) : 'own')

type RetryOutcome = ConsoleCalls['retry']['out']

/** [the node that a retry enters, what becomes of the task there] */
const settledAs: Readonly<Record<string, string>> = { own: 'failed', x1: 'waiting' }

test('an act on one task says what it was and is, and its refusal is an outcome', async () => {
  const [waiting, other] = await rowsIn('a', 'w1')
  const [failed, again] = await rowsIn('a', 'f1')
  const named = ({ conv_id = '', obj_id = '' }: Partial<TaskRow> = {}) => ({ conv_id, obj_id })
  const wait = { status: 'delayed', node_id: 'w1' } as const
  const failure = { status: 'failed', node_id: 'f1' } as const
  const rows = [
    ['retry', named(waiting), { proc: 'error', description: 'the task has not failed' }],
    ['retry', named(failed), { proc: 'ok', was: failure, now: failure }],
    [
      'retry',
      { ...named(again), node_id: 'x1' },
      { proc: 'ok', was: failure, now: { ...wait, node_id: 'x1' } },
    ],
    [
      'move',
      { ...named(waiting), node_id: 'x1' },
      { proc: 'ok', was: wait, now: { ...wait, node_id: 'x1' } },
    ],
    [
      'modify',
      { ...named(waiting), data_text: '{"n":1.10}', node_id: 'w1' },
      { proc: 'no_api_callback_in_node_with_task' },
    ],
    ['modify', { ...named(waiting), data_text: '{"n":1.10}', is_sync: true }, { proc: 'ok' }],
    ['modify', { ...named(other), data_text: '{"n":' }, { proc: 'error' }],
    [
      'modify',
      { ...named(other), data_text: `{"n":${'['.repeat(70)}${']'.repeat(70)}}` },
      { proc: 'error' },
    ],
    [
      'modify',
      { ...named(other), data_text: JSON.stringify({ n: 'x'.repeat(131_072) }) },
      { proc: 'task_size_overflow_limit' },
    ],
    ['modify', { ...named(other), conv_id: 'z', data_text: '{}' }, { proc: 'conv_not_found' }],
    ['cancel', named(other), { proc: 'ok', was: wait, now: { ...wait, status: 'canceled' } }],
    ['cancel', named(other), { proc: 'not_found_task' }],
  ] as const
  for (const [name, input, outcome] of rows) {
    const { settled, ...answer } = (await call(name, input as never)) as RetryOutcome
    const became = name !== 'retry' || outcome.proc !== 'ok' ? undefined : settledAs[nodeIn(input)]
    assert.equal(settled?.became, became, name)
    assert.ok(settled?.task === undefined || !('data_text' in settled.task))
    const expected = { description: answer.description, ...outcome }
    assert.deepEqual(
      { description: undefined, ...answer },
      expected,
      `${name} ${answer.description}`,
    )
    assert.deepEqual(told(name, input, answer), {
      ...{ conv_id: input.conv_id, obj_id: input.obj_id },
      ...{ code: outcome.proc, tasks: outcome.proc === 'ok' ? 1 : 0 },
    })
  }
  const { data_text, status, history = [] } = await call('task', { obj_id: waiting?.obj_id ?? '' })
  assert.match(data_text, /"n":1\.10[,}]/)
  assert.equal(status, 'processed')
  assert.deepEqual(pick(history, 'why', 'node_title'), [
    ['create', 'Start'],
    ['go', 'Wait'],
    ['move', 'Wait'],
    ['callback', 'Wait'],
    ['go', 'Done'],
  ])
})

test('what an act names is told to the log only where it is an id', () => {
  assert.deepEqual(told('cancel', null), {})
  assert.deepEqual(told('cancel', { conv_id: 'a\n', obj_id: 'order-1' }), {})
  assert.deepEqual(told('bulk', { filter: { conv_id: 'a', where_text: '{"card":1}' } }), {
    conv_id: 'a',
  })
  assert.equal(told('import', { ...file('[]', false), conv_id: 'a' }), undefined)
  assert.deepEqual(told('import', { ...file('[]', true), conv_id: 'a' }), { conv_id: 'a' })
})

const hidden = (name: string) => ({ name, type: 'string', flags: ['auto-clear'] })
const masking = {
  ...{ obj_id: 'masked', title: 'Cards', params: [hidden('card.number'), hidden('pins[]')] },
  scheme: {
    nodes: [
      { id: 's', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'w' }] } },
      { id: 'w', obj_type: 0, condition: { logics: [{ type: 'api_callback' }] } },
    ],
  },
}

test('a hidden value is not shown, and its mask is not written back', async () => {
  await engine.processes.put(masking)
  const data = { card: { number: '4111', name: 'A' }, pins: ['1234', '5678'], n: 1 }
  const { obj_id = '' } = await engine.create({ conv_id: 'masked', ref: 'm', data })
  const { data_text } = await call('task', { obj_id })
  assert.equal(data_text, '{"card":{"number":"***","name":"A"},"pins":["***","***"],"n":1}')
  const rows = [
    ['{"card":{"number":"***"}}', '"card.number" is hidden'],
    ['{"card":{"number":"\\u002a**"}}', '"card.number" is hidden'],
    ['{"pins":["1","***"]}', '"pins.[]" is hidden'],
    ['{"note":"***","card":"***","pins":["*"]}', undefined],
  ] as const
  for (const [data_text, says] of rows) {
    const { proc, description = '' } = await call('modify', {
      conv_id: 'masked',
      obj_id,
      data_text,
    })
    assert.equal(proc, says === undefined ? 'ok' : 'error', data_text)
    assert.ok(description.startsWith(says ?? ''), description)
  }
  const bulk = { action: 'modify', data_text: '{"card":{"number":"***"}}' } as const
  for (const filter of [{}, { conv_id: 'masked' }]) {
    await assert.rejects(call('bulk', { ...bulk, filter }), { code: 'bad_request' })
  }
  const other = await call('bulk', { ...bulk, filter: { conv_id: 'b', ref_prefix: 'nobody' } })
  assert.equal(other.matched, 0)
})

test('tasks that were chosen are counted first, then changed one by one', async () => {
  const [one, two] = await rowsIn('b', 'f1')
  const [live, moved] = await rowsIn('b', 'w1')
  const ids = [one, two, live, moved].map((row) => row?.obj_id ?? '')
  const obj_ids = [...ids, ids[0] ?? '', 'f'.repeat(24)]
  const input: Bulk = { action: 'retry', filter: { conv_id: 'b' }, obj_ids, to_node_id: 'x1' }
  const counted = await call('bulk_count', input)
  const done = { action: 'retry', filter: { conv_id: 'b' }, is_done: true, scanned: 5, skipped: 3 }
  const { started_ms } = counted
  assert.deepEqual(counted, { ...done, started_ms, matched: 2, changed: 0, refused: {} })
  const job = await call('bulk', input)
  const became = { ended: 0, waiting: 2, failed: 0, running: 0 }
  assert.deepEqual(job, { ...done, started_ms, matched: 2, changed: 2, refused: {}, became })
  assert.deepEqual(told('bulk', input, job), { conv_id: 'b', action: 'retry', tasks: 2 })
  const refused = await call('bulk', { ...input, action: 'move', to_node_id: 'nowhere' })
  assert.deepEqual(refused.refused, { error: 4 })
  const elsewhere = await call('bulk', {
    ...input,
    action: 'cancel',
    filter: { conv_id: 'a' },
    to_node_id: undefined as never,
  })
  assert.equal(elsewhere.changed, 0)
})

test('all that a filter finds is counted page by page, and changed step by step', async () => {
  const filter = { conv_id: 'b', node_id: 'w1' }
  const all = (await rowsIn('b', 'w1')).length
  assert.ok(all > 4)
  const counted = await call('bulk_count', { action: 'cancel', filter })
  assert.deepEqual([counted.matched, counted.changed, counted.is_done], [all, 0, true])
  assert.ok(!('sample' in counted))
  const job = await call('bulk', { action: 'cancel', filter })
  assert.deepEqual([job.matched, job.changed, job.is_done], [all, all, true])
  assert.deepEqual(await call('bulk_resume', { id: job.id ?? '' }), job)
  const { jobs } = await call('bulk_jobs', {})
  assert.deepEqual(
    jobs.find(({ id }) => id === job.id),
    job,
  )
})

test('whole nodes and processes are counted without a look at each task', async () => {
  const limits = { search_tasks_max: 5 }
  const small = servedEngine(await openEngine(':memory:', { clock, background: false, limits }))
  await fill(small, clock, 120)
  const rows = [
    ['cancel', { conv_id: 'a' }, 5],
    ['retry', { conv_id: 'a', node_id: 'Fail' }, 5],
    ['move', { conv_id: 'b', status: 'delayed' }, 5],
    ['cancel', { conv_id: 'a', where_text: '{"n":{"gte":0}}' }, undefined],
  ] as const
  for (const [action, filter, scanned] of rows) {
    const status = action === 'retry' ? 'failed' : 'live'
    const { where_text: _all, ...counted } = { where_text: '', status, ...filter } as const
    const { total } = await small.tasks.count(counted)
    const to = action === 'move' ? { to_node_id: 'w1' } : {}
    const input = { action, filter, ...to }
    const job = await calls.bulk_count.run({ ...context, engine: small }, input)
    assert.ok(total > 5)
    assert.deepEqual([job.matched, job.is_done, job.cursor], [total, true, undefined])
    if (scanned !== undefined) assert.equal(job.scanned, scanned)
  }
  await small.close()
})

const order = (title: string, place: object, more: object[] = []) => ({
  ...{ obj_id: 'order', title, params: [] },
  scheme: {
    nodes: [
      {
        id: 's',
        title: 'Start',
        obj_type: 1,
        condition: { logics: [{ type: 'go', to_node_id: 'w' }] },
      },
      {
        id: 'w',
        title: 'Wait',
        obj_type: 0,
        condition: { logics: [{ type: 'api_callback' }] },
        ...place,
      },
      ...more,
    ],
  },
})
const end = { id: 'e', title: 'End', obj_type: 2 }

test('an import is looked at first, and what only looks changes nothing', async () => {
  const looked = await call('import', file(order('Order', { x: 1, y: 1 }), false))
  assert.deepEqual(looked.result.processes[0]?.state, 'created')
  assert.equal(looked.is_done, false)
  await assert.rejects(engine.processes.show('order'), { code: 'conv_not_found' })
  const stored = await call('import', file(order('Order', { x: 1, y: 1 }), true))
  assert.deepEqual(stored.result, looked.result)
  await call('import', file(order('Order', { x: 5, y: 1 }, [end]), true))
  const zip = zipOf([{ name: 'order.json', text: JSON.stringify(order('Orders', { x: 5, y: 1 })) }])
  const content_base64 = zip.toString('base64')
  const zipped = { name: 'all.zip', content_base64, store: false }
  assert.equal((await call('import', zipped)).result.processes[0]?.version, 3)
  await call('import', { ...zipped, store: true })
  const page = await call('process', { conv_id: 'order' })
  assert.deepEqual(page.row, { conv_id: 'order', title: 'Orders', status: 'active', version: 3 })
  assert.deepEqual([page.version, page.versions], [3, [3, 2, 1]])
  assert.deepEqual(page.drawing.boxes.map(({ title }) => title).sort(), ['Start', 'Wait'])
})

test('two versions differ node by node, in lines of their JSON', async () => {
  const first = await call('versions', { conv_id: 'order', from: 1, to: 2 })
  assert.deepEqual(pick(first.nodes, 'node_id', 'title', 'change'), [
    ['w', 'Wait', 'moved_only'],
    ['e', 'End', 'added'],
  ])
  assert.deepEqual(first.nodes[0]?.lines, ['-   "x": 1,', '+   "x": 5,'])
  assert.deepEqual([first.from.boxes.length, first.to.boxes.length], [2, 3])
  const [two, three] = [
    await engine.processes.show('order', 2),
    await engine.processes.show('order'),
  ]
  const second = versionChanges(two.definition_text, three.definition_text)
  assert.deepEqual(second.lines, ['-   "title": "Order"', '+   "title": "Orders"'])
  assert.deepEqual(
    second.nodes.map(({ change, lines }) => [change, lines.every((line) => line.startsWith('- '))]),
    [['removed', true]],
  )
  const same = versionChanges(three.definition_text, three.definition_text)
  assert.deepEqual(same, { nodes: [], lines: [] })
})

const many = (from: number) => Array.from({ length: 1_500 }, (_, at) => `${from + at}`)
const differing: [from: string, to: string, change: string | undefined, lines: string[]][] = [
  ['"n":1.10', '"n":1.1', 'changed', ['-   "n": 1.10', '+   "n": 1.1']],
  ['"b":1,"a":[]', '"a":[],"b":1', undefined, []],
  ['"x":1,"n":1', '"n":1,"x":1.5', 'moved_only', ['-   "x": 1', '+   "x": 1.5']],
  ['"x":1,"n":1', '"n":2,"x":1', 'changed', ['-   "n": 1,', '+   "n": 2,']],
  ['"__proto__":1', '"__proto__":2', 'changed', ['-   "__proto__": 1,', '+   "__proto__": 2,']],
  [`"n":"<b>\\u202e"`, '"n":""', 'changed', ['-   "n": "<b>\u202e"', '+   "n": ""']],
]
for (const [from, to, change, lines] of differing) {
  test(`${from} to ${to} is ${change ?? 'no change'}`, () => {
    const text = (members: string): string => `{"scheme":{"nodes":[{"id":"a",${members}}]}}`
    const [node] = versionChanges(text(from), text(to)).nodes
    assert.deepEqual([node?.change, node?.lines ?? []], [change, lines])
  })
}

test('nodes that differ in very many lines are told as a whole', () => {
  const text = (from: number): string =>
    JSON.stringify({ scheme: { nodes: [{ id: 'a', code: many(from) }] } })
  const [node] = versionChanges(text(0), text(10_000)).nodes
  assert.equal(node?.lines.length, 2 * 1_505)
})

test('what is exported is imported again without a change', async () => {
  const { name, text } = await exportOf(engine, 'order')
  assert.equal(name, 'process-order.json')
  assert.equal((await call('import', file(text, true))).result.processes[0]?.state, 'unchanged')
  await assert.rejects(exportOf(engine, null), { code: 'bad_request' })
})

test('mistakes name the nodes that they are in', async () => {
  const wrong = order('Order', { condition: 7 }, [{ id: 'x\u0000', title: 'Odd', obj_type: 9 }])
  const bad = { ...wrong, scheme: { nodes: [...wrong.scheme.nodes, { ...end, id: 's' }] } }
  const lost = structuredClone(bad) as { scheme: { nodes: { condition: object }[] } }
  const [start] = lost.scheme.nodes
  if (start) start.condition = { logics: [{ type: 'go', to_node_id: 'gone' }] }
  await assert.rejects(call('import', file(lost, false)), ({ code, places }: Fault) => {
    assert.equal(code, 'bad_definition')
    assert.deepEqual(pick(places ?? [], 'conv_id', 'node_id', 'node_title'), [
      ['order', 'x\u0000', 'Odd'],
      ['order', 'x\u0000', 'Odd'],
      ['order', 's', 'End'],
      ['order', 's', 'Start'],
    ])
    return true
  })
})

test('nodes with tasks are dropped only with a place where their tasks go', async () => {
  await engine.create({ conv_id: 'order', data: {} })
  const other = {
    ...order('Order', {}),
    scheme: {
      nodes: [
        { id: 's', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'e' }] } },
        end,
      ],
    },
  }
  await assert.rejects(call('import', file(other, false)), ({ code, places }: Fault) => {
    assert.equal(code, 'tasks_in_node')
    const text = 'node "w" with 1 tasks'
    assert.deepEqual(places, [{ text, conv_id: 'order', node_id: 'w', node_title: 'Wait' }])
    return true
  })
  const moves = { w: 'e' }
  const looked = await call('import', { ...file(other, false), moves })
  assert.equal(looked.result.processes[0]?.state, 'updated')
  assert.equal((await engine.processes.show('order')).version, 3)
  await call('import', { ...file(other, true), moves })
  assert.equal((await engine.processes.show('order')).version, 4)
})

test('a process is paused and goes on', async () => {
  for (const [name, status] of [
    ['pause', 'paused'],
    ['resume', 'active'],
  ] as const) {
    assert.deepEqual(await call(name, { conv_id: 'a' }), {})
    assert.equal((await engine.processes.show('a')).status, status)
    assert.deepEqual(told(name, { conv_id: 'a' }, {}), { conv_id: 'a' })
  }
})

test('a task tells the task that it has called, and that one its caller', async () => {
  const logics = [
    { type: 'api_rpc', conv_id: 'order', extra: {}, extra_type: {}, err_node_id: 'e' },
  ]
  await engine.processes.put({
    ...{ obj_id: 'called', title: 'Called' },
    scheme: {
      nodes: [
        { id: 's', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'w' }] } },
        { id: 'w', obj_type: 0, condition: { logics: [{ type: 'api_callback' }] } },
      ],
    },
  })
  await engine.processes.put({
    ...{ obj_id: 'caller', title: 'Caller' },
    scheme: {
      nodes: [
        { id: 's', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'c' }] } },
        {
          id: 'c',
          title: 'Ask',
          obj_type: 0,
          condition: { logics: logics.map((one) => ({ ...one, conv_id: 'called' })) },
        },
        end,
      ],
    },
  })
  const { obj_id = '' } = await engine.create({ conv_id: 'caller', data: {} })
  const calling = await call('task', { obj_id })
  assert.equal(calling.wait?.for, 'reply')
  const { called } = calling
  assert.deepEqual([called?.conv_id, called?.title], ['called', 'Called'])
  const { caller, process_title } = await call('task', { obj_id: called?.obj_id ?? '' })
  assert.equal(process_title, 'Called')
  assert.deepEqual(caller, { obj_id, conv_id: 'caller', title: 'Caller' })
  await engine.tasks.cancel({ conv_id: 'called', obj_id: called?.obj_id ?? '' })
})

test('a process that was removed is shown no more, nor are its ended tasks', async () => {
  await engine.processes.put({ ...masking, obj_id: 'gone' })
  const { obj_id = '' } = await engine.create({ conv_id: 'gone', ref: 'last', data: {} })
  await engine.tasks.cancel({ conv_id: 'gone', obj_id })
  assert.equal((await call('find', { text: obj_id })).rows.length, 1)
  await engine.processes.remove('gone')
  assert.deepEqual((await call('find', { text: obj_id })).rows, [])
  assert.deepEqual((await call('find', { text: 'last' })).rows, [])
  await assert.rejects(call('task', { obj_id }), { code: 'not_found' })
})

test('through the server: mistakes, a large file, an export, and lines of the log', async () => {
  await using harness = await openHarness({ limits: { task_bytes_max: 1_000_000 } })
  const administer = await harness.as('administer')
  const bad = { ...order('Order', { condition: 7 }), obj_id: 'a"ü' }
  const refused = await harness.call('import', file(bad, false), administer)
  assert.equal(refused.status, 400)
  assert.deepEqual(JSON.parse(refused.text).mistakes, [
    {
      text: 'some.json: nodes[1] "Wait": condition is 7, an object was expected',
      ...{ conv_id: 'a"ü', node_id: 'w', node_title: 'Wait' },
    },
  ])
  assert.deepEqual(JSON.parse(refused.text).warnings, [
    {
      text: 'some.json: nodes[1] "Wait": a task that no logic sends on rests here without a time limit',
      conv_id: 'a"ü',
    },
  ])
  const large = { ...order('Order', {}), obj_id: 'a"ü', description: 'x'.repeat(2_000_000) }
  for (const store of [false, true]) {
    const { status, text } = await harness.call('import', file(large, store), administer)
    assert.deepEqual([status, JSON.parse(text).is_done], [200, store])
  }
  const acted = harness.told.filter(({ event }) => event === 'console_acted')
  assert.deepEqual(acted, [{ event: 'console_acted', act: 'import', by: 'link', code: 'ok' }])
  const target = { conv_id: 'a"ü', obj_id: '' }
  target.obj_id = (await harness.engine.create({ ...target, data: {} })).obj_id ?? ''
  const data_text = JSON.stringify({ quotes: '"'.repeat(450_000) })
  const modified = await harness.call('modify', { ...target, data_text }, administer)
  assert.deepEqual(JSON.parse(modified.text), { proc: 'ok' })
  const path = `/console/export?conv_id=${encodeURIComponent('a"ü')}`
  assert.equal(await harness.codeOf(path), 'bad_signature')
  const exported = await harness.ask(path, { as: await harness.as('look') })
  assert.equal(exported.headers['content-disposition'], 'attachment; filename="process-a__.json"')
  assert.deepEqual(JSON.parse(exported.text), large)
})
