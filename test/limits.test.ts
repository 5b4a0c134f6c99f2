/**
 * Limits by key: who holds a slot and who waits in line after each way in which a task can leave a
 * node, also after a reopen and a changed definition; and what a definition may say. The kill test
 * and the model test are limits-killed and limits-model.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metaKey } from '../src/codec/keys.ts'
import type { Task } from '../src/core/model.ts'
import { after, callback, defineProcess, end, go, limited, node, when } from '../src/define.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { waitParts } from '../src/task-operations/wait-parts.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn, memoryHarness, settled, withSentinel } from './support/model-setup.ts'

const key = '{{customer}}'

/** A task waits in `in` for a callback; `at_once` 0 is no limit. */
const orders = (at_once: number) =>
  defineProcess({
    id: 'orders',
    nodes: {
      start: go('in'),
      in: node([callback(), go('done'), after({ hours: 1 }).go('late')], {
        ...(at_once === 0 ? {} : { limit: [{ key, at_once }] }),
      }),
      late: [callback(), go('done')],
      done: end({ save: true }),
    },
  })

/** The same with the limit at the step. */
const steps = (at_once: number) =>
  defineProcess({
    id: 'orders',
    nodes: {
      start: go('in'),
      in: [
        at_once === 0 ? callback() : limited([{ key, at_once }], callback()),
        go('done'),
        after({ hours: 1 }).go('late'),
      ],
      late: [callback(), go('done')],
      done: end({ save: true }),
    },
  })

/** `a* b`: a holds a slot and b waits. Each task is shown where it is not in the node. */
async function shown(engine: Engine, refs: readonly string[]): Promise<string> {
  const found: string[] = []
  for (const ref of refs) {
    const task = await engine.task({ conv_id: 'orders', ref })
    if (task === undefined) continue
    const [wait] = await servedEngine(engine).waitsOf([task.obj_id])
    const place = task.node_id === 'in' ? '' : `@${task.node_id}`
    const status = task.status === 'delayed' ? '' : `(${task.status})`
    found.push(`${ref}${wait?.for === 'callback' && place === '' ? '*' : ''}${place}${status}`)
  }
  return found.join(' ')
}

// `+a7` creates a of customer 7; `a` answers it, `-a` cancels it, `^a` moves it to its node again,
// `>60` passes seconds, `!` reopens, `=3` puts the definition with at_once 3.
// [what, the steps, who is where then]
const rows: readonly (readonly [what: string, steps: string, then: string])[] = [
  ['up to the limit', '+a7 +b7', 'a* b*'],
  ['one more waits', '+a7 +b7 +c7', 'a* b* c'],
  ['another value has slots of its own', '+a7 +b7 +c7 +d8', 'a* b* c d*'],
  ['a task that goes on lets the first in', '+a7 +b7 +c7 +d7 b', 'a* b@done(processed) c* d'],
  ['in order', '+a7 +b7 +c7 +d7 +e7 a b', 'a@done(processed) b@done(processed) c* d* e'],
  ['a canceled holder', '+a7 +b7 +c7 -a', 'a(canceled) b* c*'],
  ['one canceled in line', '+a7 +b7 +c7 +d7 -c a', 'a@done(processed) b* c(canceled) d*'],
  ['timers of holders and of those in line', '+a7 +b7 +c7 >3600', 'a@late b@late c@late'],
  ['a timer that lets one in', '+a7 +b7 >1800 +c7 +d7 >1800', 'a@late b@late c* d*'],
  ['a move to the same node goes to the end', '+a7 +b7 +c7 +d7 ^a', 'a b* c* d'],
  ['an answer to one in line is only data', '+a7 +b7 +c7 c', 'a* b* c'],
  ['a reopen keeps slots and line', '+a7 +b7 +c7 +d7 !', 'a* b* c d'],
  ['after a reopen they go on', '+a7 +b7 +c7 +d7 ! a', 'a@done(processed) b* c* d'],
  ['a raised limit lets more in', '+a7 +b7 +c7 +d7 +e7 =4', 'a* b* c* d* e'],
  ['a lowered one takes none away', '+a7 +b7 +c7 =1', 'a* b* c'],
  ['and lets none in before', '+a7 +b7 +c7 =1 a', 'a@done(processed) b* c'],
  ['until there is room', '+a7 +b7 +c7 =1 a b', 'a@done(processed) b@done(processed) c*'],
  ['a dropped limit lets everybody in', '+a7 +b7 +c7 +d7 +e7 =0', 'a* b* c* d* e*'],
  ['and back', '+a7 +b7 +c7 =0 =2 +d7 a', 'a@done(processed) b* c* d'],
  ['no member for the key is a value', '+a +b +c', 'a* b* c'],
]

