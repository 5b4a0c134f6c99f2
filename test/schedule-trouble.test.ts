/**
 * Schedules when something is in the way: a crash before or after the commit of a due time, a full
 * disk, a process that takes no tasks, a create that is refused.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Engine } from '../src/engine/api.ts'
import type { ScheduleInput } from '../src/engine/schedule-api.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn, settled } from './support/model-setup.ts'
import { hour_ms, job, madeBy, pass, tasksOf, withBed } from './support/schedule-setup.ts'

describe('a crash', () => {
  /** [when, how often the due time has its task right after it] */
  const rows = [
    ['before the commit of a due time', 0],
    ['after the commit of a due time', 1],
  ] as const
  for (const [when, made] of rows) {
    it(`${when}: it has one task after the next opening`, async () => {
      const below = memoryTree()
      let is_crashed = false
      const tree: Tree = {
        ...below,
        async commit(changes) {
          if (is_crashed && made === 1) await below.commit(changes)
          if (is_crashed) throw new Error('the machine has crashed')
          await below.commit(changes)
        },
      }
      const clock = fakeClock(Date.parse('2026-01-01'))
      const engine = await engineOn(tree, { clock })
      await engine.putProcess(job)
      await engine.schedule({ id: 's', cron: '0 * * * *', conv_id: 'job' })
      is_crashed = true
      clock.advance(hour_ms)
      while (engine.health() !== 'store_failed') {
        await new Promise((resolve) => setImmediate(resolve))
      }
      await engine.close().catch(() => {})
      is_crashed = false
      const again = await engineOn(tree, { clock, timers: false })
      assert.equal((await tasksOf(again)).length, made)
      await again.close()
      const last = await engineOn(tree, { clock })
      while ((await last.schedules.show('s')).last === undefined) {
        await new Promise((resolve) => setImmediate(resolve))
      }
      assert.deepEqual(await madeBy(last, 's'), ['2026-01-01T01:00:00Z'])
      assert.deepEqual((await last.check()).breaches, [])
      await last.close()
    })
  }

  it('a full disk delays a due time, and it is made once there is room', async () => {
    const below = memoryTree()
    let free_bytes = 2 ** 30
    const clock = fakeClock(Date.parse('2026-01-01'))
    const engine = await engineOn({ ...below, freeBytes: () => free_bytes }, { clock })
    await engine.putProcess(job)
    await engine.schedule({ id: 's', cron: '0 * * * *', conv_id: 'job' })
    free_bytes = 0
    clock.advance(hour_ms)
    for (let n = 0; n < 10; n++) {
      clock.advance(1_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.equal((await engine.schedules.show('s')).last, undefined)
    await assert.rejects(engine.schedules.run('s'), { code: 'no_space' })
    free_bytes = 2 ** 30
    while ((await engine.schedules.show('s')).last === undefined) {
      clock.advance(1_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.deepEqual(await madeBy(engine, 's'), ['2026-01-01T01:00:00Z'])
    await engine.close()
  })
})

describe('a refused due time', () => {
  const s: ScheduleInput = { id: 's', cron: '0 * * * *', conv_id: 'job', catch_up: 'all' }
  const waiting = {
    obj_id: 'job',
    scheme: {
      nodes: [
        { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'w' }] } },
        {
          id: 'w',
          obj_type: 0,
          condition: { logics: [{ type: 'api_callback' }, { type: 'go', to_node_id: 'e' }] },
        },
        { id: 'e', obj_type: 2, options: { save_task: true } },
      ],
    },
  }
  /** [what is wrong, the code, what makes it so, what ends it, the due times made afterwards] */
  const rows: readonly (readonly [
    string,
    string,
    (engine: Engine) => Promise<unknown>,
    (engine: Engine) => Promise<unknown>,
    readonly string[],
  ])[] = [
    [
      'its data does not fit the parameters',
      'wrong_validate_params',
      (engine) => engine.schedule({ ...s, data: { n: 'x' } }),
      (engine) => engine.schedule(s),
      ['03:00:00'],
    ],
    [
      'its ref is taken',
      'not_unical_ref',
      async (engine) => {
        await engine.schedule(s)
        await engine.putProcess(waiting, { moves: { end: 'e' } })
        for (const hour of [1, 2]) {
          const ref = `s@2026-01-01T0${hour}:00:00Z`
          assert.equal((await engine.create({ conv_id: 'job', ref, data: { n: 1 } })).proc, 'ok')
        }
      },
      (engine) => engine.putProcess(job, { moves: { w: 'end', e: 'end' } }),
      ['01:00:00', '02:00:00', '03:00:00'],
    ],
    [
      'the process is paused',
      'conveyor_is_not_active',
      async (engine) => {
        await engine.schedule(s)
        await engine.processes.pause('job')
      },
      (engine) => engine.processes.resume('job'),
      ['01:00:00', '02:00:00', '03:00:00'],
    ],
    [
      'the process has gone',
      'conv_not_found',
      async (engine) => {
        await engine.schedule(s)
        await engine.processes.remove('job')
      },
      (engine) => engine.putProcess(job),
      ['01:00:00', '02:00:00', '03:00:00'],
    ],
  ]
  for (const [what, proc, begin, end, made] of rows) {
    it(`${what}: is recorded`, () =>
      withBed(async (bed, engine) => {
        await begin(engine)
        await pass(bed, 2 * hour_ms, hour_ms)
        const { last } = await engine.schedules.show('s')
        assert.equal(last?.proc, proc)
        assert.ok(last.description)
        await end(engine)
        await settled(bed.clock)
        await pass(bed, hour_ms)
        const wanted = made.map((time) => `2026-01-01T${time}Z`)
        assert.deepEqual(await madeBy(engine, 's'), wanted)
        return engine
      }))
  }
})
