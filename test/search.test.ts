/**
 * Finding tasks: each filter in both orders against a model that looks at every task, cursors, the
 * bound of one call, and what is refused with which choices.
 */

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { taskKey } from '../src/codec/keys.ts'
import type { CountFilter } from '../src/engine/api/search-api.ts'
import { rawJson, type Task, type TaskFilter, type TaskQuery } from '../src/index.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn } from './support/model-setup.ts'
import { fill, readAll } from './support/search-setup.ts'

const count = 420
const clock = fakeClock()
const tree = memoryTree()
const engine = await engineOn(tree, { clock, background: false, limits: { search_tasks_max: 90 } })
const begin_ms = clock.now_ms()
const all = await readAll(engine, await fill(engine, clock, count))
after(() => engine.close())

type Data = { n: number; kind: string; at: number; item: { price: number }; late?: true }

const dataOf = (task: Task): Data => task.data as Data
const isLive = ({ status }: Task): boolean => !['processed', 'canceled'].includes(status)
const dueOf = (task: Task): number =>
  task.status === 'delayed' && task.node_id === 'w2' ? dataOf(task).at * 1000 : 0
const createdOf = (task: Task): number =>
  Math.max(task.create_time_ms, 1000 * Number.parseInt(task.obj_id.slice(0, 8), 16))
const [early_ms, late_ms] = [begin_ms + 40_500, begin_ms + 120_000]

type Model = readonly [
  filter: TaskFilter,
  isWanted: (task: Task) => boolean,
  by?: (task: Task) => number | string,
]

// biome-ignore format: a table
const rows: readonly Model[] = [
  [{},                                        isLive],
  [{ conv_id: 'a' },                          (t) => isLive(t) && t.conv_id === 'a'],
  [{ conv_id: 'a', node_id: 'w1' },           (t) => isLive(t) && t.conv_id === 'a' && t.node_id === 'w1'],
  [{ conv_id: 'a', node_id: 'Wait' },         (t) => isLive(t) && t.conv_id === 'a' && t.node_id === 'w1'],
  [{ node_id: 'Bank' },                       (t) => isLive(t) && t.node_id === 'w2'],
  [{ node_id: 'w2', status: 'delayed' },      (t) => isLive(t) && t.node_id === 'w2'],
  [{ status: 'any' },                         () => true],
  [{ status: 'any', conv_id: 'b' },           (t) => t.conv_id === 'b'],
  [{ status: 'failed' },                      (t) => t.status === 'failed', (t) => t.change_time_ms],
  [{ status: 'failed', conv_id: 'b' },        (t) => t.status === 'failed' && t.conv_id === 'b', (t) => t.change_time_ms],
  [{ status: 'failed', node_id: 'f1' },       (t) => t.status === 'failed', (t) => t.change_time_ms],
  [{ status: 'failed', node_id: 'w1' },       () => false],
  [{ status: 'failed', changed_since_ms: early_ms, changed_until_ms: late_ms }, (t) => t.status === 'failed' && t.change_time_ms >= early_ms && t.change_time_ms < late_ms, (t) => t.change_time_ms],
  [{ status: 'failed', where: { odd: true } }, (t) => t.status === 'failed' && dataOf(t).n % 2 === 1, (t) => t.change_time_ms],
  [{ status: 'ended' },                       (t) => !isLive(t), (t) => t.change_time_ms],
  [{ status: 'canceled', conv_id: 'a' },      (t) => t.status === 'canceled' && t.conv_id === 'a', (t) => t.change_time_ms],
  [{ status: 'processed', node_id: 'Done' },  (t) => t.status === 'processed', (t) => t.change_time_ms],
  [{ ended_since_ms: early_ms, ended_until_ms: late_ms }, (t) => !isLive(t) && t.change_time_ms >= early_ms && t.change_time_ms < late_ms, (t) => t.change_time_ms],
  [{ ref_prefix: 'order-' },                  (t) => isLive(t) && t.ref?.startsWith('order-') === true, (t) => t.ref as string],
  [{ ref_prefix: 'order-1', conv_id: 'a' },   (t) => isLive(t) && t.conv_id === 'a' && t.ref?.startsWith('order-1') === true, (t) => t.ref as string],
  [{ ref_prefix: 'order-', status: 'any' },   (t) => t.ref?.startsWith('order-') === true, (t) => t.ref as string],
  [{ ref_prefix: 'bill', status: 'ended' },   (t) => !isLive(t) && t.ref?.startsWith('bill') === true, (t) => t.ref as string],
  [{ ref_prefix: 'none' },                    () => false],
  [{ created_since_ms: early_ms, created_until_ms: late_ms }, (t) => isLive(t) && createdOf(t) >= early_ms && createdOf(t) < late_ms],
  [{ status: 'any', created_until_ms: early_ms }, (t) => createdOf(t) < early_ms],
  [{ changed_since_ms: late_ms, conv_id: 'b' },   (t) => isLive(t) && t.conv_id === 'b' && t.change_time_ms >= late_ms],
  [{ status: 'any', changed_until_ms: early_ms }, (t) => t.change_time_ms < early_ms],
  [{ due_before_ms: 2_000_000_050_000 },      (t) => dueOf(t) > 0 && dueOf(t) < 2_000_000_050_000, dueOf],
  [{ due_before_ms: 2_000_000_050_000, conv_id: 'b' }, (t) => t.conv_id === 'b' && dueOf(t) > 0 && dueOf(t) < 2_000_000_050_000, dueOf],
  [{ due_before_ms: 9e15, node_id: 'w1' },    () => false],
  [{ where: { n: 17 } },                      (t) => isLive(t) && dataOf(t).n === 17],
  [{ where: { n: { gte: 100, lt: 110 } }, status: 'any' }, (t) => dataOf(t).n >= 100 && dataOf(t).n < 110],
  [{ where: { kind: { ne: 'wait' }, 'item.price': { gt: 20 } } }, (t) => isLive(t) && dataOf(t).kind !== 'wait' && dataOf(t).item.price > 20],
  [{ where: { late: { exists: true } }, status: 'any' }, (t) => dataOf(t).late === true],
  [{ where: rawJson('{"n":1.70e1}'), status: 'any' }, (t) => dataOf(t).n === 17],
]

