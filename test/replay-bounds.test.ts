/**
 * Which caller a record of a replay belongs to, and how much of them a caller may keep: as much as is free of the bound, counted over restarts, until they expire.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Engine, EngineOptions } from '../src/engine/api/engine-api.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn } from './support/model-setup.ts'
import { counting_process, createOf, modifyOf } from './support/replay-harness.ts'
import { turns } from './support/store-trees.ts'

const a = { payer: 'certificate a' }
const b = { payer: 'certificate b' }
const user = { user: '13000' }
const bound = (replay_bytes_max: number): EngineOptions => ({ limits: { replay_bytes_max } })

/** An engine that is closed and opened on a tree that stays. */
async function openHarness(options: EngineOptions = {}) {
  const tree = memoryTree()
  const clock = fakeClock()
  const told: object[] = []
  const logger = { debug() {}, info() {}, error() {}, warn: (line: object) => void told.push(line) }
  const open = (): Promise<Engine> => engineOn(tree, { clock, logger, ...options })
  let engine = await open()
  await engine.processes.put(counting_process)
  await engine.users.add({ id: user.user })
  await engine.processes.share('1234', user.user)
  return {
    ...{ tree, clock, told },
    async reopen(): Promise<void> {
      await engine.close()
      engine = await open()
    },
    /** The task that was made, or the code that refuses. */
    send: (caller: object, key: string, op: object = createOf(undefined)): Promise<string> =>
      engine.apply([op], { ...caller, request_key: key }).then(
        ([result]) => (result?.proc === 'ok' ? (result.obj_id as string) : String(result?.proc)),
        ({ code }) => code,
      ),
    bytes: () => engine.statistics().replay_bytes,
    async pass(hours: number): Promise<void> {
      for (let n = 0; n < hours * 90; n++) {
        clock.advance(40_000)
        await turns(20)
      }
    },
    close: () => engine.close(),
  }
}

type Harness = Awaited<ReturnType<typeof openHarness>>

async function fill({ send }: Harness, caller: object, name: string): Promise<number> {
  for (let n = 0; n < 10_000; n++) {
    if ((await send(caller, `${name} ${n}`)) === 'rate_limited') return n
  }
  return assert.fail('it is never full')
}

test('a key belongs to its caller: two certificates with one key make two tasks', async () => {
  const harness = await openHarness()
  await harness.send({}, 'k')
  await harness.reopen()
  const ids = [await harness.send(a, 'k'), await harness.send(b, 'k')]
  assert.match(ids.join(), /^[0-9a-f]{24},[0-9a-f]{24}$/)
  assert.notEqual(ids[0], ids[1])
  assert.deepEqual([await harness.send(a, 'k'), await harness.send(b, 'k')], ids)
  await harness.close()
})

describe('replay_bytes_max', () => {
  test('leaves each caller as much as is free, and repeats are answered', async () => {
    const harness = await openHarness(bound(30_000))
    const first = await harness.send(a, 'first')
    const counts = [await fill(harness, a, 'a'), await fill(harness, b, 'b')]
    assert.ok(counts[0] && counts[1] && counts[0] > 1.5 * counts[1], String(counts))
    assert.ok(harness.bytes() > 20_000 && harness.bytes() < 30_000, String(harness.bytes()))
    assert.deepEqual(
      [await harness.send(a, 'first'), await harness.send(a, 'a 0', modifyOf('none'))],
      [first, 'request_key_reused'],
    )
    assert.match(await harness.send(user, 'k'), /^[0-9a-f]{24}$/)
    // What keeps nothing is applied.
    assert.equal(
      await harness.send(a, 'show', { ...modifyOf('none'), type: 'show' }),
      'not_found_task',
    )
    const lines = harness.told.filter((line) => 'event' in line && line.event === 'replays_full')
    assert.deepEqual(
      lines.map((line) => 'caller' in line && line.caller),
      [a.payer, b.payer],
    )
    await harness.close()
  })

  test('counts over a restart, and what has expired no more', async () => {
    const harness = await openHarness(bound(30_000))
    await fill(harness, a, 'a')
    const bytes = harness.bytes()
    await harness.reopen()
    assert.ok(bytes - harness.bytes() <= 200, `${bytes} and ${harness.bytes()}`)
    await harness.send(a, 'more')
    await harness.send(a, 'more still')
    assert.equal(await harness.send(a, 'one more'), 'rate_limited')
    await harness.pass(53)
    assert.equal(harness.bytes(), 0)
    assert.match(await harness.send(a, 'one more'), /^[0-9a-f]{24}$/)
    await harness.close()
  })

  test('of 0 is no bound, and what was not applied is not counted', async () => {
    const harness = await openHarness(bound(0))
    for (let n = 0; n < 10; n++) await harness.send(a, `${n}`)
    const bytes = harness.bytes()
    assert.ok(bytes > 0)
    await harness.send(a, '0')
    await harness.send(a, '0', modifyOf('none'))
    assert.equal(harness.bytes(), bytes)
    await harness.close()
  })
})