for (const [place, definition] of [
  ['node', orders],
  ['step', steps],
] as const) {
  for (const [what, actions, then] of rows) {
    test(`a limit of 2 at a ${place}: ${what}`, async () => {
      const harness = memoryHarness()
      let engine = await harness.open()
      await engine.processes.put(definition(2))
      const refs: string[] = []
      for (const action of actions.split(' ')) {
        const ref = action.slice(1, 2)
        const target = { conv_id: 'orders', ref }
        if (action.startsWith('+')) {
          const customer = action.slice(2)
          refs.push(ref)
          await engine.create({ ...target, data: customer === '' ? {} : { customer } })
        } else if (action.startsWith('-')) await engine.tasks.cancel(target)
        else if (action.startsWith('^')) await engine.tasks.move(target, 'in')
        else if (action.startsWith('>')) harness.clock.advance(1_000 * Number(action.slice(1)))
        else if (action === '!') {
          await engine.close()
          engine = await harness.open()
        } else if (action.startsWith('=')) {
          await engine.processes.put(definition(Number(action.slice(1))))
        } else await engine.modify({ conv_id: 'orders', ref: action, data: {} })
        await settled(harness.clock)
      }
      assert.equal(await shown(engine, refs), then)
      assert.deepEqual((await engine.check()).breaches, [])
      // Whatever was held is free again once all have left.
      for (const ref of [...refs, ...refs]) {
        await engine.modify({ conv_id: 'orders', ref, data: {} })
        await settled(harness.clock)
      }
      const { counts, breaches } = await engine.check()
      assert.deepEqual(breaches, [])
      assert.deepEqual([counts.limit, counts.slot, counts.task_slot], [0, 0, 0])
      await engine.close()
    })
  }
}

test('a task in line says what it waits for', async () => {
  const harness = memoryHarness()
  const engine = await harness.open()
  await engine.processes.put(orders(1))
  const ids: string[] = []
  for (const ref of ['a', 'b', 'c']) {
    const { obj_id = '' } = await engine.create({ conv_id: 'orders', ref, data: { customer: 7 } })
    ids.push(obj_id)
  }
  const says = (await servedEngine(engine).waitsOf(ids)).map(
    (wait) => waitParts(wait ?? { for: 'nothing' })[0],
  )
  assert.deepEqual(says, [
    ['callback'],
    ['its turn: limit 1 for {{customer}}, it is the first'],
    ['its turn: limit 1 for {{customer}}, at most 1 ahead of it'],
  ])
  await engine.close()
})

const key_of = (logics: object[], more: object = {}): object => ({
  obj_id: 'orders',
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'in' }] } },
      { id: 'in', title: 'charge', obj_type: 0, condition: { logics }, ...more },
      { id: 'wrong', obj_type: 0, condition: { logics: [{ type: 'api_callback' }] } },
      { id: 'end', obj_type: 2, options: { save_task: true } },
    ],
  },
})
const job = (limit: unknown, more: object = {}) => ({ type: 'api_callback', limit, ...more })
const out = { type: 'go', to_node_id: 'end' }

// [what a definition says, its first mistake]
const mistakes: readonly (readonly [object, RegExp])[] = [
  [key_of([job({}), out]), /limit is an object, an array was expected/],
  [key_of([job([{ at_once: 1 }]), out]), /logics\[0\] limit\[0\]: key is nothing, a text/],
  [key_of([job([{ key: 'x'.repeat(129), at_once: 1 }]), out]), /key is .*at most 128 characters/],
  [
    key_of([job([{ key, at_once: 0 }]), out]),
    /at_once is 0, a whole number from 1 to 1000000 was expected/,
  ],
  [key_of([job([{ key, at_once: 1.5 }]), out]), /at_once is 1.5, a whole number/],
  [key_of([job([{ key }]), out]), /at_once is nothing, a whole number/],
  [key_of([out], { limit: [{ key, at_once: '2' }] }), /node limit\[0\]: at_once is "2"/],
  [
    key_of([job([{ key, at_once: 1 }]), out], { limit: [{ key, at_once: 2 }] }),
    /key "\{\{customer\}\}" is of another limit of the node/,
  ],
  [key_of([job([{ key, rate: 0 }]), out]), /rate is 0, a whole number from 1/],
  [key_of([job([{ key, rate: 1, per_s: 0.5 }]), out]), /per_s is 0.5, a whole number/],
  [key_of([job([{ key, rate: 1, burst: 'x' }]), out]), /burst is "x", a whole number/],
  [key_of([job([{ key, rate: 1, at_once: 1 }]), out]), /both at_once and rate/],
  [key_of([out], { obj_type: 2, limit: [{ key, at_once: 2 }] }), /an end has no limit/],
]

