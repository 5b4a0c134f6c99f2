/**
 * What a store answers while another process may own the data (`Tree.unavailable`), and while the
 * outcome of a commit is not known: nothing that it has read, be it as a result or as a refusal.
 * What an engine does of itself waits meanwhile, and goes on afterwards.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metaKey } from '../src/codec/keys.ts'
import { onNextTurn } from '../src/core/clock.ts'
import { fault } from '../src/core/faults.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn } from './support/model-setup.ts'
import { go, node } from './support/processes.ts'
import { turns } from './support/store-trees.ts'

const [a, b] = [metaKey('a'), metaKey('b')]
const value = Buffer.from('1')

/** A store whose commits wait for the test. */
function heldStore() {
  const tree = memoryTree()
  const state = { is_away: false, held: [] as ((error?: Error) => void)[] }
  let emitBroken = (_cause: unknown): void => {}
  const store = storeOf({
    ...tree,
    async commit(changes) {
      const kept = new Map([...changes])
      await new Promise<void>((resolve, reject) => {
        state.held.push((error) => (error === undefined ? resolve() : reject(error)))
      })
      assert.equal(kept.size, changes.size, 'nothing changes what is being committed')
      await tree.commit(changes)
    },
    unavailable: () => (state.is_away ? fault('overloaded', 'away') : undefined),
    onBroken(callback) {
      emitBroken = callback
    },
  })
  const calls = {
    write: () => store.update((tx) => void tx.put(b, value)),
    read: () => store.update((tx) => tx.get(a)?.toString() ?? 'none'),
    refuse: () =>
      store.update((tx) => {
        throw fault('not_possible', tx.get(a) === undefined ? 'none' : 'there')
      }),
    view: () => store.view((view) => view.get(a)?.toString() ?? 'none'),
  }
  return { store, state, calls, break: (cause: unknown) => emitBroken(cause) }
}

type Call = keyof ReturnType<typeof heldStore>['calls']

/** What a call has come to within a few turns. */
async function seen(answer: Promise<unknown>): Promise<unknown> {
  let found: unknown = 'waits'
  answer.then(
    (result) => {
      found = result
    },
    (error: { code: string; message: string }) => {
      found = error.code === 'not_possible' ? error.message : error.code
    },
  )
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => onNextTurn(resolve))
  return found
}

// biome-ignore format: a table
const rows: readonly (readonly [call: Call, away: unknown, in_flight: unknown, done: unknown, failed: unknown])[] = [
  ['write', 'waits', 'waits', undefined, 'store_failed'],
  ['read', 'overloaded', 'waits', '1', 'store_failed'],
  ['refuse', 'overloaded', 'waits', 'there', 'store_failed'],
  ['view', 'overloaded', 'none', '1', 'none'],
]

test('nothing that was read is answered before it is durable, or while another may own it', async (t) => {
  for (const [call, away, in_flight, done, failed] of rows) {
    await t.test(call, async () => {
      const one = heldStore()
      one.state.is_away = true
      assert.equal(await seen(one.calls[call]()), away)

      for (const outcome of [undefined, new Error('the commit log is gone')]) {
        const { store, state, calls } = heldStore()
        const first = store.update((tx) => void tx.put(a, value))
        first.catch(() => {})
        const answer = calls[call]()
        assert.equal(await seen(answer), in_flight)
        state.held.shift()?.(outcome)
        await seen(first)
        if (outcome === undefined) state.held.shift()?.()
        const after = call === 'view' ? calls.view() : answer
        assert.equal(await seen(after), outcome === undefined ? done : failed)
      }
    })
  }
  await t.test('a refusal by what the open group has written waits for that group', async () => {
    const { store, state, calls } = heldStore()
    void calls.write()
    const second = store.update((tx) => void tx.put(a, value))
    const refused = calls.refuse()
    state.held.shift()?.()
    assert.equal(await seen(refused), 'waits')
    state.held.shift()?.()
    assert.equal(await seen(refused), 'there')
    await second
  })
  await t.test(
    'a loss answers the commit in flight by its outcome, and none after it',
    async () => {
      const { state, calls, break: lose } = heldStore()
      const in_flight = calls.write()
      const queued = calls.write()
      lose(new Error('another node owns the data now'))
      assert.equal(await seen(queued), 'store_failed')
      assert.equal(await seen(in_flight), 'waits')
      state.held.shift()?.()
      assert.equal(await seen(in_flight), undefined)
      assert.equal(await seen(calls.write()), 'store_failed')
      assert.equal(state.held.length, 0)
    },
  )
})

/** Waits ten seconds, then for a handler, and ends. */
const timed = {
  obj_id: 'timed',
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [go('wait')] } },
      node('wait', 0, [], { semaphors: [{ type: 'time', value: 10, to_node_id: 'work' }] }),
      node('work', 0, [{ type: 'api_callback' }, go('end')], { title: 'work' }),
      { id: 'end', obj_type: 2 },
    ],
  },
}

test('timers, jobs and handlers pause without a lease, keep nothing, and go on', async () => {
  const tasks = 500
  const clock = fakeClock()
  const below = memoryTree()
  let back: Promise<void> | undefined
  let comeBack = (): void => {}
  let held_bytes = 0
  const engine = await engineOn(
    {
      ...below,
      unavailable: () => back && fault('overloaded', 'away'),
      async commit(changes) {
        if (back !== undefined) held_bytes += changes.bytes()
        await back
        await below.commit(changes)
      },
    },
    { clock },
  )
  const answers: (() => void)[] = []
  let handled = 0
  engine.handle('work', ({ ref }) => {
    handled++
    if (ref === 'first') return new Promise((resolve) => answers.push(() => resolve({})))
    return {}
  })
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await turns(20)
  }
  await engine.processes.put(timed)
  await engine.create({ conv_id: 'timed', ref: 'first', data: {} })
  await pass(10_000)
  while (answers.length === 0) await pass(1_000)
  for (let n = 0; n < tasks; n++) {
    await engine.create({ conv_id: 'timed', ref: `r${n}`, data: {} })
  }
  const { commits: before } = engine.statistics().store
  back = new Promise((resolve) => {
    comeBack = resolve
  })
  const result = engine.result({ conv_id: 'timed', ref: 'first' }).catch(({ code }) => code)
  for (let second = 0; second < 60; second++) {
    if (second === 10) answers[0]?.()
    await pass(1_000)
  }
  assert.equal(engine.statistics().store.commits, before)
  assert.equal(handled, 1, 'no job begins')
  assert.ok(held_bytes < 10_000, `only what a handler has answered waits: ${held_bytes} bytes`)
  assert.equal(await result, 'overloaded')
  back = undefined
  comeBack()
  while (handled < 1 + tasks) await pass(1_000)
  await turns(20)
  assert.deepEqual((await engine.check()).breaches, [])
  assert.equal(handled, 1 + tasks, 'each once')
  await engine.close()
})
