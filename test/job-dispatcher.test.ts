/**
 * Dispatch of calls through the whole engine, to real servers: concurrency limits, paused processes
 * and tasks that have moved on. handlers.test runs handlers.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryTree } from '../src/store/memory-tree.ts'
import { answerJson, callServer } from './support/call-server.ts'
import {
  conv_id,
  ended,
  patient,
  processOf,
  type Stage,
  stage,
  taskOf,
} from './support/call-stage.ts'
import { breakingTree } from './support/crash-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn, memoryHarness } from './support/model-setup.ts'
import { eventually } from './support/waits.ts'

async function drive(
  { engine }: Pick<Stage, 'engine'>,
  server: ReturnType<typeof patient>,
  count: number,
  at_once: number,
  conv_ids = [conv_id],
): Promise<void> {
  const made: { obj_id?: string; conv: string }[] = []
  for (const conv of conv_ids) {
    const ops = Array.from({ length: count }, (_, n) => ({
      ...{ type: 'create', obj: 'task', conv_id: conv, data: { n } },
    }))
    for (const { obj_id } of await engine.apply(ops)) {
      made.push({ conv, ...(obj_id !== undefined && { obj_id }) })
    }
  }
  await eventually(() => server.open.length === at_once)
  for (const { obj_id, conv } of made) {
    await eventually(async () => {
      // Time for calls to pile up over their bound, if they would.
      await new Promise((resolve) => setTimeout(resolve, 1))
      server.letGo()
      return (await taskOf(engine, obj_id, conv)).status === 'processed'
    })
  }
}

test('a logic has no more than max_threads calls in flight', () => {
  const hanging = patient()
  return stage(hanging.answer, async (all) => {
    await all.engine.processes.put(processOf({ url: all.server.url, max_threads: 2 }))
    await drive(all, hanging, 20, 2)
    assert.equal(hanging.most(), 2)
    assert.equal(all.server.asked.length, 20)
  })
})

test('a host has no more calls than its limit, over all logics', () => {
  const hanging = patient()
  const limits = { call_host_max: 3 }
  return stage(
    hanging.answer,
    async (all) => {
      const convs = ['one', 'two', 'three']
      for (const obj_id of convs) {
        await all.engine.processes.put(
          processOf({ url: all.server.url, max_threads: 2 }, { obj_id }),
        )
      }
      await drive(all, hanging, 10, 3, convs)
      assert.equal(hanging.most(), 3)
      assert.equal(all.server.asked.length, 30)
    },
    { limits },
  )
})

test('a call that waits too long for a slot fails without being made', () => {
  const hanging = patient()
  return stage(
    hanging.answer,
    async ({ harness: { clock }, server, engine }) => {
      await engine.processes.put(processOf({ url: server.url, max_threads: 1 }))
      const create = () => engine.create({ conv_id, data: {} })
      const made = [await create(), await create(), await create()]
      const [first, second, third] = made.map(({ obj_id }) => obj_id)
      await eventually(() => hanging.open.length === 1 && clock.nextWake_ms() !== undefined)
      clock.advance(9_999)
      hanging.letGo()
      await ended(engine, first)
      await eventually(() => hanging.open.length === 1)
      clock.advance(1)
      const { node_id, data } = await ended(engine, third)
      assert.equal(node_id, 'bad')
      assert.deepEqual(data, {
        __conveyor_api_return_type_error__: 'hardware',
        __conveyor_api_return_type_tag__: 'api_expire_query',
        __conveyor_api_return_description__:
          'Expire task to API, please check your api for correct answer, ' +
          'or increase max_threads for connections',
      })
      hanging.letGo()
      assert.equal((await ended(engine, second)).node_id, 'done')
      const last = await create()
      await eventually(() => hanging.open.length === 1)
      hanging.letGo()
      assert.equal((await ended(engine, last.obj_id)).node_id, 'done')
      assert.equal(server.asked.length, 3)
    },
    { limits: { call_wait_ms_max: 10_000 } },
  )
})

test('a waiting call is made once where more slots become free at once', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ server, engine }) => {
    await engine.processes.put(processOf({ url: server.url, max_threads: 2 }))
    const made: (string | undefined)[] = []
    for (let n = 0; n < 3; n++) made.push((await engine.create({ conv_id, data: {} })).obj_id)
    await eventually(() => hanging.open.length === 2)
    hanging.letGo()
    hanging.letGo()
    await eventually(() => server.asked.length >= 3)
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(server.asked.length, 3)
    hanging.letGo()
    for (const obj_id of made) assert.equal((await ended(engine, obj_id)).node_id, 'done')
  })
})

test('a host that hangs delays no other', async () => {
  const quick = await callServer(answerJson('{"quick":true}'))
  const hanging = patient()
  await stage(
    hanging.answer,
    async ({ server, engine }) => {
      await engine.processes.put(processOf({ url: '{{url}}', max_threads: 0 }))
      const ops = [...Array(400).fill(server.url), quick.url].map((url) => ({
        ...{ type: 'create', obj: 'task', conv_id, data: { url } },
      }))
      const last = (await engine.apply(ops)).at(-1)
      const task = await ended(engine, last?.obj_id)
      assert.equal((task.data as Record<string, unknown>).quick, true)
      await eventually(() => hanging.open.length === 2)
      assert.equal(hanging.most(), 2)
    },
    { limits: { call_host_max: 2, jobs_max: 4 }, allow_hosts: [quick.host] },
  )
  await quick.close()
})

test('the outcome for a paused process is applied at resume, and holds no slot eventually then', () => {
  const hanging = patient()
  const limits = { jobs_max: 1, call_host_max: 1 }
  return stage(
    hanging.answer,
    async ({ server, engine }) => {
      const other = 'other'
      await engine.processes.put(processOf({ url: server.url }))
      await engine.processes.put(processOf({ url: server.url }, { obj_id: other }))
      const paused = await engine.create({ conv_id, data: {} })
      await eventually(() => hanging.open.length === 1)
      await engine.processes.pause(conv_id)
      hanging.letGo('{"answer":1}')
      const free = await engine.create({ conv_id: other, data: {} })
      await eventually(() => hanging.open.length === 1)
      hanging.letGo('{"answer":2}')
      assert.deepEqual((await ended(engine, free.obj_id, other)).data, { answer: 2 })
      assert.equal((await taskOf(engine, paused.obj_id)).status, 'delayed')
      await engine.processes.resume(conv_id)
      assert.deepEqual((await ended(engine, paused.obj_id)).data, { answer: 1 })
      assert.equal(server.asked.length, 2)
    },
    { limits },
  )
})

test('a paused process starts its calls when it is resumed', () => {
  const statuses = [500, 200]
  return stage(
    (_asked, _request, response) => response.writeHead(statuses.shift() ?? 400).end('{}'),
    async ({ server, engine, harness: { clock } }) => {
      await engine.processes.put(processOf({ url: server.url, retry: { attempts_max: 2 } }))
      const { obj_id } = await engine.create({ conv_id, data: {} })
      const deadline_ms = clock.now_ms() + 60_000
      await eventually(() => server.asked.length === 1 && clock.nextWake_ms() !== deadline_ms)
      await engine.processes.pause(conv_id)
      clock.advance(1_000)
      await new Promise((resolve) => setTimeout(resolve, 30))
      assert.equal(server.asked.length, 1)
      await engine.processes.resume(conv_id)
      assert.equal((await ended(engine, obj_id)).node_id, 'done')
    },
  )
})

test('a call whose host is at its limit gives its slot of the logic to the next', async () => {
  const quick = patient()
  const other = await callServer(quick.answer)
  const hanging = patient()
  await stage(
    hanging.answer,
    async ({ server, engine }) => {
      await engine.processes.put(processOf({ url: '{{url}}', max_threads: 2 }))
      const create = (url: string) => engine.create({ conv_id, data: { url } })
      await create(server.url)
      const first = await create(other.url)
      await eventually(() => hanging.open.length === 1 && quick.open.length === 1)
      await create(server.url)
      const last = await create(other.url)
      quick.letGo()
      await ended(engine, first.obj_id)
      await eventually(() => quick.open.length === 1)
      quick.letGo()
      await ended(engine, last.obj_id)
      assert.equal(server.asked.length, 1)
    },
    { limits: { call_host_max: 1 }, allow_hosts: [other.host] },
  )
  await other.close()
})

test('a task that its timer has moved gets no response', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ harness: { clock }, server, engine }) => {
    const semaphors = [{ type: 'time', value: 30, to_node_id: 'late' }]
    await engine.processes.put(processOf({ url: server.url }, { semaphors }))
    const { obj_id } = await engine.create({ conv_id, data: { a: 1 } })
    await eventually(() => hanging.open.length === 1)
    clock.advance(30_000)
    const task = await ended(engine, obj_id)
    hanging.letGo('{"a":2}')
    const next = await engine.create({ conv_id, data: {} })
    await eventually(() => hanging.open.length === 1)
    hanging.letGo()
    await ended(engine, next.obj_id)
    assert.deepEqual(await taskOf(engine, obj_id), task)
    assert.deepEqual([task.node_id, task.data_text], ['late', '{"a":1}'])
  })
})

test('a canceled task gets no response', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ server, engine }) => {
    await engine.processes.put(processOf({ url: server.url }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    await eventually(() => hanging.open.length === 1)
    await engine.tasks.cancel({ conv_id, obj_id: obj_id as string })
    hanging.letGo('{"a":2}')
    const next = await engine.create({ conv_id, data: {} })
    await eventually(() => hanging.open.length === 1)
    hanging.letGo()
    await ended(engine, next.obj_id)
    assert.deepEqual((await taskOf(engine, obj_id)).data, {})
    assert.deepEqual((await engine.check()).breaches, [])
  })
})

test('a response is merged into the data as it is then', () => {
  const hanging = patient()
  return stage(hanging.answer, async ({ server, engine }) => {
    await engine.processes.put(processOf({ url: server.url, extra: { a: '{{a}}' } }))
    const { obj_id } = await engine.create({ conv_id, data: { a: 1, b: 1, c: 1 } })
    await eventually(() => hanging.open.length === 1)
    const target = { conv_id, obj_id: obj_id as string }
    await engine.modify({ ...target, data: { a: 2, b: 2 } })
    assert.equal((await taskOf(engine, obj_id)).status, 'delayed')
    hanging.letGo('{"b":3}')
    assert.deepEqual((await ended(engine, obj_id)).data, { a: 2, b: 3, c: 1 })
    assert.equal(server.asked[0]?.body, '{"a":1}')
  })
})

test('a retry by an administrator is another job, with a key of its own', () =>
  stage(answerJson('no', 400), async ({ server, engine }) => {
    await engine.processes.put(processOf({ url: server.url, err_node_id: '' }))
    const { obj_id } = await engine.create({ conv_id, data: {} })
    const target = { conv_id, obj_id: obj_id as string }
    for (const asked of [1, 2]) {
      await eventually(async () => (await taskOf(engine, obj_id)).status === 'failed')
      assert.equal(server.asked.length, asked)
      assert.equal((await taskOf(engine, obj_id)).status_details?.tag, 'api_bad_answer')
      await engine.tasks.retry(target)
    }
    await eventually(() => server.asked.length === 3)
    assert.equal(new Set(server.asked.map(({ headers }) => headers['idempotency-key'])).size, 3)
  }))

test('a hundred tasks at once make one call each', () => {
  const limits = { jobs_max: 16 }
  return stage(
    answerJson('{"answered":true}'),
    async ({ server, engine }) => {
      await engine.processes.put(
        processOf({ url: server.url, max_threads: 5, extra: { n: '{{n}}' } }),
      )
      const ops = Array.from({ length: 100 }, (_, n) => ({
        ...{ type: 'create', obj: 'task', conv_id, data: { n } },
      }))
      for (const { obj_id } of await engine.apply(ops)) {
        const { data } = await ended(engine, obj_id)
        assert.equal((data as Record<string, unknown>).answered, true)
      }
      const bodies = server.asked.map(({ body }) => body)
      assert.equal(bodies.length, 100)
      assert.equal(new Set(bodies).size, 100)
      assert.deepEqual((await engine.check()).breaches, [])
    },
    { limits },
  )
})

test('a failed store starts no call again', async () => {
  const server = await callServer(answerJson())
  const tree = memoryTree()
  const options = { clock: fakeClock(), allow_hosts: [server.host] }
  const setup = await engineOn(tree, { ...options, background: false })
  await setup.processes.put(processOf({ url: server.url }))
  for (let tasks = 0; tasks < 3; tasks++) await setup.create({ conv_id, data: {} })
  await setup.close()
  let failures = 0
  const engine = await engineOn(breakingTree(tree, 1, false), {
    ...options,
    limits: { jobs_max: 1 },
    onFailure: () => failures++,
  })
  await eventually(() => failures === 1)
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.equal(server.asked.length, 1)
  await engine.close().catch(() => {})
  await server.close()
})

test('a host that is no HOST:PORT is refused at once', async () => {
  await assert.rejects(memoryHarness({ allow_hosts: ['localhost'] }).open(), { name: 'RangeError' })
})
