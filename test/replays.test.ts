/**
 * Replays (wire 1.6): a request that comes again is answered as it was and applied once, whatever
 * has happened meanwhile; what is no repeat is applied; and records go when their time has come.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { EngineOptions } from '../src/engine/api/engine-api.ts'
import { codeOf } from './support/http-server.ts'
import { suite } from './support/postgres-open.ts'
import {
  createOf,
  modifyOf,
  openReplayHarness,
  type ReplayHarness,
  type Signing,
  showOf,
  user,
} from './support/replay-harness.ts'
import { turns } from './support/store-trees.ts'

async function withHarness(
  work: (harness: ReplayHarness) => Promise<void>,
  options: EngineOptions = {},
): Promise<void> {
  const harness = await openReplayHarness(options)
  try {
    await work(harness)
    assert.deepEqual((await harness.engine.check()).breaches, [])
  } finally {
    await harness.close()
  }
}

const bodyOf = async (harness: ReplayHarness, request: Buffer): Promise<string> =>
  (await harness.post(request)).body

describe('a signed request that comes again', () => {
  /** [what, its ops] */
  const rows: readonly (readonly [string, readonly object[]])[] = [
    ['one modify', [modifyOf('a')]],
    ['a modify by obj_id', [{ ...modifyOf('a'), ref: undefined, obj_id: 'A' }]],
    ['a create and a modify', [createOf('b'), modifyOf('b'), modifyOf('a')]],
    [
      'tasks in any order',
      [createOf('b'), createOf('c'), modifyOf('a'), modifyOf('c'), modifyOf('b')],
    ],
    ['ids and numbers', [createOf('b', { id: 7 }), modifyOf('a', { id: 'x' }), createOf('9.0')]],
    ['refused ops', [modifyOf('none'), modifyOf('a'), createOf('a', { data: { other: 1 } })]],
    ['malformed ops', [{ type: 'x', ref: 5 }, modifyOf('a'), { type: 'create', ref: 'b' }]],
    ['many ops', [...Array.from({ length: 300 }, (_, n) => createOf(`many-${n}`)), modifyOf('a')]],
  ]
  for (const [name, ops] of rows) {
    for (const how of [
      {},
      { version: 2 },
      { sign: 'hmac' },
      { sign: 'query' },
    ] as const satisfies Signing[]) {
      test(`${name}, ${JSON.stringify(how)}`, () =>
        withHarness(async (harness) => {
          const { obj_id } = await harness.engine.create({ conv_id: 1234, ref: 'a', data: {} })
          const sent = ops.map((op) => ('obj_id' in op ? { ...op, obj_id } : op))
          const request = harness.request(sent, how)
          const first = await bodyOf(harness, request)
          assert.equal(await harness.count('a'), 1)
          const again = Array.from({ length: 3 }, () => bodyOf(harness, request))
          for (const body of await Promise.all(again)) assert.equal(body, first)
          assert.equal(await harness.count('a'), 1)
          assert.equal(await harness.kept(), 1)
          assert.equal(harness.engine.statistics().replays, 3)
        }))
    }
  }

  test('while the first is under way is answered with it', () =>
    withHarness(async (harness) => {
      await harness.post(harness.request([createOf('a')]))
      const request = harness.request([modifyOf('a')])
      const bodies = await Promise.all(Array.from({ length: 50 }, () => bodyOf(harness, request)))
      assert.equal(new Set(bodies).size, 1)
      assert.equal(await harness.count('a'), 1)
    }))

  /** [what happens meanwhile] */
  const meanwhile: readonly (readonly [string, (harness: ReplayHarness) => Promise<unknown>])[] = [
    ['its task has ended', (harness) => harness.engine.tasks.cancel({ conv_id: 1234, ref: 'a' })],
    [
      'its process is removed',
      async (harness) => {
        await harness.engine.tasks.cancel({ conv_id: 1234, ref: 'a' })
        await harness.engine.processes.remove('1234')
      },
    ],
    ['its process is paused', (harness) => harness.engine.processes.pause('1234')],
    ['the grant is taken away', (harness) => harness.engine.processes.unshare('1234', user)],
    ['the secret is rotated', (harness) => harness.engine.users.rotate(user, { grace_ms: 60_000 })],
    ['the clock is set forward and back', (harness) => setForwardAndBack(harness)],
    ['a task has been made under the ref it missed', (harness) => harness.engine.create(missed)],
  ]
  const missed = { conv_id: 1234, ref: 'missed', data: {} }
  for (const [name, happen] of meanwhile) {
    test(`after ${name}`, () =>
      withHarness(async (harness) => {
        const request = harness.request([createOf('a'), modifyOf('a'), modifyOf('missed')])
        const first = await bodyOf(harness, request)
        await happen(harness)
        assert.equal(await bodyOf(harness, request), first)
      }))
  }

  async function setForwardAndBack({ clock }: ReplayHarness): Promise<void> {
    const now_ms = clock.now_ms()
    clock.set(now_ms + 86_400_000)
    clock.advance(60_000)
    await turns(200)
    clock.set(now_ms)
  }

  /** [what happens meanwhile, the code that the repeat is refused with] */
  const refused: readonly (readonly [
    string,
    (harness: ReplayHarness) => Promise<unknown>,
    string,
  ])[] = [
    ['the user is removed', (harness) => harness.engine.users.remove(user), 'bad_signature'],
    ['the secret is rotated', (harness) => harness.engine.users.rotate(user), 'bad_signature'],
    ['the window has passed', async (harness) => harness.clock.advance(300_001), 'stale_timestamp'],
  ]
  for (const [name, happen, code] of refused) {
    test(`is refused after ${name}`, () =>
      withHarness(async (harness) => {
        const request = harness.request([createOf('a'), modifyOf('a')])
        await harness.post(request)
        await happen(harness)
        assert.equal(codeOf(await harness.post(request)), code)
        assert.equal(await harness.count('a'), 1)
      }))
  }

  test('is answered in the shape of its path, whose version is not signed', () =>
    withHarness(async (harness) => {
      const ops = [createOf('a'), modifyOf('a')]
      const first = JSON.parse(await bodyOf(harness, harness.request(ops)))
      const again = JSON.parse(await bodyOf(harness, harness.request(ops, { version: 2 })))
      assert.deepEqual(Object.keys(again.ops[0]), ['id', 'proc', 'obj', 'ref', 'obj_id'])
      assert.equal(again.ops[0].obj_id, first.ops[0].obj_id)
      assert.equal(await harness.count('a'), 1)
    }))

  test('counts against the rate, and its ops are not counted again', () =>
    withHarness(
      async (harness) => {
        const request = harness.request([createOf('a'), modifyOf('a')])
        await harness.post(request)
        assert.equal(codeOf(await harness.post(request)), 'ok')
        assert.equal(codeOf(await harness.post(request)), 'rate_limited')
        assert.deepEqual(harness.engine.statistics().ops, { create: { ok: 1 }, modify: { ok: 1 } })
      },
      { limits: { rate_ops_per_s: 3 } },
    ))

  test('shows anew what it shows', () =>
    withHarness(async (harness) => {
      const request = harness.request([createOf('a'), modifyOf('a'), showOf('a')])
      await harness.post(request)
      await harness.engine.modify({ conv_id: 1234, ref: 'a', data: {} })
      const { ops } = JSON.parse(await bodyOf(harness, request))
      assert.deepEqual([ops[2].node_id, await harness.count('a')], ['2', 2])
    }))
})

