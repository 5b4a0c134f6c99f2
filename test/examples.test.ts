/**
 * The example processes, each run by the engine to its end nodes: the ops, and then the nodes and
 * data of its tasks. Nodes are given by their titles.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Task } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import type { FakeClock } from './support/fake-clock.ts'
import { memoryHarness, settled } from './support/model-setup.ts'
import { tasksOf } from './support/tasks-of.ts'

const examples = new URL('../src/examples/', import.meta.url)

function textOf(name: string): string {
  return readFileSync(new URL(`${name}.conv.json`, examples), 'utf8')
}

/** What a run may use. */
interface Stage {
  readonly engine: Engine
  create(conv_id: number, ref: string, data: object): Promise<string>
  modify(conv_id: number, ref: string, data: object): Promise<string>
  /** Advances the clock and waits until everything due has run. */
  later(s: number): Promise<void>
  /** The task that has or had this ref. */
  task(conv_id: number, ref: string): Promise<{ at: string; data: Record<string, unknown> }>
  /** Number of tasks by node title, including ended tasks. */
  places(conv_id: number): Promise<Record<string, number>>
}

async function stageOf(engine: Engine, clock: FakeClock): Promise<Stage> {
  const ids = new Map<string, string>()
  const title = async (conv_id: number, node_id: string): Promise<string> => {
    const { nodes } = await engine.processes.show(conv_id)
    return nodes.find(({ id }) => id === node_id)?.title ?? node_id
  }
  return {
    engine,
    async create(conv_id, ref, data) {
      const result = await engine.create({ conv_id, ref, data })
      if (result.obj_id !== undefined) ids.set(`${conv_id} ${ref}`, result.obj_id)
      await settled(clock)
      return result.proc
    },
    async modify(conv_id, ref, data) {
      const { proc } = await engine.modify({ conv_id, ref, data })
      await settled(clock)
      return proc
    },
    async later(s) {
      clock.advance(s * 1_000)
      await settled(clock)
    },
    async task(conv_id, ref) {
      const obj_id = ids.get(`${conv_id} ${ref}`)
      const found = await engine.task({ conv_id, ...(obj_id === undefined ? { ref } : { obj_id }) })
      const { node_id, data } = found as Task
      return { at: await title(conv_id, node_id), data: data as Record<string, unknown> }
    },
    async places(conv_id) {
      const places: Record<string, number> = {}
      const live = await tasksOf(engine, conv_id, { limit: 1_000 })
      const ended = await tasksOf(engine, conv_id, { status: 'processed', limit: 1_000 })
      for (const { node_id } of [...live, ...ended]) {
        const at = await title(conv_id, node_id)
        places[at] = (places[at] ?? 0) + 1
      }
      return places
    },
  }
}

const order = { amount: 100, currency: 'EUR', card: '4111' }

