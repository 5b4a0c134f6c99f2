/**
 * Schedules when something is in the way: a crash before or after the commit of a due time, a full
 * disk, a process that takes no tasks, a create that is refused.
 */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { scheduleKey } from '../src/codec/keys.ts'
import { decodeRecord, encodeRecord, type ScheduleRecord } from '../src/codec/records.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import type { ScheduleInput } from '../src/engine/api/schedule-api.ts'
import { dueTimesOf, utcText } from '../src/engine/schedules/schedule-input.ts'
import { openEngine } from '../src/open.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { healthOf } from './support/health.ts'
import { engineOn, settled } from './support/model-setup.ts'
import { node } from './support/processes.ts'
import {
  hour_ms,
  job,
  madeBy,
  pass,
  scheduled,
  tasksOf,
  withHarness,
} from './support/schedule-setup.ts'
import { buildChild } from './support/store-child.ts'

const kills = process.env.CONVEYOR_SLOW === '1' ? 100 : 3

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
      await engine.processes.put(job)
      await engine.schedules.put({ id: 's', cron: '0 * * * *', conv_id: 'job' })
      is_crashed = true
      clock.advance(hour_ms)
      while (healthOf(engine) !== 'store_failed') {
        await new Promise((resolve) => setImmediate(resolve))
      }
      await engine.close().catch(() => {})
      is_crashed = false
      const again = await engineOn(tree, { clock, background: false })
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

  it('after a kill, again and again: no due time is missing, and none has two tasks', async (t) => {
    const child = await buildChild('crash-schedules-child.ts')
    const path = join(child.folder, 'tasks.lmdb')
    const args = [child.script, path, String(Date.now())]
    try {
      for (let round = 0; round < kills; round++) {
        const running = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
        const ended = once(running, 'exit')
        // In the last round not before each schedule has had a due time.
        const word = round === kills - 1 ? 'made' : 'ready'
        const told = new Promise<void>((resolve) =>
          running.stdout.on('data', (text) => String(text).includes(word) && resolve()),
        )
        await Promise.race([told, ended])
        setTimeout(() => running.kill('SIGKILL'), 200 * Math.random())
        assert.equal((await ended)[1], 'SIGKILL')
      }
      const engine = await openEngine(path, { background: false })
      let due_times = 0
      for (const { id, cron, every_ms, timezone = 'UTC' } of scheduled) {
        const made = await madeBy(engine, id)
        const first_ms = Date.parse(made[0] ?? '')
        const definition = cron === undefined ? { every_ms, timezone } : { cron, timezone }
        const times = dueTimesOf(definition as { timezone: string }, first_ms)
        const wanted = made.slice(0, 1)
        for (
          let ms = times.after(first_ms) ?? 0;
          wanted.length < made.length;
          ms = times.after(ms) ?? 0
        ) {
          wanted.push(utcText(ms))
        }
        assert.deepEqual(made, wanted, id)
        assert.equal((await engine.schedules.show(id)).last?.due_ms, Date.parse(made.at(-1) ?? ''))
        due_times += made.length
      }
      assert.deepEqual((await engine.check()).breaches, [])
      await engine.close()
      t.diagnostic(`${kills} kills: ${due_times} due times, each with one task`)
    } finally {
      await child.remove()
    }
  })

  it('a schedule on which the engine throws is paused, and the others go on', async () => {
    const tree = memoryTree()
    const clock = fakeClock(Date.parse('2026-01-01'))
    const bugs: unknown[] = []
    const first = await engineOn(tree, { clock, background: false })
    await first.processes.put(job)
    for (const id of ['s', 'bad', 't'])
      await first.schedules.put({ id, cron: '0 * * * *', conv_id: 'job' })
    // As a Node without this zone would find it.
    const record = decodeRecord<ScheduleRecord>(tree.get(scheduleKey('bad')) as Buffer)
    await tree.commit(
      changesOf([[scheduleKey('bad'), encodeRecord({ ...record, timezone: 'Europe/Nowhere' })]]),
    )
    const engine = await engineOn(tree, { clock, onBug: (error) => bugs.push(error) })
    clock.advance(hour_ms)
    while ((await engine.schedules.show('bad')).state !== 'paused') {
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.equal((await engine.schedules.show('bad')).last?.proc, 'internal_error')
    for (const id of ['s', 't'])
      assert.deepEqual(await madeBy(engine, id), ['2026-01-01T01:00:00Z'])
    assert.equal(bugs.length, 1)
    assert.deepEqual((await engine.check()).breaches, [])
    await engine.close()
  })

  it('a full disk delays a due time, and it is made once there is room', async () => {
    const below = memoryTree()
    let free_bytes = 2 ** 30
    const clock = fakeClock(Date.parse('2026-01-01'))
    const engine = await engineOn({ ...below, freeBytes: () => free_bytes }, { clock })
    await engine.processes.put(job)
    await engine.schedules.put({ id: 's', cron: '0 * * * *', conv_id: 'job' })
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
        node('w', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'e' }]),
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
      (engine) => engine.schedules.put({ ...s, data: { n: 'x' } }),
      (engine) => engine.schedules.put(s),
      ['03:00:00'],
    ],
    [
      'its ref is taken',
      'not_unical_ref',
      async (engine) => {
        await engine.schedules.put(s)
        await engine.processes.put(waiting, { moves: { end: 'e' } })
        for (const hour of [1, 2]) {
          const ref = `s@2026-01-01T0${hour}:00:00Z`
          assert.equal((await engine.create({ conv_id: 'job', ref, data: { n: 1 } })).proc, 'ok')
        }
      },
      (engine) => engine.processes.put(job, { moves: { w: 'end', e: 'end' } }),
      ['01:00:00', '02:00:00', '03:00:00'],
    ],
    [
      'the process is paused',
      'conveyor_is_not_active',
      async (engine) => {
        await engine.schedules.put(s)
        await engine.processes.pause('job')
      },
      (engine) => engine.processes.resume('job'),
      ['01:00:00', '02:00:00', '03:00:00'],
    ],
    [
      'the process has gone',
      'conv_not_found',
      async (engine) => {
        await engine.schedules.put(s)
        await engine.processes.remove('job')
      },
      (engine) => engine.processes.put(job),
      ['01:00:00', '02:00:00', '03:00:00'],
    ],
  ]
  for (const [what, proc, begin, end, made] of rows) {
    it(`${what}: is recorded`, () =>
      withHarness(async (harness, first) => {
        await first.close()
        const lines: object[] = []
        const warn = (fields: object) => lines.push(fields)
        const engine = await harness.open({ logger: { debug() {}, info() {}, warn, error: warn } })
        await begin(engine)
        await pass(harness, 2 * hour_ms, hour_ms)
        const { last } = await engine.schedules.show('s')
        assert.equal(last?.proc, proc)
        assert.ok(last.description)
        const { due_ms, ref } = last
        const line = { event: 'schedule_refused', schedule: 's', due_ms, ref, code: proc }
        assert.deepEqual(lines.at(-1), line)
        await end(engine)
        await settled(harness.clock)
        await pass(harness, hour_ms)
        const wanted = made.map((time) => `2026-01-01T${time}Z`)
        assert.deepEqual(await madeBy(engine, 's'), wanted)
        return engine
      }))
  }
})