/** Follows the cursors; no call reads more than the limit allows. */
async function pagesOf(query: TaskQuery): Promise<Task[]> {
  const found: Task[] = []
  let cursor: string | undefined
  do {
    const page = await engine.tasks.list({ ...query, ...(cursor === undefined ? {} : { cursor }) })
    assert.ok(page.scanned <= 90, `${page.scanned} scanned`)
    assert.ok(page.tasks.length <= (query.limit ?? 100))
    assert.deepEqual(page.damaged, [])
    found.push(...page.tasks)
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}

function sorted(tasks: readonly Task[], by: (task: Task) => number | string): string[] {
  const keyOf = (task: Task): [number | string, string] => [by(task), task.obj_id]
  const sorted = [...tasks].sort((a, b) => {
    const [[one, one_id], [other, other_id]] = [keyOf(a), keyOf(b)]
    if (one !== other) return one < other ? -1 : 1
    return one_id < other_id ? -1 : 1
  })
  return sorted.map(({ obj_id }) => obj_id)
}

describe('a filter finds what a look at every task finds, in its order', () => {
  for (const [filter, isWanted, by = (task: Task) => task.obj_id] of rows) {
    it(JSON.stringify(filter), async () => {
      const wanted = sorted(all.filter(isWanted), by)
      for (const limit of [7, 90]) {
        const found = await pagesOf({ ...filter, limit })
        assert.deepEqual(
          found.map(({ obj_id }) => obj_id),
          wanted,
        )
        const newest = await pagesOf({ ...filter, limit, newest_first: true })
        assert.deepEqual(
          newest.map(({ obj_id }) => obj_id),
          wanted.toReversed(),
        )
      }
    })
  }
})

describe('one call', () => {
  it('that finds little ends early, and says how far it came', async () => {
    const query = { where: { n: count - 1 }, status: 'any' } as const
    const page = await engine.tasks.list(query)
    assert.equal(page.scanned, 90)
    assert.deepEqual(page.tasks, [])
    const last = all[89] as Task
    assert.equal(page.reached_ms, Math.floor(createdOf(last) / 1000) * 1000)
    assert.equal((await pagesOf(query)).length, 1)
  })

  it('has no cursor at the end, also where the page is just full', async () => {
    const failed = all.filter(({ status }) => status === 'failed').length
    assert.ok(failed < 90)
    const page = await engine.tasks.list({
      status: 'failed',
      conv_id: 'a',
      node_id: 'f1',
      limit: 1,
    })
    assert.notEqual(page.cursor, undefined)
    const whole = await engine.tasks.list({ ref_prefix: 'order-2', limit: 1000 })
    assert.equal(whole.cursor, undefined)
    const full = await engine.tasks.list({ ref_prefix: 'order-2', limit: whole.tasks.length })
    assert.equal(full.cursor, undefined)
  })

  // biome-ignore format: a table
  const sorts = [
    [{}, 'created'], [{ status: 'ended' }, 'ended'], [{ status: 'failed' }, 'failed'], [{ due_before_ms: 1 }, 'due'],
    [{ ref_prefix: 'o', due_before_ms: 1 }, 'ref'],
  ] as const
  for (const [filter, by] of sorts) {
    it(`with ${JSON.stringify(filter)} is sorted by ${by}`, async () => {
      assert.equal((await engine.tasks.list(filter)).sorted_by, by)
    })
  }
})

describe('counts are those of all tasks', () => {
  // biome-ignore format: a table
  const counts: readonly (readonly [filter: CountFilter, isCounted: (task: Task) => boolean, by: 'node' | 'process'])[] = [
    [{},                                      () => true,                      'process'],
    [{ status: undefined } as object,         () => true,                      'process'],
    [{ status: 'live' },                      isLive,                          'process'],
    [{ status: 'failed' },                    (t) => t.status === 'failed',    'process'],
    [{ conv_id: 'a' },                        (t) => t.conv_id === 'a',        'node'],
    [{ conv_id: 'b', status: 'ended' },       (t) => t.conv_id === 'b' && !isLive(t), 'node'],
    [{ node_id: 'Wait' },                     (t) => t.node_id === 'w1',       'node'],
    [{ conv_id: 'a', node_id: 'w1', status: 'canceled' }, (t) => t.conv_id === 'a' && t.node_id === 'w1' && t.status === 'canceled', 'node'],
  ]
  for (const [filter, isCounted, by] of counts) {
    it(JSON.stringify(filter), async () => {
      const found = await engine.tasks.count(filter)
      const wanted = all.filter(isCounted)
      assert.equal(found.total, wanted.length)
      for (const [status, count] of Object.entries(found.by_status)) {
        assert.equal(count, wanted.filter((task) => task.status === status).length)
      }
      const rowOf = (task: Task) =>
        by === 'node' ? `${task.conv_id}/${task.node_id}` : task.conv_id
      const groups = [...new Set(wanted.map(rowOf))].sort()
      const rows = found.rows.map(({ conv_id, node_id }) =>
        node_id === undefined ? conv_id : `${conv_id}/${node_id}`,
      )
      assert.deepEqual(rows.sort(), groups)
      for (const { conv_id, node_id, total, title } of found.rows) {
        const group = wanted.filter((task) => {
          return task.conv_id === conv_id && (node_id === undefined || task.node_id === node_id)
        })
        assert.equal(total, group.length)
        assert.notEqual(title, '')
      }
    })
  }

  const refusals = [
    [{ where: {} }, 'bad_filter'],
    [{ status: 'odd' }, 'bad_filter'],
    [{ conv_id: 'c' }, 'conv_not_found'],
    [{ node_id: 'w9' }, 'node_not_found'],
  ] as const
  for (const [filter, code] of refusals) {
    it(`${JSON.stringify(filter)}: ${code}`, async () => {
      await assert.rejects(engine.tasks.count(filter as CountFilter), { code })
    })
  }
})

describe('refused', () => {
  const other = 'AQAAAAAAAAAAAAAA'
  // biome-ignore format: a table
  const refusals: readonly (readonly [query: object, code: string, says: RegExp])[] = [
    [{ conv_id: 'aa' },                 'conv_not_found', /a "Process a", b "Process b"/],
    [{ conv_id: 'a', node_id: 'w3' },   'node_not_found', /in process a; there are .*w1 "Wait", w2 "Bank"/],
    [{ node_id: 'Bink' },               'node_not_found', /in any process; there are w2 "Bank"/],
    [{ status: 'fialed' },              'bad_filter',     /"fialed"; there are processing, delayed, failed, processed, canceled, live, ended, any/],
    [{ statuss: 'failed' },             'bad_filter',     /"statuss"; a filter has conv_id, node_id/],
    [{ conv_id: '' },                   'bad_filter',     /conv_id/],
    [{ created_since_ms: 'now' },       'bad_filter',     /created_since_ms/],
    [{ due_before_ms: -1 },             'bad_filter',     /due_before_ms/],
    [{ due_before_ms: 1, status: 'ended' }, 'bad_filter', /no timer/],
    [{ ended_since_ms: 1, status: 'failed' }, 'bad_filter', /failed/],
    [{ limit: 0 },                      'bad_filter',     /limit/],
    [{ ref_prefix: '' },                'bad_filter',     /ref_prefix/],
    [{ where: 7 },                      'bad_filter',     /where/],
    [{ where: { n: { more: 1 } } },     'bad_filter',     /"more"; there are eq, ne, gt, gte, lt, lte, exists/],
    [{ where: { n: { exists: 1 } } },   'bad_filter',     /exists takes true or false/],
    [{ where: { n: { gt: null } } },    'bad_filter',     /gt takes a number or a text/],
    [{ where: { n: {} } },              'bad_filter',     /compares with nothing/],
    [{ where: { n: new Map() } },       'bad_filter',     /where\.n is no plain object/],
    [{ where: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [n, n])) }, 'bad_filter', /64/],
    [{ where: { [`${'a.'.repeat(64)}a`]: 1 } }, 'bad_filter',   /"a\.a.*…": a path has at most 64 steps/],
    [{ where: { a: 'x'.repeat(65_536) } }, 'bad_filter',  /over 65536 characters/],
    [{ node_id: 'x'.repeat(1_000) },    'node_not_found', /^no node "x{128}…" in any process/],
    [{ cursor: 'x' },                   'bad_cursor',     /none that a page has given/],
    [{ cursor: 7 },                     'bad_cursor',     /none that a page has given/],
    [{ cursor: other },                 'bad_cursor',     /another filter or order/],
  ]
  for (const [query, code, says] of refusals) {
    it(`${JSON.stringify(query)}: ${code}`, async () => {
      await assert.rejects(engine.tasks.list(query), { code, message: says })
    })
  }

  it('a cursor of another filter or order', async () => {
    const { cursor = '' } = await engine.tasks.list({ conv_id: 'a', limit: 1 })
    await engine.tasks.list({ conv_id: 'a', limit: 5, cursor })
    const queries = [{ conv_id: 'b' }, {}, { conv_id: 'a', newest_first: true }]
    for (const query of queries) {
      await assert.rejects(engine.tasks.list({ ...query, cursor }), { code: 'bad_cursor' })
    }
  })
})