// [example, what happens, the run]
const runs: [file: string, what: string, run: (stage: Stage) => Promise<void>][] = [
  [
    'callback',
    'a callback sends the task to its end',
    async ({ create, modify, task }) => {
      await create(1234, 'c', { a: 1 })
      await modify(1234, 'c', { b: 2 })
      assert.deepEqual((await task(1234, 'c')).data, { a: 1, b: 2 })
    },
  ],
  [
    'payment',
    'the bank confirms a small order',
    async ({ create, modify, task }) => {
      await create(1235, 'small', order)
      assert.equal((await task(1235, 'small')).at, 'Wait for the bank')
      await modify(1235, 'small', { paid: true })
      const { at, data } = await task(1235, 'small')
      assert.equal(at, 'Paid')
      assert.deepEqual([data.fee, data.total, data.summary], [2, 102, '100 EUR for small'])
    },
  ],
  [
    'payment',
    'a large order is approved first, and is late after a day',
    async ({ create, modify, later, task }) => {
      await create(1235, 'large', { ...order, amount: 20_000 })
      assert.equal((await task(1235, 'large')).at, 'Wait for approval')
      await modify(1235, 'large', { approved: true })
      assert.equal((await task(1235, 'large')).at, 'Wait for the bank')
      await later(86_400)
      assert.equal((await task(1235, 'large')).at, 'Late')
    },
  ],
  [
    'payment',
    'nobody approves within the hour',
    async ({ create, later, task }) => {
      await create(1235, 'large', { ...order, amount: 20_000 })
      await later(3_600)
      assert.equal((await task(1235, 'large')).at, 'Refused')
    },
  ],
  [
    'retry',
    'it works at the second attempt, after a pause',
    async ({ create, modify, later, task }) => {
      await create(1236, 'r', {})
      await modify(1236, 'r', { result: 'bad' })
      assert.equal((await task(1236, 'r')).at, 'Pause')
      await later(29)
      assert.equal((await task(1236, 'r')).at, 'Pause')
      await later(1)
      await modify(1236, 'r', { result: 'ok' })
      assert.equal((await task(1236, 'r')).at, 'Done')
    },
  ],
  [
    'retry',
    'each pause is twice as long, and the third failure is the last',
    async ({ create, modify, later, task }) => {
      await create(1236, 'r', {})
      for (const pause_s of [30, 60]) {
        await modify(1236, 'r', { result: 'bad' })
        await later(pause_s - 1)
        assert.equal((await task(1236, 'r')).at, 'Pause')
        await later(1)
        assert.equal((await task(1236, 'r')).at, 'Wait for the result')
      }
      await modify(1236, 'r', { result: 'bad' })
      const { at, data } = await task(1236, 'r')
      assert.deepEqual([at, data.attempts], ['Given up', 3])
    },
  ],
  [
    'fan-out',
    'all parts come back, and the sums of all batches are kept',
    async ({ create, later, task, places }) => {
      await create(1240, 'b-1', { parts: 3, amounts: [10, 20, 30] })
      await create(1240, 'b-2', { parts: 1, amounts: [100] })
      for (let s = 0; s < 5; s++) await later(1)
      const [one, two] = [await task(1240, 'b-1'), await task(1240, 'b-2')]
      assert.deepEqual([one.at, one.data.done, one.data.total], ['Done', 3, 72])
      assert.deepEqual([two.at, two.data.total, two.data.turnover], ['Done', 120, 132])
      assert.equal(one.data.turnover, 192)
      assert.deepEqual(await places(1241), { Done: 4 })
    },
  ],
  [
    'fan-out',
    'an amount that is no number loses the batch, and its parts know nobody to tell',
    async ({ create, task, places }) => {
      await create(1240, 'b', { parts: 2, amounts: [10, 'ten'] })
      assert.equal((await task(1240, 'b')).at, 'Lost')
      assert.deepEqual(await places(1241), { Lost: 1 })
    },
  ],
  [
    'fan-out',
    'a batch whose parts are held up is late',
    async ({ engine, create, later, task }) => {
      await create(1240, 'b', { parts: 2, amounts: [10, 20] })
      assert.equal((await task(1240, 'b')).at, 'Wait for a part')
      await engine.processes.pause(1241)
      await later(3_600)
      assert.equal((await task(1240, 'b')).at, 'Late')
      await engine.processes.resume(1241)
    },
  ],
  [
    'call',
    'the reply is merged and the caller goes on',
    async ({ create, task, places }) => {
      await create(1242, 's', { kg: 10 })
      const { at, data } = await task(1242, 's')
      assert.deepEqual([at, data.tariff, data.price], ['Priced', 2.5, 30])
      assert.deepEqual(await places(1243), { Done: 1 })
    },
  ],
  [
    'call',
    'a refusal sends the caller to its error node with the reason',
    async ({ create, task, places }) => {
      await create(1242, 's', { kg: 31 })
      const { at, data } = await task(1242, 's')
      assert.equal(at, 'No tariff')
      assert.equal(data.__conveyor_rpc_reply_return_description__, '31 kg are too heavy')
      assert.deepEqual(await places(1243), { Done: 1 })
    },
  ],
  [
    'call',
    'a paused process is called in vain',
    async ({ engine, create, task }) => {
      await engine.processes.pause(1243)
      await create(1242, 's', { kg: 10 })
      assert.equal((await task(1242, 's')).at, 'No tariff')
    },
  ],
  [
    'queue',
    'a worker takes the jobs in order, and is woken by the next',
    async ({ create, task, places }) => {
      for (const size of [1, 2, 3]) await create(1244, `j-${size}`, { size })
      assert.deepEqual(await places(1244), { Queue: 3 })
      await create(1245, 'worker-1', {})
      assert.deepEqual(await places(1244), { Taken: 3 })
      const { at, data } = await task(1245, 'worker-1')
      assert.deepEqual([at, data.done, data.sum], ['Rest', 3, 6])
      assert.equal((data.__queue_task_data__ as { size: number }).size, 3)
      await create(1244, 'j-4', { size: 10 })
      assert.deepEqual(await places(1244), { Taken: 4 })
      assert.equal((await task(1245, 'worker-1')).data.sum, 16)
    },
  ],
  [
    'queue',
    'jobs that nobody takes are late, and a hundred raise the alarm and end it',
    async ({ create, later, places }) => {
      for (let job = 0; job < 99; job++) await create(1244, `j-${job}`, { size: 1 })
      assert.deepEqual(await places(1244), { Queue: 99 })
      await create(1244, 'j-99', { size: 1 })
      assert.deepEqual(await places(1244), { Queue: 100, Alarm: 1 })
      await later(86_400)
      const { Late, Alarm } = await places(1244)
      assert.deepEqual([Late, Alarm], [100, 2])
    },
  ],
  [
    'state',
    'modifies and time move an account, and another process reads it',
    async ({ create, modify, later, task }) => {
      const visits = async (ref: string): Promise<string> => {
        await create(1247, ref, { account: 'ann' })
        return (await task(1247, ref)).at
      }
      assert.equal(await visits('v-1'), 'No such account')
      await create(1246, 'ann', { plan: 'free' })
      assert.equal((await task(1246, 'ann')).at, 'Free')
      assert.equal(await visits('v-2'), 'Sees the front page')
      await modify(1246, 'ann', { plan: 'paid' })
      assert.equal((await task(1246, 'ann')).at, 'Paid')
      assert.equal(await visits('v-3'), 'May come in')
      await later(2_592_000)
      assert.equal((await task(1246, 'ann')).at, 'Overdue')
      await modify(1246, 'ann', { renewed: true })
      assert.equal((await task(1246, 'ann')).at, 'Paid')
      await modify(1246, 'ann', { closed: true })
      assert.equal((await task(1246, 'ann')).at, 'Closed')
    },
  ],
]

for (const [file, what, run] of runs) {
  test(`${file}: ${what}`, async () => {
    const harness = memoryHarness()
    await using engine = await harness.open()
    for (const { warnings } of await engine.processes.putMany(textOf(file))) {
      assert.deepEqual(warnings, [])
    }
    await run(await stageOf(engine, harness.clock))
    assert.deepEqual((await engine.check()).breaches, [])
  })
}

test('every example has a run', () => {
  const files = readdirSync(examples)
    .filter((file) => file.endsWith('.conv.json'))
    .map((file) => file.replace('.conv.json', ''))
  assert.deepEqual([...new Set(runs.map(([file]) => file))].sort(), files.sort())
})
