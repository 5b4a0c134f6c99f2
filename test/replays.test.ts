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
  openReplayBed,
  type ReplayBed,
  type Signing,
  showOf,
  user,
} from './support/replay-bed.ts'
import { turns } from './support/store-trees.ts'

async function withBed(
  work: (bed: ReplayBed) => Promise<void>,
  options: EngineOptions = {},
): Promise<void> {
  const bed = await openReplayBed(options)
  try {
    await work(bed)
    assert.deepEqual((await bed.engine.check()).breaches, [])
  } finally {
    await bed.close()
  }
}

const bodyOf = async (bed: ReplayBed, request: Buffer): Promise<string> =>
  (await bed.post(request)).body

describe('a signed request that comes again', () => {
  /** [what, its ops] */
  const rows: readonly (readonly [string, readonly object[]])[] = [
    ['one modify', [modifyOf('a')]],
    ['a modify by obj_id', [{ ...modifyOf('a'), ref: undefined, obj_id: 'A' }]],
    ['a create and a modify', [createOf('b'), modifyOf('b'), modifyOf('a')]],
    ['ids and numbers', [createOf('b', { id: 7 }), modifyOf('a', { id: 'x' }), createOf('9.0')]],
    ['refused ops', [modifyOf('none'), modifyOf('a'), createOf('a', { data: { other: 1 } })]],
    ['malformed ops', [{ type: 'x', ref: 5 }, modifyOf('a'), { type: 'create', ref: 'b' }]],
    ['many ops', [...Array.from({ length: 300 }, (_, n) => createOf(`many-${n}`)), modifyOf('a')]],
  ]
  for (const [name, ops] of rows) {
    for (const how of [{}, { version: 2 }, { sign: 'hmac' }] as const satisfies Signing[]) {
      test(`${name}, ${JSON.stringify(how)}`, () =>
        withBed(async (bed) => {
          const { obj_id } = await bed.engine.create({ conv_id: 1234, ref: 'a', data: {} })
          const sent = ops.map((op) => ('obj_id' in op ? { ...op, obj_id } : op))
          const request = bed.request(sent, how)
          const first = await bodyOf(bed, request)
          assert.equal(await bed.count('a'), 1)
          const again = Array.from({ length: 3 }, () => bodyOf(bed, request))
          for (const body of await Promise.all(again)) assert.equal(body, first)
          assert.equal(await bed.count('a'), 1)
          assert.equal(await bed.kept(), 1)
          assert.equal(bed.engine.statistics().replays, 3)
        }))
    }
  }

  test('while the first is under way is answered with it', () =>
    withBed(async (bed) => {
      await bed.post(bed.request([createOf('a')]))
      const request = bed.request([modifyOf('a')])
      const bodies = await Promise.all(Array.from({ length: 50 }, () => bodyOf(bed, request)))
      assert.equal(new Set(bodies).size, 1)
      assert.equal(await bed.count('a'), 1)
    }))

  /** [what happens meanwhile] */
  const meanwhile: readonly (readonly [string, (bed: ReplayBed) => Promise<unknown>])[] = [
    ['its task has ended', (bed) => bed.engine.tasks.cancel({ conv_id: 1234, ref: 'a' })],
    [
      'its process is removed',
      async (bed) => {
        await bed.engine.tasks.cancel({ conv_id: 1234, ref: 'a' })
        await bed.engine.processes.remove('1234')
      },
    ],
    ['its process is paused', (bed) => bed.engine.processes.pause('1234')],
    ['the grant is taken away', (bed) => bed.engine.processes.unshare('1234', user)],
    ['the secret is rotated', (bed) => bed.engine.users.rotate(user, { grace_ms: 60_000 })],
    ['the clock is set forward and back', (bed) => setForwardAndBack(bed)],
    ['a task has been made under the ref it missed', (bed) => bed.engine.create(missed)],
  ]
  const missed = { conv_id: 1234, ref: 'missed', data: {} }
  for (const [name, happen] of meanwhile) {
    test(`after ${name}`, () =>
      withBed(async (bed) => {
        const request = bed.request([createOf('a'), modifyOf('a'), modifyOf('missed')])
        const first = await bodyOf(bed, request)
        await happen(bed)
        assert.equal(await bodyOf(bed, request), first)
      }))
  }

  async function setForwardAndBack({ clock }: ReplayBed): Promise<void> {
    const now_ms = clock.now_ms()
    clock.set(now_ms + 86_400_000)
    clock.advance(60_000)
    await turns(200)
    clock.set(now_ms)
  }

  /** [what happens meanwhile, the code that the repeat is refused with] */
  const refused: readonly (readonly [string, (bed: ReplayBed) => Promise<unknown>, string])[] = [
    ['the user is removed', (bed) => bed.engine.users.remove(user), 'bad_signature'],
    ['the secret is rotated', (bed) => bed.engine.users.rotate(user), 'bad_signature'],
    ['the window has passed', async (bed) => bed.clock.advance(300_001), 'stale_timestamp'],
  ]
  for (const [name, happen, code] of refused) {
    test(`is refused after ${name}`, () =>
      withBed(async (bed) => {
        const request = bed.request([createOf('a'), modifyOf('a')])
        await bed.post(request)
        await happen(bed)
        assert.equal(codeOf(await bed.post(request)), code)
        assert.equal(await bed.count('a'), 1)
      }))
  }

  test('is answered in the shape of its path, whose version is not signed', () =>
    withBed(async (bed) => {
      const ops = [createOf('a'), modifyOf('a')]
      const first = JSON.parse(await bodyOf(bed, bed.request(ops)))
      const again = JSON.parse(await bodyOf(bed, bed.request(ops, { version: 2 })))
      assert.deepEqual(Object.keys(again.ops[0]), ['id', 'proc', 'obj', 'ref', 'obj_id'])
      assert.equal(again.ops[0].obj_id, first.ops[0].obj_id)
      assert.equal(await bed.count('a'), 1)
    }))

  test('counts against the rate, and its ops are not counted again', () =>
    withBed(
      async (bed) => {
        const request = bed.request([createOf('a'), modifyOf('a')])
        await bed.post(request)
        assert.equal(codeOf(await bed.post(request)), 'ok')
        assert.equal(codeOf(await bed.post(request)), 'rate_limited')
        assert.deepEqual(bed.engine.statistics().ops, { create: { ok: 1 }, modify: { ok: 1 } })
      },
      { limits: { rate_ops_per_s: 3 } },
    ))

  test('shows anew what it shows', () =>
    withBed(async (bed) => {
      const request = bed.request([createOf('a'), modifyOf('a'), showOf('a')])
      await bed.post(request)
      await bed.engine.modify({ conv_id: 1234, ref: 'a', data: {} })
      const { ops } = JSON.parse(await bodyOf(bed, request))
      assert.deepEqual([ops[2].node_id, await bed.count('a')], ['2', 2])
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
      withBed(async (bed) => {
        await bed.post(bed.request([createOf('a')]))
        for (const how of [one, other]) {
          assert.equal(codeOf(await bed.post(bed.request(ops, how))), 'ok')
        }
        assert.equal(await bed.count('a'), 2)
      }),
    )
  }

  test('nothing is kept of shows alone, and of malformed ops alone', () =>
    withBed(async (bed) => {
      await bed.post(bed.request([showOf('a')]))
      await bed.post(bed.request([{ type: 'x' }]))
      await bed.engine.apply([showOf('a')], { request_key: 'k' })
      assert.equal(await bed.kept(), 0)
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
      withBed(async (bed) => {
        const ops = [createOf(undefined), createOf('a'), modifyOf('a'), modifyOf('none')]
        const first = await bed.engine.apply(ops, { request_key })
        for (let n = 0; n < 3; n++) {
          bed.clock.advance(7 * 3_600_000)
          await turns(50)
          assert.deepEqual(await bed.engine.apply(ops, { request_key }), first)
        }
        assert.equal(await bed.count('a'), 1)
        assert.equal((await bed.engine.check()).counts.task, 2)
      }))
  }

  test('of create and modify', () =>
    withBed(async ({ engine, count }) => {
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
      withBed(async ({ engine, count }) => {
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
    withBed(
      async (bed) => {
        const request = bed.request([createOf('a'), modifyOf('a')])
        assert.equal(codeOf(await bed.post(request)), 'ok')
        const { status, body } = await bed.post(request)
        assert.deepEqual([status, JSON.parse(body).request_proc], [409, 'repeated_request'])
        const apply = () => bed.engine.apply([modifyOf('a')], { request_key: 'k' })
        await apply()
        await assert.rejects(apply(), { code: 'repeated_request' })
        assert.equal(await bed.count('a'), 2)
      },
      { replay: 'reject' },
    ))

  test('off keeps nothing, and takes no key', () =>
    withBed(
      async (bed) => {
        await bed.engine.apply([createOf('a')])
        const request = bed.request([modifyOf('a')])
        await bed.post(request)
        await bed.post(request)
        assert.deepEqual([await bed.count('a'), await bed.kept()], [2, 0])
        const keyed = bed.engine.apply([modifyOf('a')], { request_key: 'k' })
        await assert.rejects(keyed, { code: 'format_error', message: /request_key is not served/ })
      },
      { replay: 'off' },
    ))

  test('another value is a RangeError', () =>
    assert.rejects(openReplayBed({ replay: 'on' as 'off' }), RangeError))
})

/** Removal looks for records where a checkpoint has put them. */
const after_checkpoints = suite !== undefined && 'over PostgreSQL nothing here makes a checkpoint'

describe('records', () => {
  /** Removal follows the clock in steps. */
  async function pass(bed: ReplayBed, ms: number): Promise<void> {
    for (let left_ms = ms; left_ms > 0; left_ms -= 40_000) {
      bed.clock.advance(Math.min(left_ms, 40_000))
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
      withBed(
        async (bed) => {
          const request = bed.request([createOf('a'), modifyOf('a')])
          const first = await bodyOf(bed, request)
          const old = bed.request([createOf('b'), modifyOf('b')], { timestamp: '5' })
          const first_old = await bodyOf(bed, old)
          await pass(bed, answered_s * 1_000)
          assert.equal(await bodyOf(bed, request), first)
          if (window_s === 0) assert.equal(await bodyOf(bed, old), first_old)
          await pass(bed, (gone_s - answered_s) * 1_000)
          assert.equal(await bed.kept(), 0)
        },
        { limits: { window_ms: window_s * 1_000 } },
      ),
    )
  }

  test('of keys are kept for a day', { skip: after_checkpoints }, () =>
    withBed(async (bed) => {
      for (const request_key of ['k', '018bcfe5-6800-7000-8000-000000000001']) {
        await bed.engine.apply([createOf(undefined)], { request_key })
      }
      await pass(bed, 24 * 3_600_000)
      assert.equal(await bed.kept(), 2)
      await pass(bed, 26 * 3_600_000)
      assert.equal(await bed.kept(), 0)
    }),
  )

  test('are in the file, also when it is opened again, in another mode', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'conveyor-replays-'))
    const bed = await openReplayBed({}, join(folder, 'tasks.lmdb'))
    const request = bed.request([createOf('a'), modifyOf('a')])
    const keyed = () => bed.engine.apply([modifyOf('a')], { request_key: 'k' })
    const first = await bodyOf(bed, request)
    const first_keyed = await keyed()
    await bed.reopen()
    assert.equal(await bodyOf(bed, request), first)
    assert.deepEqual(await keyed(), first_keyed)
    await bed.reopen({ replay: 'reject' })
    assert.equal(codeOf(await bed.post(request)), 'repeated_request')
    // A backup merges the commit log; removal looks for records where a checkpoint has put them.
    await bed.engine.backup(join(folder, 'copy.lmdb'))
    await bed.reopen()
    await pass(bed, 1_000_000)
    assert.deepEqual([await bed.kept(), await bed.count('a')], [1, 2])
    await bed.close()
    rmSync(folder, { recursive: true })
  })
})

describe('a synchronous request that comes again', () => {
  test('waits for the task of the first', () =>
    withBed(async (bed) => {
      const request = bed.request([createOf('a')], { is_sync: true })
      const answers = [bed.post(request, true), bed.post(request, true)]
      while ((await bed.engine.task({ conv_id: 1234, ref: 'a' })) === undefined) await turns(1)
      await turns(100)
      await bed.engine.tasks.cancel({ conv_id: 1234, ref: 'a' })
      const [one, other] = await Promise.all(answers)
      assert.equal(one?.body, other?.body)
      assert.equal((await bed.engine.check()).counts.task, 1)
    }))

  test('after its task has ended is answered by its end, and makes no other', () =>
    withBed(async (bed) => {
      const create = createOf('a', { conv_id: 1235 })
      const request = bed.request([create], { is_sync: true })
      const first = (await bed.post(request, true)).body
      assert.equal((await bed.post(request, true)).body, first)
      assert.equal((await bed.engine.check()).counts.task, 1)
    }))
})
