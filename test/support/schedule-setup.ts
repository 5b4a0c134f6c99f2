/**
 * What the tests of schedules share: a process that only keeps tasks, an engine in which it is 2026,
 * and the due times that a schedule has made.
 */
import assert from 'node:assert/strict'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import type { ScheduleInput } from '../../src/engine/api/schedule-api.ts'
import { type Harness, memoryHarness, settled } from './model-setup.ts'
import { tasksOf as listOf } from './tasks-of.ts'

export const minute_ms = 60_000
export const hour_ms = 60 * minute_ms
export const day_ms = 24 * hour_ms

/** Its tasks end where they are kept; an `n` must be a number. */
export const job = {
  obj_id: 'job',
  params: [{ name: 'n', type: 'number', regex: '', regex_error_text: '', flags: ['input'] }],
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'end' }] } },
      { id: 'end', obj_type: 2, options: { save_task: true } },
    ],
  },
}

/** Schedules of each kind, of which no due time may be left out. */
export const scheduled: readonly ScheduleInput[] = [
  { id: 'kyiv', cron: '*/5 * * * * *', timezone: 'Europe/Kyiv', conv_id: 'job', catch_up: 'all' },
  { id: 'minutes', cron: '* * * * *', conv_id: 'job', catch_up: 'all' },
  { id: 'often', every_ms: 12_001, conv_id: 'job', catch_up: 'all' },
]

export async function withHarness(
  fn: (harness: Harness, engine: Engine) => Promise<Engine>,
  options = {},
): Promise<void> {
  const harness = memoryHarness({ limits: { ended_kept_ms: 1_000 * day_ms }, ...options })
  const engine = await harness.open()
  await engine.processes.put(job)
  harness.clock.set(Date.parse('2026-01-01T00:00:00Z'))
  const last = await fn(harness, engine)
  assert.deepEqual((await last.check()).breaches, [])
  await last.close()
}

/** The tasks of the job, in the order of their creation. */
export async function tasksOf(engine: Engine) {
  const tasks = await listOf(engine, 'job', { status: 'processed', limit: 100_000 })
  return tasks.sort((one, other) => (one.obj_id < other.obj_id ? -1 : 1))
}

/** The refs of the tasks of a schedule without its id. */
export async function madeBy(engine: Engine, id: string): Promise<string[]> {
  const refs = (await tasksOf(engine)).map(({ ref }) => ref ?? '')
  return refs.filter((ref) => ref.startsWith(`${id}@`)).map((ref) => ref.slice(id.length + 1))
}

/** Time passes in steps, and after each everything due is done. */
export async function pass(harness: Harness, ms: number, step_ms = ms): Promise<void> {
  for (let left = ms; left > 0; left -= step_ms) {
    harness.clock.advance(Math.min(left, step_ms))
    await settled(harness.clock)
  }
}
