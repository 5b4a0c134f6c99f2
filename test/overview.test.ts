/**
 * What is told of an engine to those who watch: counts and rates against what was done, failed
 * tasks by cause, and that a watch is told nothing twice.
 */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { newDurations } from '../src/console/overview/durations.ts'
import type { EdgeRate, Overview, ProcessRow } from '../src/console/overview/messages.ts'
import { newOverviews } from '../src/console/overview/overview.ts'
import type { Status } from '../src/core/model.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/open.ts'
import { fakeClock } from './support/fake-clock.ts'
import { fill, sortingProcess } from './support/search-setup.ts'

const clock = fakeClock()
const kept_ms = 3_600_000
const limits = { ended_kept_ms: kept_ms, drain_ms_max: 0 }
const engine = servedEngine(await openEngine(':memory:', { clock, limits }))
await fill(engine, clock, 150)
const overviews = newOverviews(engine)
const watch = overviews.watch()
after(async () => {
  overviews.close()
  await engine.close()
})

/** What the watch is told a second later, or later still. */
async function next(later_ms = 1_000): Promise<Overview> {
  clock.advance(later_ms)
  return watch.next()
}

const rowOf = ({ processes }: Overview, conv_id: string): ProcessRow | undefined =>
  processes.find((row) => row.conv_id === conv_id)

/** The tasks by status as the counters of the nodes have them. */
async function counted(conv_id: string): Promise<ProcessRow['by_status']> {
  const { by_status } = await engine.tasks.count({ conv_id, status: 'any' })
  const found = Object.entries(by_status).filter(([, count]) => count > 0)
  return Object.fromEntries(found) as Partial<Record<Status, number>>
}

const create = async (kind: string, data: object = {}): Promise<string> =>
  (await engine.create({ conv_id: 'a', data: { kind, ...data } })).obj_id as string
const send = (obj_id: string): Promise<unknown> =>
  engine.modify({ conv_id: 'a', obj_id, data: { sent: true } })
const target = (obj_id: string) => ({ conv_id: 'a', obj_id })
const first = async (status: Status): Promise<string> => {
  const { tasks } = await engine.tasks.list({ conv_id: 'a', status, limit: 1 })
  return (tasks[0] as { obj_id: string }).obj_id
}

describe('an overview', () => {
  it('has the tasks that were there before, and since when it counts ends', async () => {
    const all = await next()
    for (const conv_id of ['a', 'b']) {
      const { title, status, version, by_status, done } = rowOf(all, conv_id) as ProcessRow
      assert.deepEqual(by_status, await counted(conv_id))
      assert.deepEqual([title, status, version], [`Process ${conv_id}`, 'active', 1])
      assert.deepEqual(done, new Array(30).fill(0))
    }
    assert.ok(all.since_ms < all.at_ms)
  })

  it('tells nothing twice, and a new watch everything', async () => {
    await next()
    const { processes, removed, failed, health } = await next()
    assert.deepEqual([processes, removed, failed], [[], [], undefined])
    assert.equal(health.ok, true)
    const other = overviews.watch()
    const whole = await other.next()
    other.close()
    const { total } = await engine.tasks.count({ status: 'failed' })
    assert.deepEqual([whole.processes.length, whole.failed?.total], [2, total])
  })

  // [what is done, how many tasks of process a that ends]
  const acts: readonly (readonly [string, () => Promise<unknown>, ends: number])[] = [
    ['a create that waits', () => create('wait'), 0],
    ['one that ends at once', () => create('done'), 1],
    ['one that fails', () => create('fail'), 0],
    ['a callback', async () => send(await create('wait')), 1],
    ['a cancel', async () => engine.tasks.cancel(target(await create('wait'))), 1],
    ['a retry that fails again', async () => engine.tasks.retry(target(await first('failed'))), 0],
    ['a move', async () => engine.tasks.move(target(await first('failed')), 'w1'), 0],
    ['a timer', () => create('bank', { at: clock.now_ms() / 1_000 }), 1],
    ['many at once', () => engine.apply(Array.from({ length: 70 }, (_, n) => op(n))), 40],
    ['a refused op', () => engine.modify({ conv_id: 'a', ref: 'none', data: {} }), 0],
    ['the end of what is kept', async () => clock.advance(kept_ms + 1), 0],
  ]
  const op = (n: number) => ({
    ...{ type: 'create', obj: 'task', conv_id: 'a', ref: `many-${n}` },
    data: { kind: n < 40 ? 'done' : 'wait' },
  })
  for (const [name, act, ends] of acts) {
    it(`counts ${name}`, async () => {
      const before = rowOf(await other(), 'a')?.done.at(-1) ?? 0
      const mark = overviews.mark()
      await act()
      await settled()
      const now = rowOf(await other(), 'a') as ProcessRow
      assert.deepEqual(now.by_status, await counted('a'))
      if (name !== 'a refused op') assert.notEqual(overviews.mark(), mark)
      if (name.startsWith('the end')) assert.deepEqual(now.done, new Array(30).fill(0))
      else assert.equal((now.done.at(-1) as number) - before, ends)
    })
  }
  /** Everything, within the same minute. */
  const other = async (): Promise<Overview> => {
    clock.advance(300)
    const one = overviews.watch()
    return one.next().finally(one.close)
  }
  /** Timers fire in turns of the background. */
  const settled = async (): Promise<void> => {
    do await new Promise(setImmediate)
    while (engine.isBusy())
    await engine.flush()
  }
})