describe('what is no repeat is applied', () => {
  const now = 1_700_000_000
  /** [what, two requests that differ, how often both modify the task] */
  const rows: readonly (readonly [string, readonly object[], Signing, Signing])[] = [
    ['another second', [modifyOf('a')], {}, { timestamp: `${now + 1}` }],
    ['a fraction of it', [modifyOf('a')], {}, { timestamp: `${now}.5` }],
    ['another way to sign', [modifyOf('a')], {}, { sign: 'hmac' }],
    ['a create without a ref', [modifyOf('a'), createOf(undefined)], {}, {}],
  ]
  for (const [name, ops, one, other] of rows) {
    test(name, () =>
      withHarness(async (harness) => {
        await harness.post(harness.request([createOf('a')]))
        for (const how of [one, other]) {
          assert.equal(codeOf(await harness.post(harness.request(ops, how))), 'ok')
        }
        assert.equal(await harness.count('a'), 2)
      }),
    )
  }

  test('nothing is kept of shows alone, and of malformed ops alone', () =>
    withHarness(async (harness) => {
      await harness.post(harness.request([showOf('a')]))
      await harness.post(harness.request([{ type: 'x' }]))
      await harness.engine.apply([showOf('a')], { request_key: 'k' })
      assert.equal(await harness.kept(), 0)
    }))
})

