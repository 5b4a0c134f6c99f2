/**
 * Thirty virtual days of timers, callbacks and schedules, while the clock goes on in steps of all
 * sizes, is set forward and back by a day, and the engine is closed and opened. What must have
 * happened is computed here, from the due times alone.
 */

import assert from 'node:assert/strict'
import type { Engine } from '../../../src/engine/api/engine-api.ts'
import { memoryHarness, settled } from '../model-setup.ts'
import { node } from '../processes.ts'
import { newRandom } from './random.ts'

const s_ms = 1_000
const minute_ms = 60 * s_ms
const hour_ms = 60 * minute_ms
const day_ms = 24 * hour_ms
const began_ms = Date.parse('2026-03-01T12:00:00Z')
const days = 30

/** Local times of a day, in zones whose clocks go forward in this month. */
const daily = [
  {
    id: 'kyiv',
    timezone: 'Europe/Kyiv',
    cron: '30 3 * * *',
    at_ms: 3.5 * hour_ms,
    until: '2026-03-29T01:00:00Z',
    before_h: 2,
  },
  {
    id: 'york',
    timezone: 'America/New_York',
    cron: '7 1 * * *',
    at_ms: hour_ms + 7 * minute_ms,
    until: '2026-03-08T07:00:00Z',
    before_h: -5,
  },
] as const
const every_ms = 3 * hour_ms + 1

/** Each wakes at a Unix second of its data, or an hour after it came; a modify comes before. */
const wait = {
  obj_id: 'wait',
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'wait' }] } },
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'called' }], {
        semaphors: [{ type: 'time', value: '{{when}}', to_node_id: 'hour' }],
      }),
      node('hour', 0, [], { semaphors: [{ type: 'time', value: 3_600, to_node_id: 'late' }] }),
      { id: 'called', obj_type: 2, options: { save_task: true } },
      { id: 'late', obj_type: 2, options: { save_task: true } },
    ],
  },
}
const job = {
  obj_id: 'job',
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'end' }] } },
      { id: 'end', obj_type: 2, options: { save_task: true } },
    ],
  },
}

interface Waiting {
  readonly obj_id: string
  readonly when_ms: number
  is_called: boolean
}

/** Throws where a timer was early, twice or forgotten, a due time not made once, an id not above. */
export async function runMonth(seed: number): Promise<number> {
  const random = newRandom(seed)
  const harness = memoryHarness({
    limits: { ended_kept_ms: 1_000 * day_ms, changes_kept_ms: 1e12 },
  })
  const { clock } = harness
  clock.set(began_ms)
  let engine = await harness.open()
  const waiting: Waiting[] = []
  let newest_ms = began_ms
  let sets = 0
  try {
    await engine.processes.put(wait)
    await engine.processes.put(job)
    for (const { id, cron, timezone } of daily) {
      await engine.schedules.put({ id, cron, timezone, conv_id: 'job', catch_up: 'all' })
    }
    await engine.schedules.put({ id: 'often', every_ms, conv_id: 'job', catch_up: 'all' })
    while (clock.now_ms() < began_ms + days * day_ms) {
      await createSome(engine, clock.now_ms(), waiting, random.below(3), () =>
        random.below(3 * 86_400),
      )
      const one = waiting.length > 0 ? random.pick(waiting) : undefined
      if (one !== undefined && !one.is_called) {
        const { resumed } = await engine.modify({
          conv_id: 'wait',
          obj_id: one.obj_id,
          data: { called: true },
        })
        one.is_called = resumed === true
      }
      const step = random.weighted([
        [10, 'on'],
        [1, 'day on'],
        [1, 'day back'],
        [1, 'closed on'],
        [1, 'closed back'],
      ] as const)
      const small = random.pick([1, s_ms, minute_ms, hour_ms, 5 * hour_ms + 7])
      if (step === 'on') clock.advance(small)
      else if (step === 'day on') clock.advance(day_ms)
      else {
        if (step !== 'day back') await engine.close()
        clock.set(clock.now_ms() + (step === 'closed on' ? day_ms : -day_ms))
        if (step !== 'day back') engine = await harness.open()
      }
      if (step !== 'on') sets++
      await settled(clock)
      newest_ms = Math.max(newest_ms, clock.now_ms())
      if (random.oneIn(40)) await judgeTimers(engine, clock.now_ms(), waiting)
    }
    clock.advance(4 * day_ms)
    await settled(clock)
    clock.advance(hour_ms)
    await settled(clock)
    newest_ms = Math.max(newest_ms, clock.now_ms())
    await judgeTimers(engine, clock.now_ms(), waiting)
    await judgeMade(engine, newest_ms)
    assert.deepEqual((await engine.check()).breaches, [])
    return sets
  } finally {
    await engine.close()
  }
}

