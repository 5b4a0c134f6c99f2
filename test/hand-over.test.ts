/**
 * Which tasks a handler gets: the most specific name wins, and tasks that rest in a node are handed
 * over whenever its handler, its title, an alias or its process comes to be ready.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fault } from '../src/core/faults.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import type { GivenHandlers, Handler } from '../src/engine/api/handler-api.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import {
  atNode,
  by_kind,
  by_title,
  created,
  go,
  opened,
  processWith,
  taskOf,
  turns,
  until,
  waiting,
} from './support/handler-harness.ts'
import { engineOn } from './support/model-setup.ts'

const by =
  (name: string): Handler =>
  () => ({ by: name })

// [title of the node in process 1, whose alias is @shop; the names registered; the one that runs]
const rows: [title: string, names: readonly string[], runs: string | undefined][] = [
  ['charge', ['charge'], 'charge'],
  ['charge', ['charge', '@shop/charge'], '@shop/charge'],
  ['charge', ['@shop/charge', 'charge', '1/charge'], '1/charge'],
  ['charge', ['charge', '2/charge', '@other/charge'], 'charge'],
  ['charge', ['@shop/charge', '@also/charge'], '@also/charge'],
  ['charge', ['2/charge', 'Charge', '1', '1/', '/charge'], undefined],
  ['a/b', ['a/b'], 'a/b'],
  ['a/b', ['a/b', '1/a/b'], '1/a/b'],
  ['a/b', ['b', '1/b', 'a/a/b'], undefined],
  ['', ['1/'], '1/'],
]

for (const [title, names, runs] of rows) {
  test(`of ${names.join(', ')} the title "${title}" gets ${runs ?? 'none'}`, async () => {
    const handlers = Object.fromEntries(names.map((name) => [name, by(name)]))
    const { engine } = await opened({ handlers })
    await engine.processes.put(processWith(waiting, {}, { title }))
    await engine.processes.put(processWith(waiting, {}, { obj_id: 2 }))
    for (const alias of ['shop', 'also']) await engine.processes.setAlias(alias, 1)
    const obj_id = await created(engine)
    if (runs === undefined) {
      await turns(20)
      assert.equal((await engine.modify({ conv_id: 1, obj_id, data: {} })).resumed, true)
    } else assert.deepEqual((await atNode(engine, obj_id, 'done')).data, { a: 1, by: runs })
    await engine.close()
  })
}

test('the name a/b covers the title b of process a, and a logic type may be scoped', async () => {
  const handlers = { 'a/b': by('a/b'), '@later/db_call': by('typed') }
  const { engine } = await opened({ handlers })
  await engine.processes.put(processWith(waiting, {}, { obj_id: 'a', title: 'b' }))
  const obj_id = await created(engine, {}, undefined, 'a')
  assert.deepEqual((await atNode(engine, obj_id, 'done', 'a')).data, { by: 'a/b' })
  await engine.processes.put(by_kind)
  const typed = await created(engine)
  await turns(20)
  assert.equal((await taskOf(engine, typed)).node_id, 'work', 'the alias is not there yet')
  await engine.processes.setAlias('later', 1)
  assert.deepEqual((await atNode(engine, typed, 'done')).data, { a: 1, by: 'typed' })
  const scoped = { 'x/git_call': by('x') }
  const git_call = processWith([{ type: 'git_call' }, go('done')])
  await assert.rejects(engine.processes.put(git_call), { code: 'bad_definition' })
  for (const name of Object.keys(scoped)) engine.handle(name, by(name))
  await assert.rejects(engine.processes.put(git_call), { code: 'bad_definition' }, 'of x alone')
  await engine.close()
})

test('each handler has calls of its own at once', async () => {
  const under_way = { wide: 0, own: 0 }
  const hang = (name: 'wide' | 'own') => () => new Promise(() => under_way[name]++)
  const handlers: GivenHandlers = {
    Charge: { handler: hang('wide'), threads_max: 3 },
    '1/Charge': { handler: hang('own'), threads_max: 2 },
  }
  const { engine } = await opened({ handlers })
  for (const obj_id of [1, 2]) {
    await engine.processes.put(processWith(waiting, {}, { obj_id }))
    for (let n = 0; n < 5; n++) await created(engine, {}, undefined, obj_id)
  }
  await until(() => under_way.wide === 3 && under_way.own === 2)
  await turns(50)
  assert.deepEqual(under_way, { wide: 3, own: 2 })
  await engine.close()
})

/** More than one slice, and more than may be under way at once. */
const [many, some] = process.env.CONVEYOR_SLOW === '1' ? [10_000, 10_000] : [2_500, 1_000]

async function createMany(engine: Engine, count: number): Promise<string[]> {
  const made: string[] = []
  for (let n = 0; n < count; n += 1_000) {
    const ops = Array.from({ length: Math.min(1_000, count - n) }, () => ({
      ...{ type: 'create', obj: 'task', conv_id: 1, data: {} },
    }))
    for (const { obj_id } of await engine.apply(ops)) made.push(obj_id as string)
  }
  return made
}