describe('a request key', () => {
  const keys = [
    'k',
    '№7',
    'x'.repeat(255),
    '018bcfe5-6800-7000-8000-000000000001',
    'ffffffff-ffff-7fff-bfff-ffffffffffff',
  ]
  for (const request_key of keys) {
    test(`${request_key.slice(0, 40)} makes a call safe to repeat`, () =>
      withHarness(async (harness) => {
        const ops = [createOf(undefined), createOf('a'), modifyOf('a'), modifyOf('none')]
        const first = await harness.engine.apply(ops, { request_key })
        for (let n = 0; n < 3; n++) {
          harness.clock.advance(7 * 3_600_000)
          await turns(50)
          assert.deepEqual(await harness.engine.apply(ops, { request_key }), first)
        }
        assert.equal(await harness.count('a'), 1)
        assert.equal((await harness.engine.check()).counts.task, 2)
      }))
  }

  test('of create and modify', () =>
    withHarness(async ({ engine, count }) => {
      const create = () => engine.create({ conv_id: 1234, data: {} }, { request_key: 'c' })
      assert.deepEqual(await create(), await create())
      await engine.create({ conv_id: 1234, ref: 'a', data: {} })
      const modify = () =>
        engine.modify({ conv_id: 1234, ref: 'a', data: {} }, { request_key: 'm' })
      assert.deepEqual(await modify(), await modify())
      assert.equal(await count('a'), 1)
    }))

  /** [what, the caller of the repeat, its ops, the code of its first result or of its fault] */
  const rows: readonly (readonly [string, object, readonly object[], string])[] = [
    ['with other data', {}, [modifyOf('a', { data: { paid: false } })], 'request_key_reused'],
    ['with one op more', {}, [modifyOf('a'), modifyOf('a')], 'request_key_reused'],
    ['of another user', { user }, [modifyOf('a')], 'ok'],
    ['under another key', { request_key: 'other' }, [modifyOf('a')], 'ok'],
    ['that is empty', { request_key: '' }, [modifyOf('a')], 'format_error'],
    ['that is too long', { request_key: 'x'.repeat(256) }, [modifyOf('a')], 'format_error'],
    ['that is no text', { request_key: 7 }, [modifyOf('a')], 'format_error'],
  ]
  for (const [name, caller, ops, code] of rows) {
    test(`${name}: ${code}`, () =>
      withHarness(async ({ engine, count }) => {
        await engine.apply([createOf('a')])
        await engine.apply([modifyOf('a')], { request_key: 'k' })
        const got = await engine.apply(ops, { request_key: 'k', ...caller }).then(
          ([first]) => first?.proc,
          ({ code }) => code,
        )
        assert.deepEqual([got, await count('a')], [code, code === 'ok' ? 2 : 1])
      }))
  }
})

describe('replay', () => {
  test('reject refuses a repeat, and says that it was applied', () =>
    withHarness(
      async (harness) => {
        const request = harness.request([createOf('a'), modifyOf('a')])
        assert.equal(codeOf(await harness.post(request)), 'ok')
        const { status, body } = await harness.post(request)
        assert.deepEqual([status, JSON.parse(body).request_proc], [409, 'repeated_request'])
        const apply = () => harness.engine.apply([modifyOf('a')], { request_key: 'k' })
        await apply()
        await assert.rejects(apply(), { code: 'repeated_request' })
        assert.equal(await harness.count('a'), 2)
      },
      { replay: 'reject' },
    ))

  test('off keeps nothing, and takes no key', () =>
    withHarness(
      async (harness) => {
        await harness.engine.apply([createOf('a')])
        const request = harness.request([modifyOf('a')])
        await harness.post(request)
        await harness.post(request)
        assert.deepEqual([await harness.count('a'), await harness.kept()], [2, 0])
        const keyed = harness.engine.apply([modifyOf('a')], { request_key: 'k' })
        await assert.rejects(keyed, { code: 'format_error', message: /request_key is not served/ })
      },
      { replay: 'off' },
    ))

  test('another value is a RangeError', () =>
    assert.rejects(openReplayHarness({ replay: 'on' as 'off' }), RangeError))
})