describe('conditions compare by value', () => {
  const data =
    '{"a":1.10,"big":12345678901234567890,"zero":-0,"deep":{"list":[{"id":1},{"id":2e0}]},' +
    '"x.y":"dot","t":"b","e":1e400,"no":null,"o":{"p":[1.0],"q":2}}'
  // biome-ignore format: a table
  const conditions: readonly (readonly [where: string, holds: boolean])[] = [
    ['{"a":1.1}', true], ['{"a":{"eq":11e-1}}', true], ['{"a":{"ne":1.1}}', false],
    ['{"a":"1.10"}', false], ['{"a":{"gt":1.09,"lt":1.11}}', true], ['{"a":{"gt":1.1}}', false],
    ['{"big":12345678901234567890}', true], ['{"big":12345678901234567891}', false],
    ['{"big":{"lt":12345678901234567891}}', true], ['{"big":{"gte":12345678901234567891}}', false],
    ['{"zero":0}', true], ['{"zero":{"gt":-1}}', true], ['{"e":{"gt":1e399}}', true], ['{"e":10e399}', true],
    ['{"e":{"lt":1e401}}', true], ['{"e":{"gt":-1e401}}', true],
    ['{"deep.list[0].id":1}', true], ['{"deep.list[1].id":2}', true], ['{"deep.list[2].id":{"exists":false}}', true],
    ['{"deep.list[].id":2}', true], ['{"deep.list[].id":3}', false], ['{"deep.list[].id":{"gt":1}}', true],
    ['{"x\\\\.y":"dot"}', true], ['{"x.y":"dot"}', false],
    ['{"t":{"gt":"a","lte":"b"}}', true], ['{"t":{"lt":7}}', false],
    ['{"no":null}', true], ['{"no":{"exists":true}}', true], ['{"gone":null}', false], ['{"gone":{"ne":1}}', true],
    ['{"o":{"eq":{"q":2.0,"p":[1]}}}', true], ['{"o":{"eq":{"q":2}}}', false], ['{"o.p":[1]}', true], ['{"o.p":[1,1]}', false],
    ['{"__proto__":{"exists":true}}', false], ['{"constructor":{"exists":true}}', false], ['{}', true],
  ]
  for (const [where, holds] of conditions) {
    it(`${where} ${holds ? 'holds' : 'does not hold'}`, async () => {
      const { conv_id } = await single()
      const found = await engine.tasks.list({ conv_id, where: rawJson(where) })
      assert.equal(found.tasks.length, holds ? 1 : 0)
    })
  }

  let made: Promise<{ conv_id: string }> | undefined
  function single(): Promise<{ conv_id: string }> {
    made ??= (async () => {
      const { sortingProcess } = await import('./support/search-setup.ts')
      await engine.processes.put({ ...sortingProcess('values'), params: [] })
      const wait = `${data.slice(0, -1)},"kind":"wait"}`
      await engine.create({ conv_id: 'values', data: rawJson(wait) })
      return { conv_id: 'values' }
    })()
    return made
  }
})

