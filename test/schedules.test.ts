/**
 * Schedules: each due time creates one task, never early, however the clock is set and whoever
 * pauses, and what was missed is made up for as `catch_up` says.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CatchUp, ScheduleInput } from '../src/engine/api/schedule-api.ts'
import { dueTimesOf, utcText } from '../src/engine/schedules/schedule-input.ts'
import { settled } from './support/model-setup.ts'
import {
  day_ms,
  hour_ms,
  madeBy,
  minute_ms,
  pass,
  tasksOf,
  withHarness,
} from './support/schedule-setup.ts'
import { is_slow } from './support/short-run.ts'

describe('due times', () => {
  /** [cron, timezone, after, the due times that follow] */
  const rows: readonly (readonly [string, string, string, readonly string[]])[] = [
    ['0 2 * * *', 'UTC', '2026-01-01T02:00:00Z', ['2026-01-02T02:00:00Z']],
    ['0 2 * * *', 'UTC', '2026-01-01T01:59:59.999Z', ['2026-01-01T02:00:00Z']],
    ['0 2 * * *', 'Europe/Kyiv', '2026-01-01T02:00:00Z', ['2026-01-02T00:00:00Z']],
    // In Kyiv the clocks go from 3:00 to 4:00 on 29 March 2026, at 1:00 UTC.
    [
      '30 3 * * *',
      'Europe/Kyiv',
      '2026-03-28T00:00:00Z',
      ['2026-03-28T01:30:00Z', '2026-03-29T01:00:00Z', '2026-03-30T00:30:00Z'],
    ],
    [
      '0,30 * * * *',
      'Europe/Kyiv',
      '2026-03-29T00:10:00Z',
      ['2026-03-29T00:30:00Z', '2026-03-29T01:00:00Z', '2026-03-29T01:30:00Z'],
    ],
    ['30 2-4 * * *', 'Europe/Kyiv', '2026-03-29T00:30:00Z', ['2026-03-29T01:30:00Z']],
    // And from 4:00 back to 3:00 on 25 October 2026, at 1:00 UTC.
    [
      '30 3 * * *',
      'Europe/Kyiv',
      '2026-10-24T12:00:00Z',
      ['2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z'],
    ],
    [
      '0 * * * *',
      'Europe/Kyiv',
      '2026-10-24T23:30:00Z',
      ['2026-10-25T00:00:00Z', '2026-10-25T01:00:00Z', '2026-10-25T02:00:00Z'],
    ],
    ['*/20 * * * * *', 'UTC', '2026-01-01T00:00:30Z', ['2026-01-01T00:00:40Z']],
    ['@weekly', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-04T00:00:00Z', '2026-01-11T00:00:00Z']],
    ['0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', ['2028-02-29T00:00:00Z']],
  ]
  for (const [cron, timezone, after, wanted] of rows) {
    it(`of ${cron} in ${timezone} after ${after}`, () => {
      const times = dueTimesOf({ cron, timezone }, 0)
      let ms = Date.parse(after)
      for (const due of wanted) {
        ms = times.after(ms) ?? 0
        assert.equal(utcText(ms), due)
      }
      const first_ms = Date.parse(wanted[0] as string)
      assert.equal(times.newest(1, first_ms, ms), ms)
      assert.equal(times.newest(1, first_ms, ms + 999), ms)
      assert.equal(times.newest(wanted.length, 0, ms), first_ms)
      assert.equal(times.newest(100, first_ms, ms), first_ms)
    })
  }
})

// Over the night in which Kyiv sets its clocks.
const days = is_slow ? 21 : 6