async function createSome(
  engine: Engine,
  now_ms: number,
  waiting: Waiting[],
  count: number,
  after_s: () => number,
): Promise<void> {
  for (let n = 0; n < count; n++) {
    const when = Math.floor(now_ms / s_ms) + after_s() - 3_600
    const { obj_id = '' } = await engine.create({ conv_id: 'wait', data: { when } })
    assert.ok(obj_id > (waiting.at(-1)?.obj_id ?? ''), 'an id is not above the one before')
    waiting.push({ obj_id, when_ms: when * s_ms, is_called: false })
  }
}

/** Each timer that is due has fired once, not early; no other has. */
async function judgeTimers(
  engine: Engine,
  now_ms: number,
  waiting: readonly Waiting[],
): Promise<void> {
  for (const { obj_id, when_ms, is_called } of waiting) {
    const task = await engine.task({ conv_id: 'wait', obj_id })
    const [first, second, ...more] = task?.history?.filter(({ why }) => why === 'timer') ?? []
    assert.equal(more.length, 0, 'a timer has fired again')
    if (first === undefined) assert.ok(is_called || when_ms > now_ms, 'a timer is forgotten')
    else {
      assert.ok(!is_called && first.at_ms >= when_ms, 'a timer was early')
      const late_ms = first.at_ms + hour_ms
      if (second === undefined) assert.ok(late_ms > now_ms, 'a second timer is forgotten')
      else assert.ok(second.at_ms >= late_ms, 'a second timer was early')
    }
  }
}

/** Each due time has one task, not early, and ids ascend in the order of the feed. */
async function judgeMade(engine: Engine, newest_ms: number): Promise<void> {
  const { obj_id: last } = await engine.create({ conv_id: 'job', ref: 'last', data: {} })
  const made = new Map<string, string[]>()
  let id = ''
  for await (const { obj_id, ref, conv_id } of engine.changes({ from: 'start' })) {
    if (conv_id !== 'job') continue
    assert.ok(obj_id > id, 'ids do not ascend')
    id = obj_id
    if (obj_id === last) break
    const [schedule = '', due = ''] = ref?.split('@') ?? []
    const task = await engine.task({ conv_id: 'job', obj_id })
    assert.ok((task?.create_time_ms ?? 0) >= Date.parse(due), 'a due time was early')
    made.set(schedule, [...(made.get(schedule) ?? []), due])
  }
  for (const [schedule, wanted] of wantedUpTo(newest_ms)) {
    const texts = wanted.map((ms) => new Date(ms).toISOString().replace('.000Z', 'Z'))
    assert.deepEqual(made.get(schedule), texts, schedule)
  }
}

/** By the offsets of the zones; a local time that is skipped is due at the end of the gap. */
function wantedUpTo(newest_ms: number): Map<string, number[]> {
  const wanted = new Map<string, number[]>()
  for (const { id, at_ms, until, before_h } of daily) {
    const changes_ms = Date.parse(until)
    const first_ms = Date.parse('2026-03-01T00:00:00Z') + at_ms
    const times: number[] = []
    for (let day = 0; day < 2 * days; day++) {
      const local_ms = first_ms + day * day_ms
      const before_ms = local_ms - before_h * hour_ms
      const after_ms = before_ms - hour_ms
      const ms = before_ms < changes_ms ? before_ms : Math.max(after_ms, changes_ms)
      if (ms > began_ms && ms <= newest_ms) times.push(ms)
    }
    wanted.set(id, times)
  }
  const often: number[] = []
  for (let ms = began_ms + every_ms; ms <= newest_ms; ms += every_ms) often.push(ms)
  return wanted.set('often', often)
}
