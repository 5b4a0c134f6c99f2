/**
 * What the calls on schedules do and refuse: each mistake has a sentence that names the member.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ScheduleInput } from '../src/engine/api/schedule-api.ts'
import { isFault, rawJson } from '../src/index.ts'
import { hour_ms, madeBy, minute_ms, pass, tasksOf, withHarness } from './support/schedule-setup.ts'

describe('put', () => {
  const s: ScheduleInput = { id: 's', every_ms: hour_ms, conv_id: 'job', data: { a: 1, n: 2 } }

  it('the same definition changes nothing, another one replaces it', () =>
    withHarness(async (harness, engine) => {
      const from_ms = harness.clock.now_ms()
      const first = { id: 's', state: 'created', next_ms: from_ms + hour_ms }
      assert.deepEqual(await engine.schedules.put(s), first)
      await pass(harness, 10 * minute_ms)
      const same = { ...s, data: { n: 2, a: 1 }, timezone: 'UTC', catch_up: 'latest' } as const
      assert.deepEqual(await engine.schedules.put(same), { ...first, state: 'unchanged' })
      const next_ms = from_ms + 10 * minute_ms + hour_ms
      const other = { ...s, data: { n: 3 }, due_key: 'due_ms' }
      assert.deepEqual(await engine.schedules.put(other), { id: 's', state: 'updated', next_ms })
      await pass(harness, hour_ms)
      const [task] = await tasksOf(engine)
      assert.deepEqual(task?.data, { n: 3, due_ms: next_ms })
      assert.equal(task.user_id, null)
      assert.equal(task.history?.[0]?.why, 'schedule')
      return engine
    }))

  it('of a past time is refused, of one that was made changes nothing', () =>
    withHarness(async (harness, engine) => {
      const once = { id: 'once', at_ms: harness.clock.now_ms() + 1, conv_id: 'job' }
      assert.equal((await engine.schedules.put(once)).state, 'created')
      await pass(harness, 1)
      assert.deepEqual(await engine.schedules.put(once), {
        id: 'once',
        state: 'unchanged',
        next_ms: null,
      })
      assert.equal((await engine.schedules.show('once')).state, 'ended')
      assert.deepEqual(await madeBy(engine, 'once'), ['2026-01-01T00:00:00.001Z'])
      await assert.rejects(engine.schedules.put({ ...once, id: 'late' }), { code: 'bad_schedule' })
      return engine
    }))

  const many = 'x'.repeat(131_000)
  /** [what is given, the sentence] */
  const rows: readonly (readonly [object, RegExp])[] = [
    [{}, /exactly one of cron, every_ms and at_ms/],
    [{ cron: '* * * * *', every_ms: 1_000 }, /exactly one of cron, every_ms and at_ms/],
    [{ every: 1_000 }, /"every" is no member of a schedule/],
    [{ every_ms: 1_000, id: '' }, /^id is a text of 1 to 64 characters$/],
    [{ every_ms: 1_000, id: 'x'.repeat(65) }, /^id is a text of 1 to 64 characters$/],
    [{ every_ms: 1_000, id: 7 }, /^id is a text of 1 to 64 characters$/],
    [{ every_ms: 1_000, id: 'a\nb' }, /^id is a text of 1 to 64 characters$/],
    [{ every_ms: 0 }, /^every_ms: 0 is no whole number from 1000 on$/],
    [{ every_ms: 999 }, /^every_ms: 999 is/],
    [{ every_ms: 1_000.5 }, /^every_ms: 1000.5 is/],
    [{ every_ms: Number.NaN }, /^every_ms: NaN is/],
    [
      { every_ms: Number.MAX_SAFE_INTEGER },
      /^every_ms: 9007199254740991 leads past the year 9999$/,
    ],
    [{ at_ms: 0 }, /^at_ms: 0 is past/],
    [{ at_ms: 9e15 }, /^at_ms: 9000000000000000 is past, or after the year 9999$/],
    [{ at_ms: '2026-11-22' }, /^at_ms: 2026-11-22 is no time/],
    [{ cron: '' }, /^cron: /],
    [{ cron: 7 }, /^cron is a text of at most 256 characters$/],
    [{ cron: `${'1,'.repeat(200)}1 * * * *` }, /^cron is a text of at most 256 characters$/],
    [{ cron: 'hello' }, /^cron: .*five/],
    [{ cron: '* * * *' }, /^cron: /],
    [{ cron: '* * * * * * 2030' }, /^cron: /],
    [{ cron: '60 * * * *' }, /^cron: .*minute: 60/],
    [{ cron: '*/0 * * * *' }, /^cron: .*stepping: 0/],
    [{ cron: '@reboot' }, /^cron: /],
    [{ cron: '2030-01-01T00:00:00' }, /^cron: /],
    [{ cron: '0 0 30 2 *' }, /^cron: "0 0 30 2 \*" is never due$/],
    [
      { cron: '0 0 * * *', timezone: 'Europe/Nowhere' },
      /^timezone: "Europe\/Nowhere" is no time zone/,
    ],
    [{ cron: '0 0 * * *', timezone: '' }, /^timezone: "" is no time zone/],
    [{ cron: '0 0 * * *', timezone: 2 }, /^timezone: 2 is no time zone/],
    [{ every_ms: 1_000, timezone: 'x'.repeat(1_000) }, /^timezone: "x{128}…" is no time zone/],
    [{ every_ms: 1_000, timezone: 'Moon' }, /^timezone: "Moon" is no time zone/],
    [{ every_ms: 1_000, catch_up: 'some' }, /^catch_up is none, latest or all$/],
    [{ every_ms: 1_000, due_key: '' }, /^due_key is a name of 1 to 64 characters$/],
    [{ every_ms: 1_000, data: 'x' }, /^data: /],
    [{ every_ms: 1_000, data: [1] }, /^data: /],
    [{ every_ms: 1_000, data: null }, /^data: /],
    [{ every_ms: 1_000, data: { f() {} } }, /^data: .*data\.f is a function/],
    [{ every_ms: 1_000, data: { many: `${many}${many}` } }, /^data: \d+ bytes, at most 131072/],
    [
      { every_ms: 1_000, data: rawJson(`{"a":"${many}"}`), due_key: 'x'.repeat(64) },
      /^data: \d+ byt/,
    ],
    [{ every_ms: 1_000, conv_id: '' }, /^conv_id: /],
    [{ every_ms: 1_000, conv_id: undefined }, /^conv_id: /],
  ]
  for (const [given, sentence] of rows) {
    it(`${JSON.stringify(given).slice(0, 70)} is refused`, () =>
      withHarness(async (_harness, engine) => {
        const input = { id: 's', conv_id: 'job', ...given } as ScheduleInput
        const error: unknown = await engine.schedules.put(input).then(undefined, (thrown) => thrown)
        assert.ok(isFault(error) && error.code === 'bad_schedule', String(error))
        assert.match(error.message, sentence)
        assert.deepEqual(await engine.schedules.list(), [])
        return engine
      }))
  }

  it('for a process that is not there is refused', () =>
    withHarness(async (_harness, engine) => {
      const missing = engine.schedules.put({ ...s, conv_id: 'nowhere' })
      await assert.rejects(missing, { code: 'conv_not_found' })
      return engine
    }))
})