/** Removal looks for records where a checkpoint has put them. */
const after_checkpoints = suite !== undefined && 'over PostgreSQL nothing here makes a checkpoint'

describe('records', () => {
  /** Removal follows the clock in steps. */
  async function pass(harness: ReplayHarness, ms: number): Promise<void> {
    for (let left_ms = ms; left_ms > 0; left_ms -= 40_000) {
      harness.clock.advance(Math.min(left_ms, 40_000))
      await turns(20)
    }
  }

  /** [the window, how long one is answered, when none is left; seconds] */
  const rows: readonly (readonly [number, number, number])[] = [
    [300, 299, 800],
    [1_000, 999, 1_500],
    [0, 400, 1_100],
  ]
  for (const [window_s, answered_s, gone_s] of rows) {
    test(`of signed requests, with a window of ${window_s} s`, { skip: after_checkpoints }, () =>
      withHarness(
        async (harness) => {
          const request = harness.request([createOf('a'), modifyOf('a')])
          const first = await bodyOf(harness, request)
          const old = harness.request([createOf('b'), modifyOf('b')], { timestamp: '5' })
          const first_old = await bodyOf(harness, old)
          await pass(harness, answered_s * 1_000)
          assert.equal(await bodyOf(harness, request), first)
          if (window_s === 0) assert.equal(await bodyOf(harness, old), first_old)
          await pass(harness, (gone_s - answered_s) * 1_000)
          assert.equal(await harness.kept(), 0)
        },
        { limits: { window_ms: window_s * 1_000 } },
      ),
    )
  }

  test('of keys are kept for a day', { skip: after_checkpoints }, () =>
    withHarness(async (harness) => {
      for (const request_key of ['k', '018bcfe5-6800-7000-8000-000000000001']) {
        await harness.engine.apply([createOf(undefined)], { request_key })
      }
      await pass(harness, 24 * 3_600_000)
      assert.equal(await harness.kept(), 2)
      await pass(harness, 26 * 3_600_000)
      assert.equal(await harness.kept(), 0)
    }),
  )

  test('are in the file, also when it is opened again, in another mode', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'conveyor-replays-'))
    const harness = await openReplayHarness({}, join(folder, 'tasks.lmdb'))
    const request = harness.request([createOf('a'), modifyOf('a')])
    const keyed = () => harness.engine.apply([modifyOf('a')], { request_key: 'k' })
    const first = await bodyOf(harness, request)
    const first_keyed = await keyed()
    await harness.reopen()
    assert.equal(await bodyOf(harness, request), first)
    assert.deepEqual(await keyed(), first_keyed)
    await harness.reopen({ replay: 'reject' })
    assert.equal(codeOf(await harness.post(request)), 'repeated_request')
    // A backup merges the commit log; removal looks for records where a checkpoint has put them.
    await harness.engine.backup(join(folder, 'copy.lmdb'))
    await harness.reopen()
    await pass(harness, 1_000_000)
    assert.deepEqual([await harness.kept(), await harness.count('a')], [1, 2])
    await harness.close()
    rmSync(folder, { recursive: true })
  })
})

describe('a synchronous request that comes again', () => {
  test('waits for the task of the first', () =>
    withHarness(async (harness) => {
      const request = harness.request([createOf('a')], { is_sync: true })
      const answers = [harness.post(request, true), harness.post(request, true)]
      while ((await harness.engine.task({ conv_id: 1234, ref: 'a' })) === undefined) await turns(1)
      await turns(100)
      await harness.engine.tasks.cancel({ conv_id: 1234, ref: 'a' })
      const [one, other] = await Promise.all(answers)
      assert.equal(one?.body, other?.body)
      assert.equal((await harness.engine.check()).counts.task, 1)
    }))

  test('after its task has ended is answered by its end, and makes no other', () =>
    withHarness(async (harness) => {
      const create = createOf('a', { conv_id: 1235 })
      const request = harness.request([create], { is_sync: true })
      const first = (await harness.post(request, true)).body
      assert.equal((await harness.post(request, true)).body, first)
      assert.equal((await harness.engine.check()).counts.task, 1)
    }))
})