for (const [definition, mistake] of mistakes) {
  test(`a definition is refused: ${mistake.source}`, async () => {
    const engine = await memoryHarness({ handlers: { charge: () => ({}) } }).open()
    await assert.rejects(engine.processes.put(definition), mistake)
    await engine.close()
  })
}

// `>` passes milliseconds, `+a7` creates a, `-a` cancels it.
// [what, the rate, the steps, who has passed then]
const rates: readonly (readonly [what: string, rate: object, steps: string, then: string])[] = [
  ['a full burst at once', { rate: 3 }, '+a7 +b7 +c7 +d7', 'a* b* c* d'],
  ['a burst of its own', { rate: 3, burst: 1 }, '+a7 +b7 +c7', 'a* b c'],
  ['then one each interval', { rate: 2, burst: 1 }, '+a7 +b7 +c7 >500', 'a* b* c'],
  ['and not before', { rate: 2, burst: 1 }, '+a7 +b7 +c7 >499', 'a* b c'],
  ['in so many seconds', { rate: 2, per_s: 60, burst: 1 }, '+a7 +b7 +c7 >30000', 'a* b* c'],
  ['each value has its own', { rate: 1 }, '+a7 +b8 +c7', 'a* b* c'],
  ['a pause saves no more than a burst', { rate: 2 }, '+a7 >9000 +b7 +c7 +d7', 'a* b* c* d'],
  ['one canceled in line', { rate: 1 }, '+a7 +b7 +c7 -b >1000', 'a* b(canceled) c*'],
  ['a holder that ends pays nothing back', { rate: 1 }, '+a7 +b7 -a', 'a(canceled) b'],
  ['a reopen keeps the time', { rate: 1 }, '+a7 +b7 >600 ! >400', 'a* b*'],
  ['and the pause', { rate: 1 }, '+a7 >600 ! +b7', 'a* b'],
]

for (const [what, rate, actions, then] of rates) {
  test(`a rate: ${what}`, async () => {
    const harness = memoryHarness()
    let engine = await harness.open()
    await engine.processes.put({
      ...orders(0),
      scheme: {
        nodes: orders(0).scheme.nodes.map((one) =>
          one.id === 'in' ? { ...one, limit: [{ key, ...rate }] } : one,
        ),
      },
    })
    const refs: string[] = []
    for (const action of actions.split(' ')) {
      const ref = action.slice(1, 2)
      if (action.startsWith('+')) {
        refs.push(ref)
        const data = { customer: action.slice(2) }
        await engine.create({ conv_id: 'orders', ref, data })
      } else if (action.startsWith('-')) await engine.tasks.cancel({ conv_id: 'orders', ref })
      else if (action.startsWith('>')) harness.clock.advance(Number(action.slice(1)))
      else {
        await engine.close()
        engine = await harness.open()
      }
      await settled(harness.clock)
    }
    assert.equal(await shown(engine, refs), then)
    assert.deepEqual((await engine.check()).breaches, [])
    await engine.close()
  })
}

test('a key that cannot be made fails the task, or sends it to the error node', async () => {
  const engine = await memoryHarness({ handlers: { charge: () => ({}) } }).open()
  const data = { customer: 'x'.repeat(129) }
  await engine.processes.put(key_of([out], { limit: [{ key, at_once: 1 }] }))
  await engine.create({ conv_id: 'orders', ref: 'a', data })
  const failed = await engine.task({ conv_id: 'orders', ref: 'a' })
  assert.equal(failed?.status_details?.tag, 'limit_wrong_key')
  await engine.processes.put(key_of([job([{ key, at_once: 1 }], { err_node_id: 'wrong' }), out]))
  await engine.create({ conv_id: 'orders', ref: 'b', data })
  assert.equal((await engine.task({ conv_id: 'orders', ref: 'b' }))?.node_id, 'wrong')
  await engine.close()
})