describe('failed tasks, processes and health', () => {
  it('are told by cause, the newest first, once something has changed', async () => {
    await next()
    clock.advance(5)
    const newest = await create('fail')
    const { failed } = await next()
    const tasks = await engine.tasks.list({ status: 'failed', newest_first: true, limit: 1_000 })
    assert.equal(failed?.total, tasks.tasks.length)
    assert.equal(failed?.grouped, tasks.tasks.length)
    const groups = failed?.groups ?? []
    assert.equal(
      groups.reduce((sum, group) => sum + group.tasks, 0),
      tasks.tasks.length,
    )
    const { newest_ms, tasks: count, ...group } = groups[0] as (typeof groups)[number]
    assert.deepEqual(group, {
      ...{ conv_id: 'a', node_id: 'f1', title: 'Process a', node_title: 'Fail' },
      ...{ tag: tasks.tasks[0]?.status_details?.tag, newest_obj_id: newest },
    })
    assert.deepEqual([newest_ms, count > 1], [tasks.tasks[0]?.change_time_ms, true])
    assert.equal((await next()).failed, undefined)
    await engine.tasks.cancel(target(newest))
    assert.equal((await next()).failed?.total, tasks.tasks.length - 1)
  })

  // [what is done, the rows and the conv_ids that are told then]
  const changes: readonly (readonly [string, () => Promise<unknown>, object[], string[]])[] = [
    [
      'a new process',
      () => engine.processes.put(sortingProcess('c')),
      [{ conv_id: 'c', status: 'active' }],
      [],
    ],
    ['a pause', () => engine.processes.pause('c'), [{ conv_id: 'c', status: 'paused' }], []],
    ['a removal', () => engine.processes.remove('c'), [], ['c']],
  ]
  for (const [name, act, rows, removed] of changes) {
    it(`tells ${name}`, async () => {
      await act()
      const told = await next()
      const found = told.processes.map(({ conv_id, status }) => ({ conv_id, status }))
      assert.deepEqual([found, told.removed], [rows, removed])
    })
  }

  it('has the health, its rates and commits while it is watched', async () => {
    await next(11_000)
    await engine.apply(
      Array.from({ length: 50 }, () => ({ type: 'show', obj: 'task', conv_id: 'a', ref: 'x' })),
    )
    await create('wait')
    const { health } = await next()
    assert.equal(health.ops_per_s, 51)
    assert.ok(health.commit_ms !== undefined && health.commit_ms.p50 <= health.commit_ms.p99)
    assert.deepEqual([health.queue.ops, health.due_lag_ms, health.ok], [0, 0, true])
  })
})