describe('while tasks move', () => {
  it('each that matches all the time is found once, wherever it goes', async () => {
    const own = fakeClock()
    const engine = await engineOn(memoryTree(), {
      clock: own,
      background: false,
      limits: { search_tasks_max: 10 },
    })
    const ids = await fill(engine, own, 60)
    const live = (await readAll(engine, ids)).filter(isLive)
    const found: string[] = []
    let cursor: string | undefined
    let turn = 0
    do {
      const page: { tasks: readonly Task[]; cursor?: string } = await engine.tasks.list({
        ...{ conv_id: 'a', limit: 3 },
        ...(cursor === undefined ? {} : { cursor }),
      })
      found.push(...page.tasks.map(({ obj_id }) => obj_id))
      cursor = page.cursor
      // Tasks on both sides of the place move to a node before or behind the others.
      for (const { conv_id, obj_id, node_id, status } of live) {
        if (conv_id !== 'a' || status !== 'failed') continue
        const { proc } = await engine.tasks.retry({ conv_id, obj_id }, turn % 2 === 0 ? 'w1' : 'x1')
        assert.ok(proc === 'ok' || node_id === 'f1')
      }
      turn++
    } while (cursor !== undefined)
    const wanted = live.filter(({ conv_id }) => conv_id === 'a').map(({ obj_id }) => obj_id)
    assert.deepEqual(found, wanted)
    await engine.close()
  })
})

it('damaged records are named and skipped', async () => {
  const own = fakeClock()
  const below = memoryTree()
  const engine = await engineOn(below, { clock: own, background: false })
  const ids = await fill(engine, own, 6)
  const broken = ids[1] as string
  await below.commit(changesOf([[taskKey(broken), Buffer.from('not a record')]]))
  const page = await engine.tasks.list({})
  assert.deepEqual(page.damaged, [broken])
  assert.ok(page.tasks.every(({ obj_id }) => obj_id !== broken))
  await engine.close()
})