/** A handler that keeps the tasks it was called for, each with its keys. */
function counting(): { readonly keys: Map<string, Set<string>>; readonly handler: Handler } {
  const keys = new Map<string, Set<string>>()
  return {
    keys,
    handler({ obj_id }, { key }) {
      const known = keys.get(obj_id) ?? new Set()
      keys.set(obj_id, known.add(key))
      return { handled: true }
    },
  }
}

for (const [count, restarts] of [
  [many, false],
  [some, true],
] as const) {
  const when = restarts ? 'after a restart' : 'later'
  test(`${count} resting tasks go to a handler that is registered ${when}`, async () => {
    const { harness, engine: first } = await opened()
    await first.processes.put(by_title)
    const made = await createMany(first, count)
    const { keys, handler } = counting()
    let engine = first
    if (restarts) {
      await first.close()
      engine = await harness.open({ handlers: { Charge: handler } })
    } else engine.handle('Charge', handler)
    // Others are not held up: this one is durable while most of them still wait.
    await engine.create({ conv_id: 1, data: {} })
    assert.ok(keys.size < count, `${keys.size} were handled first`)
    while (keys.size <= count) await turns(20)
    for (const obj_id of made) await atNode(engine, obj_id, 'done')
    assert.ok(made.every((obj_id) => keys.get(obj_id)?.size === 1))
    assert.deepEqual((await engine.check()).breaches, [])
    await engine.close()
  })
}

test('tasks are handed over once a title, an alias or a resume makes the handler theirs', async () => {
  const { keys, handler } = counting()
  const { engine } = await opened({ handlers: { Charge: handler, '@shop/Pay': handler } })
  const titled = (title: string) => processWith(waiting, {}, { title })
  await engine.processes.put(titled('Pay'))
  const aliased = await created(engine)
  await turns(20)
  assert.equal(keys.size, 0)
  await engine.processes.setAlias('shop', 1)
  await atNode(engine, aliased, 'done')
  await engine.processes.removeAlias('shop')
  const retitled = await created(engine)
  await turns(20)
  assert.equal((await taskOf(engine, retitled)).node_id, 'work')
  await engine.processes.put(titled('Charge'))
  await atNode(engine, retitled, 'done')
  await engine.processes.put(titled('Pay'))
  const paused = await created(engine)
  await engine.processes.pause(1)
  await engine.processes.put(titled('Charge'))
  await turns(20)
  assert.equal((await taskOf(engine, paused)).node_id, 'work')
  await engine.processes.resume(1)
  await atNode(engine, paused, 'done')
  assert.equal(keys.size, 3)
  await engine.close()
})

test('a hand-over keeps the timer of the wait, and a close in the middle of one loses nothing', async () => {
  const { harness, clock, engine } = await opened({ limits: { slice_tasks_max: 10 } })
  const semaphors = [{ type: 'time', value: 30, to_node_id: 'failed' }]
  await engine.processes.put(processWith(waiting, { semaphors }))
  const made = await createMany(engine, 200)
  clock.advance(20_000)
  engine.handle('Charge', () => new Promise(() => {}))
  await turns(5)
  await engine.close()
  const { keys, handler } = counting()
  const hang: Handler = (task, context) => {
    handler(task, context)
    return new Promise(() => {})
  }
  const next = await harness.open({
    handlers: { Charge: { handler: hang, threads_max: 300 } },
    limits: { jobs_max: 300 },
  })
  await until(() => keys.size === made.length)
  clock.advance(10_000)
  for (const obj_id of made) await atNode(next, obj_id, 'failed')
  assert.deepEqual((await next.check()).breaches, [])
  await next.close()
})

test('a full disk delays a hand-over until there is room', async () => {
  let [room, refuses] = [1_000_000, false]
  const below = memoryTree()
  const tree: Tree = {
    ...below,
    freeBytes: () => room,
    async commit(changes) {
      if (refuses) throw fault('no_space')
      await below.commit(changes)
    },
  }
  const clock = fakeClock()
  const engine = await engineOn(tree, { clock, limits: { disk_free_bytes_min: 2_000 } })
  await engine.processes.put(by_title)
  const obj_id = await created(engine)
  const stays = async (): Promise<void> => {
    await turns(20)
    clock.advance(1_000)
    await turns(20)
    assert.equal((await taskOf(engine, obj_id)).node_id, 'work')
  }
  room = 0
  engine.handle('Charge', () => ({}))
  await stays()
  room = 1_000_000
  refuses = true
  await stays()
  refuses = false
  clock.advance(1_000)
  await atNode(engine, obj_id, 'done')
  await engine.close()
})

test('only nodes that a handler covers are read, and a process without tasks not at all', async () => {
  const { engine } = await opened()
  await engine.processes.put(by_title)
  await engine.processes.put(processWith(waiting, {}, { obj_id: 2, title: 'Other' }))
  const other = await created(engine, {}, undefined, 2)
  const { keys, handler } = counting()
  engine.handle('Charge', handler)
  await turns(50)
  assert.equal(keys.size, 0)
  assert.equal((await engine.modify({ conv_id: 2, obj_id: other, data: {} })).resumed, true)
  await engine.close()
})