describe('thousands of due times in virtual days', () => {
  it('each create one task, at its time or after it, in two zones', () =>
    withHarness(async (harness, engine) => {
      const { clock } = harness
      const began_ms = Date.parse('2026-03-26T00:00:00Z')
      clock.set(began_ms)
      const each: readonly ScheduleInput[] = [
        { id: 'kyiv', cron: '*/10 * * * *', timezone: 'Europe/Kyiv', conv_id: 'job' },
        { id: 'daily', cron: '30 3 * * *', timezone: 'Europe/Kyiv', conv_id: 'job' },
        { id: 'york', cron: '7 1 * * *', timezone: 'America/New_York', conv_id: 'job' },
        { id: 'often', every_ms: 7 * minute_ms + 1, conv_id: 'job' },
        { id: 'once', at_ms: began_ms + day_ms + 1, conv_id: 'job' },
      ]
      for (const one of each) await engine.schedules.put({ ...one, catch_up: 'all' })
      for (let day = 0; day < days; day++) {
        // Steps of all lengths: on time, a little late, and missed.
        for (const step of [1, 59_999, 60_001, 5 * hour_ms]) await pass(harness, step)
        clock.set(clock.now_ms() - hour_ms)
        await pass(harness, 20 * hour_ms, 2 * hour_ms - 1)
      }
      const to_ms = Math.max(...(await tasksOf(engine)).map((task) => task.create_time_ms))
      for (const { id, cron, timezone = 'UTC', ...one } of each) {
        const times = dueTimesOf(
          { ...one, timezone, ...(cron === undefined ? {} : { cron }) },
          began_ms,
        )
        const wanted: string[] = []
        for (
          let ms = times.after(began_ms);
          ms !== undefined && ms <= to_ms;
          ms = times.after(ms)
        ) {
          wanted.push(utcText(ms))
        }
        assert.deepEqual(await madeBy(engine, id), wanted, id)
      }
      const tasks = await tasksOf(engine)
      assert.ok(tasks.length > 300 * days, `${tasks.length} tasks`)
      for (const { ref, create_time_ms } of tasks) {
        assert.ok(create_time_ms >= Date.parse(ref?.split('@')[1] ?? ''), `${ref} is not early`)
      }
      assert.deepEqual(
        (await engine.schedules.list()).map(({ id, state }) => [id, state]),
        [
          ['daily', 'active'],
          ['kyiv', 'active'],
          ['often', 'active'],
          ['once', 'ended'],
          ['york', 'active'],
        ],
      )
      return engine
    }))

  it('not a millisecond early', () =>
    withHarness(async (harness, engine) => {
      await engine.schedules.put({ id: 's', every_ms: 1_000, conv_id: 'job' })
      await pass(harness, 999)
      assert.deepEqual(await madeBy(engine, 's'), [])
      await pass(harness, 1)
      assert.deepEqual(await madeBy(engine, 's'), ['2026-01-01T00:00:01Z'])
      return engine
    }))

  it('a thousand schedules due at one moment', () =>
    withHarness(async (harness, engine) => {
      const ids = Array.from({ length: 1_000 }, (_, n) => `s${n}`)
      const puts = ids.map((id) => engine.schedules.put({ id, cron: '0 * * * *', conv_id: 'job' }))
      await Promise.all(puts)
      await pass(harness, hour_ms)
      assert.equal((await tasksOf(engine)).length, 1_000)
      await assert.rejects(engine.schedules.put({ id: 'more', every_ms: 1_000, conv_id: 'job' }), {
        code: 'not_possible',
        message: '1000 schedules are stored, which is schedules_max',
      })
      await engine.schedules.put({ id: 's1', cron: '1 * * * *', conv_id: 'job' })
      return engine
    }))
})

