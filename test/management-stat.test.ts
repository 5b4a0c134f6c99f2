/** `show stat`: how many tasks came into nodes and left them, over signed HTTP in both versions. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { definition, node, openHttp, type TestHttp } from './support/http-server.ts'

type Json = Readonly<Record<string, unknown>>
interface Stat {
  readonly proc: string
  readonly description?: string
  readonly key?: string
  readonly group?: string
  readonly from?: number
  readonly data?: readonly Json[]
}

const editor = '13002'
let served: TestHttp
let secret = ''

before(async () => {
  served = await openHttp()
  const { engine } = served
  await engine.processes.put(
    definition(7, [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'mid' }]),
      node('mid', 0, [{ type: 'go', to_node_id: 'end' }]),
      { ...node('end', 2, []), options: { save_task: true } },
    ]),
  )
  secret = (await engine.users.add({ id: editor })).secret
  await engine.processes.share('7', editor, ['show', 'edit'])
  await engine.processes.share('1234', editor, ['show', 'edit'])
  for (const conv_id of ['7', '1234']) {
    for (const ref of ['a', 'b', 'c', 'd']) await engine.create({ conv_id, ref, data: {} })
    await engine.modify({ conv_id, ref: 'a', data: { note: 1 } })
    await engine.modify({ conv_id, ref: 'b', data: { note: 1 } })
    await engine.tasks.cancel({ conv_id, ref: 'c' })
  }
})
after(() => served.close())

async function stat(members: Json, version: 1 | 2 = 2, user = editor): Promise<Stat> {
  const op = { type: 'show', obj: 'stat', conv_id: 7, ...members }
  const how = user === editor ? { user, secret, version } : { version }
  const { body } = await served.send(JSON.stringify({ ops: [op] }), how)
  return (JSON.parse(body) as { ops: [Stat] }).ops[0]
}

const now_s = (): number => Math.floor(served.engine.clock.now_ms() / 1000)
const lately = (): Json => ({ start: now_s() - 600, end: now_s() + 600 })

const title = (id: string): string => id
const counts = (rows: readonly (readonly [string, number, number])[]): Json[] =>
  rows.map(([id, come, gone]) => ({ id, title: title(id), in: come, out: gone }))

for (const version of [1, 2] as const) {
  test(`all nodes of a process whose tasks are kept, version ${version}`, async () => {
    const { proc, group, from, data } = await stat({ ...lately(), group: 'all' }, version)
    assert.deepEqual([proc, group], ['ok', 'all'])
    assert.ok(from !== undefined && from <= now_s() + 1 && from > now_s() - 600)
    assert.deepEqual(
      data?.map(({ id, in: come, out }) => [id, come, out]),
      [
        ['start', 4, 4],
        ['wait', 4, 3],
        ['mid', 2, 2],
        ['end', 2, 0],
      ],
    )
  })
}

test('tasks that are gone count where they rested', async () => {
  const { data } = await stat({ ...lately(), conv_id: 1234, group: 'all' })
  assert.deepEqual(
    data?.map(({ id, in: come, out }) => [id, come, out]),
    [
      ['start', 4, 4],
      ['wait', 4, 3],
      ['end', 2, 0],
    ],
  )
})

test('some nodes, each with its title', async () => {
  const { data } = await stat({ ...lately(), group: 'all', node_ids: ['mid', 'wait'] })
  assert.deepEqual(
    data,
    counts([
      ...([
        ['mid', 2, 2],
        ['wait', 4, 3],
      ] as const),
    ]),
  )
})

/** [interval, ms, minutes from local time to UTC] */
for (const [interval, ms, timezone_offset] of [
  ['minute', 60_000, 0],
  ['hour', 3_600_000, -330],
  ['day', 86_400_000, 120],
] as const) {
  test(`by ${interval}, ${timezone_offset} minutes from UTC`, async () => {
    const { data = [] } = await stat({ ...lately(), node_id: 'wait', interval, timezone_offset })
    const sum = (way: 'in' | 'out'): number => data.reduce((all, row) => all + Number(row[way]), 0)
    assert.deepEqual([sum('in'), sum('out')], [4, 3])
    const local_ms = served.engine.clock.now_ms() - timezone_offset * 60_000
    const slot = new Date(Math.floor(local_ms / ms) * ms).toISOString()
    assert.equal(data.at(-1)?.date, slot.slice(0, 19).replace('T', ' '))
  })
}

test('a time before anything was kept has no rows, and says since when', async () => {
  const { data, from } = await stat({ start: 1_600_000_000, end: 1_600_086_400, node_id: 'wait' })
  assert.deepEqual(data, [])
  assert.ok(Number(from) > 1_700_000_000)
})

/** [what, members, proc, description] */
const refused: readonly (readonly [string, Json, string, RegExp])[] = [
  ['no start', { end: 9, node_id: 'wait' }, 'error', /^Key 'start' is required$/],
  ['no end', { start: 9, node_id: 'wait' }, 'error', /^Key 'end' is required$/],
  ['an end before its start', { start: 9, end: 9, node_id: 'wait' }, 'error', /later than start/],
  ['no node by time', { start: 1, end: 9 }, 'error', /^Key 'node_id' is required$/],
  ['no such node', { start: 1, end: 9, node_id: 'x' }, 'error', /^Object node with id x does not/],
  ['no nodes', { start: 1, end: 9, node_ids: [] }, 'error', /node_ids: 1 to 1000 ids/],
  ['a node that is no id', { start: 1, end: 9, node_id: {} }, 'error', /node_id: an id/],
  ['an interval', { start: 1, end: 9, node_id: 'wait', interval: 'year' }, 'error', /interval: /],
  ['a group', { start: 1, end: 9, node_id: 'wait', group: 'x' }, 'error', /group: time or all/],
  ['an offset', { start: 1, end: 9, node_id: 'wait', timezone_offset: 9999 }, 'error', /_offset: /],
  [
    'over 10,000 rows',
    { start: 1, end: 600_062, node_id: 'wait', interval: 'minute' },
    ...(['error', /^over 10000 rows/] as const),
  ],
  ['no such process', { conv_id: 99, start: 1, end: 9 }, 'access_denied', /conv_id: 99$/],
]
for (const [what, members, proc, description] of refused) {
  test(`${what} is refused`, async () => {
    const answer = await stat(members)
    assert.equal(answer.proc, proc)
    assert.match(answer.description ?? '', description)
  })
}

test('a right on tasks alone does not read statistics', async () => {
  const { proc } = await stat({ ...lately(), conv_id: 1234, group: 'all' }, 2, '13000')
  assert.equal(proc, 'access_denied')
})