describe('pause, resume, run and remove', () => {
  it('do so, and refuse an unknown id', () =>
    withHarness(async (harness, engine) => {
      const { schedules } = engine
      await engine.schedules.put({ id: 's', cron: '0 * * * *', conv_id: 'job', due_key: 'n' })
      await schedules.pause('s')
      await engine.schedules.put({ id: 's', cron: '30 * * * *', conv_id: 'job', due_key: 'n' })
      assert.equal((await schedules.show('s')).state, 'paused', 'a new definition does not resume')
      await pass(harness, 25 * minute_ms)
      const ran = await schedules.run('s')
      assert.deepEqual([ran.proc, ran.ref], ['ok', 's/run@2026-01-01T00:25:00.000Z'])
      const [task] = await tasksOf(engine)
      assert.deepEqual(task?.data, { n: harness.clock.now_ms() })
      await schedules.resume('s')
      await pass(harness, 5 * minute_ms)
      assert.deepEqual(await madeBy(engine, 's'), ['2026-01-01T00:30:00Z'])
      await schedules.remove('s')
      await pass(harness, 2 * hour_ms)
      assert.equal((await tasksOf(engine)).length, 2)
      for (const call of ['show', 'pause', 'resume', 'run', 'remove'] as const) {
        await assert.rejects(schedules[call]('s'), {
          code: 'schedule_not_found',
          message: 'there is no schedule "s"',
        })
      }
      return engine
    }))

  it('with timers off nothing is created, and run works', () =>
    withHarness(async (harness, engine) => {
      await engine.schedules.put({ id: 's', cron: '0 * * * *', conv_id: 'job' })
      await engine.close()
      const off = await harness.open({ background: false })
      harness.clock.advance(hour_ms)
      await off.schedules.run('s')
      await off.flush()
      assert.deepEqual(await madeBy(off, 's'), [])
      assert.equal((await tasksOf(off)).length, 1)
      return off
    }))

  it('are refused once the engine is closed', () =>
    withHarness(async (harness, engine) => {
      await engine.schedules.put({ id: 's', cron: '0 * * * *', conv_id: 'job' })
      await engine.close()
      await assert.rejects(engine.schedules.pause('s'), { code: 'shutting_down' })
      await assert.rejects(engine.schedules.run('s'), { code: 'shutting_down' })
      return harness.open()
    }))
})