test('handlers run up to the limit of each value at once, and a failed task frees its slot', async () => {
  let running = 0
  let most = 0
  const ran: unknown[] = []
  const charge = async (task: Task): Promise<object> => {
    const { n } = task.data as { n: number }
    most = Math.max(most, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
    ran.push(n)
    if (n === 1) throw new Error('the bank is shut')
    return {}
  }
  const harness = memoryHarness({ handlers: { charge: { handler: charge, attempts_max: 1 } } })
  const engine = await harness.open()
  await engine.processes.put(key_of([job([{ key, at_once: 2 }]), out]))
  const tasks = Array.from({ length: 9 }, (_, n) => ({ customer: 7, n }))
  await Promise.all(tasks.map((data) => engine.create({ conv_id: 'orders', data })))
  while (ran.length < tasks.length) await new Promise((resolve) => setImmediate(resolve))
  await settled(harness.clock)
  assert.equal(most, 2)
  assert.deepEqual(ran, [0, 1, 2, 3, 4, 5, 6, 7, 8])
  const { counts, breaches } = await engine.check()
  assert.deepEqual([breaches, counts.limit, counts.failed], [[], 0, 1])
  await engine.close()
})

test('two limits of a step: the first is held while the second is waited for', async () => {
  const engine = await memoryHarness().open()
  const limit = [
    { key, at_once: 2 },
    { key: '{{bank}}', at_once: 1 },
  ]
  await engine.processes.put(
    defineProcess({
      id: 'orders',
      nodes: { start: go('in'), in: [limited(limit, callback()), go('done')], done: end() },
    }),
  )
  const add = (ref: string, customer: number, bank: number) =>
    engine.create({ conv_id: 'orders', ref, data: { customer, bank } })
  for (const [ref, customer, bank] of [
    ['a', 1, 1],
    ['b', 1, 1],
    ['c', 1, 2],
    ['d', 2, 2],
  ] as const) {
    await add(ref, customer, bank)
  }
  assert.equal(await shown(engine, ['a', 'b', 'c', 'd']), 'a* b c d*')
  await engine.modify({ conv_id: 'orders', ref: 'a', data: {} })
  await engine.modify({ conv_id: 'orders', ref: 'd', data: {} })
  assert.equal(await shown(engine, ['a', 'b', 'c', 'd']), 'b* c*')
  await engine.close()
})

test('a thousand that are let in one after the other are no endless chain', async () => {
  const harness = memoryHarness()
  const engine = await harness.open()
  const again = (at_once: number) =>
    defineProcess({
      id: 'orders',
      nodes: {
        start: go('in'),
        in: node([when('hold', 'eq', true).go('held'), go('done')], { limit: [{ key, at_once }] }),
        held: node([callback(), go('done')]),
        done: end(),
      },
    })
  await engine.processes.put(orders(1))
  for (let n = 0; n < 1_000; n++) await engine.create({ conv_id: 'orders', data: {} })
  await engine.processes.put(again(1))
  const [first] = (await engine.tasks.list({ conv_id: 'orders', limit: 1 })).tasks
  await engine.tasks.cancel({ conv_id: 'orders', obj_id: first?.obj_id ?? '' })
  await settled(harness.clock)
  assert.equal((await engine.tasks.list({ conv_id: 'orders' })).tasks.length, 0)
  assert.deepEqual((await engine.check()).breaches, [])
  await engine.close()
})

test('two tasks that hand a slot to each other without end fail as one that loops does', async () => {
  const harness = memoryHarness()
  const engine = await harness.open()
  await engine.processes.put(
    defineProcess({
      id: 'orders',
      nodes: {
        start: go('in'),
        in: node([callback(), go('in')], { limit: [{ key, at_once: 1 }] }),
      },
    }),
  )
  for (const ref of ['a', 'b']) await engine.create({ conv_id: 'orders', ref, data: {} })
  await engine.processes.put(
    defineProcess({
      id: 'orders',
      nodes: { start: go('in'), in: node([go('in')], { limit: [{ key, at_once: 1 }] }) },
    }),
  )
  await engine.tasks.move({ conv_id: 'orders', ref: 'a' }, 'in')
  await settled(harness.clock)
  assert.equal(await shown(engine, ['a', 'b']), 'a(failed) b(failed)')
  assert.deepEqual((await engine.check()).breaches, [])
  await engine.close()
})

test('a confirmed draft has its limits from the first task on', async () => {
  const harness = memoryHarness()
  const engine = await harness.open()
  const { scheme, title } = orders(1)
  await engine.processes.put({ obj_id: 'orders', title, scheme: { nodes: [] } })
  const draft = engine.processes.draft('orders')
  await draft.put({ obj_id: 'orders', title, scheme })
  await draft.confirm()
  for (const ref of ['a', 'b']) await engine.create({ conv_id: 'orders', ref, data: {} })
  assert.equal(await shown(engine, ['a', 'b']), 'a* b')
  await engine.close()
})

test('where the code of limits is not loaded yet, a task waits for it', async () => {
  const tree = memoryTree()
  const clock = fakeClock()
  const first = await withSentinel(await engineOn(tree, { clock }))
  await first.processes.put(orders(1))
  await first.close()
  await tree.commit(changesOf([[metaKey('limits'), null]]))
  const engine = await withSentinel(await engineOn(tree, { clock }))
  const creates = ['a', 'b'].map((ref) => engine.create({ conv_id: 'orders', ref, data: {} }))
  await Promise.all(creates)
  await settled(clock)
  assert.equal(await shown(engine, ['a', 'b']), 'a* b')
  assert.deepEqual((await engine.check()).breaches, [])
  await engine.close()
})