describe('what was missed', () => {
  const starts = ['closed', 'schedule paused', 'process paused', 'clock set forward'] as const
  /** [catch_up, cron, for how long, the due times that are made when it is over] */
  const rows: readonly (readonly [CatchUp, string, number, readonly string[]])[] = [
    ['none', '0 * * * *', 3 * hour_ms + 61_000, []],
    ['none', '0 * * * *', 3 * hour_ms + 60_000, ['03:00:00']],
    ['latest', '0 * * * *', 3 * hour_ms + 61_000, ['03:00:00']],
    ['latest', '*/15 * * * * *', 2 * minute_ms, ['00:02:00']],
    ['latest', '*/15 * * * * *', 45_000, ['00:00:15', '00:00:30', '00:00:45']],
    ['all', '0 * * * *', 3 * hour_ms + 61_000, ['01:00:00', '02:00:00', '03:00:00']],
    // Of 60 the newest 20.
    [
      'all',
      '* * * * *',
      hour_ms,
      Array.from({ length: 20 }, (_, n) => `00:${41 + n}:00`.replace('00:60', '01:00')),
    ],
  ]
  for (const start of starts) {
    for (const [catch_up, cron, for_ms, wanted] of rows) {
      it(`${start} for ${for_ms / 1000} s: ${catch_up} of ${cron} makes ${wanted.length}`, () =>
        withHarness(
          async (harness, first) => {
            let engine = first
            const { clock } = harness
            await engine.schedules.put({ id: 's', cron, conv_id: 'job', catch_up })
            if (start === 'closed') await engine.close()
            if (start === 'schedule paused') await engine.schedules.pause('s')
            if (start === 'process paused') await engine.processes.pause('job')
            if (start === 'process paused' || start === 'schedule paused')
              await pass(harness, for_ms)
            else clock.set(clock.now_ms() + for_ms)
            // An open engine begins at once with what was missed.
            if (start === 'closed') engine = await harness.open()
            else assert.deepEqual(await madeBy(engine, 's'), [])
            if (start === 'schedule paused') await engine.schedules.resume('s')
            if (start === 'process paused') await engine.processes.resume('job')
            if (start === 'clock set forward') clock.advance(0)
            await settled(clock)
            const made = await madeBy(engine, 's')
            assert.deepEqual(
              made,
              wanted.map((time) => `2026-01-01T${time}Z`),
            )
            const { next_ms, left_out } = await engine.schedules.show('s')
            assert.ok(next_ms !== null && next_ms > clock.now_ms())
            const first_made_ms = Date.parse(made[0] ?? utcText(next_ms))
            const times = dueTimesOf({ cron, timezone: 'UTC' }, 0)
            const first_ms = times.after(Date.parse('2026-01-01')) as number
            const gap = { from_ms: first_ms, to_ms: first_made_ms }
            assert.deepEqual(left_out, first_ms === first_made_ms ? undefined : gap)
            return engine
          },
          { limits: { catch_up_max: 20 } },
        ))
    }
  }

  it('others get their turn between two schedules that look for a thousand due times', async () => {
    let turn = 0
    const told: number[] = []
    const line = (): void => {}
    const warn = (_fields: object, message: string): void => {
      if (message.endsWith('are left out')) told.push(turn)
    }
    const logger = { debug: line, info: line, warn, error: line }
    await withHarness(
      async (harness, engine) => {
        for (const id of ['a', 'b', 'c']) {
          await engine.schedules.put({ id, cron: '* * * * *', conv_id: 'job', catch_up: 'all' })
        }
        let is_over = false
        const count = (): void => {
          turn++
          if (!is_over) setImmediate(count)
        }
        count()
        await pass(harness, 48 * hour_ms)
        is_over = true
        assert.equal(new Set(told).size, 3)
        return engine
      },
      { logger },
    )
  })

  it('a year of seconds is looked up, not counted', () =>
    withHarness(async (harness, engine) => {
      const cron = '* * * * * *'
      await engine.schedules.put({ id: 'all', cron, conv_id: 'job', catch_up: 'all' })
      await engine.schedules.put({ id: 'latest', cron, conv_id: 'job' })
      await engine.close()
      harness.clock.set(Date.parse('2027-01-01'))
      const again = await harness.open()
      await settled(harness.clock)
      const all = await madeBy(again, 'all')
      assert.deepEqual(
        [all.length, all[0], all.at(-1)],
        [1_000, '2026-12-31T23:43:21Z', '2027-01-01T00:00:00Z'],
      )
      assert.deepEqual(await madeBy(again, 'latest'), ['2027-01-01T00:00:00Z'])
      return again
    }))
})

describe('a clock that is set back', () => {
  it('makes no due time twice, also for a new definition', () =>
    withHarness(async (harness, engine) => {
      const { clock } = harness
      await engine.schedules.put({ id: 's', cron: '0 * * * *', conv_id: 'job' })
      await pass(harness, 2 * hour_ms, hour_ms)
      clock.set(clock.now_ms() - 90 * minute_ms)
      await pass(harness, 89 * minute_ms, minute_ms)
      await engine.schedules.put({ id: 's', cron: '0 * * * *', conv_id: 'job', data: { n: 2 } })
      await pass(harness, hour_ms + minute_ms, minute_ms)
      const made = ['2026-01-01T01:00:00Z', '2026-01-01T02:00:00Z', '2026-01-01T03:00:00Z']
      assert.deepEqual(await madeBy(engine, 's'), made)
      assert.equal((await engine.schedules.show('s')).last?.proc, 'ok')
      return engine
    }))
})