describe('the counts of a process', () => {
  const from = (edges: readonly EdgeRate[], node_id: string): EdgeRate | undefined =>
    edges.find(({ from_node_id, to_node_id }) => from_node_id === 'start' && to_node_id === node_id)

  it('are those of its nodes, with timers that fire soon and the edges of ten seconds', async () => {
    clock.advance(12_000)
    for (let n = 0; n < 30; n++) await create('wait')
    const soon = [await create('bank', { at: clock.now_ms() / 1_000 + 30 })]
    await create('bank', { at: clock.now_ms() / 1_000 + 600 })
    clock.advance(1_000)
    const { nodes, edges, status, version } = await overviews.counts('a')
    assert.deepEqual([status, version], ['active', 1])
    const { rows } = await engine.tasks.count({ conv_id: 'a', status: 'any' })
    for (const { node_id, total } of rows) {
      const node = nodes.find((one) => one.node_id === node_id)
      const sum = Object.values(node?.by_status ?? {}).reduce((all, one) => all + one, 0)
      assert.equal(sum, total, node_id)
    }
    assert.equal(nodes.find(({ node_id }) => node_id === 'w2')?.due_soon, soon.length)
    assert.ok(Math.abs((from(edges, 'w1')?.per_s ?? 0) - 3) < 0.3)
    assert.ok((from(edges, 'w2')?.per_s ?? 0) > 0)
    assert.equal(from(edges, 'f1'), undefined)
    clock.advance(12_000)
    assert.deepEqual((await overviews.counts('a')).edges, [])
  })

  it('tell a node that its last task has left as empty', async () => {
    const moved = await create('wait')
    await engine.tasks.move(target(moved), 'x1')
    clock.advance(1_000)
    const nodeOf = async () =>
      (await overviews.counts('a')).nodes.find(({ node_id }) => node_id === 'x1')?.by_status
    assert.deepEqual(await nodeOf(), { delayed: 1 })
    await send(moved)
    clock.advance(1_000)
    assert.deepEqual(await nodeOf(), {})
  })

  it('are refused for a process that is not there', async () => {
    await assert.rejects(overviews.counts('none'), { code: 'conv_not_found' })
  })
})

// [durations, median, slowest hundredth], each up to a fifth more
const durations: readonly (readonly [number[], p50: number, p99: number])[] = [
  [[1], 1, 1],
  [[...new Array(98).fill(0.1), 50, 50], 0.1, 50],
  [[0.001, 1e9], 0.01, 1e5],
]
for (const [given, p50, p99] of durations) {
  it(`${given.length} durations have a median of ${p50} ms`, () => {
    let now_ms = 1e12
    const { add, read } = newDurations(() => now_ms)
    for (const ms of given) add(ms)
    const found = read()
    for (const [is, wanted] of [
      [found?.p50, p50],
      [found?.p99, p99],
    ] as const) {
      assert.ok(
        (is as number) >= wanted * 0.99 && (is as number) <= wanted * 1.25,
        `${is}, ${wanted}`,
      )
    }
    now_ms += 10_000
    assert.equal(read(), undefined)
  })
}

it('counts nothing once all are closed, and begins anew', async () => {
  const mark = overviews.mark()
  overviews.close()
  await create('done')
  assert.equal(overviews.mark(), mark)
  const again = newOverviews(engine)
  const { processes } = await again.watch().next()
  const row = processes.find(({ conv_id }) => conv_id === 'a') as ProcessRow
  assert.deepEqual(row.by_status, await counted('a'))
  assert.equal(row.done.at(-1), 0)
  again.close()
})
