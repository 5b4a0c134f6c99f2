/**
 * A close waits for handlers under way: what they return in time is kept, what they need of the
 * engine works, nothing else begins, and what was cut off begins again under the same key.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Handler } from '../src/engine/api/handler-api.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import {
  atNode,
  by_kind,
  by_title,
  created,
  failure,
  go,
  linesLogger,
  type Opened,
  opened,
  processWith,
  taskOf,
  turns,
  until,
  waiting,
} from './support/handler-harness.ts'
import { healthOf } from './support/health.ts'

const drain_ms_max = 20_000
const limits = { drain_ms_max }

/** A handler whose calls the test answers; each has the key and the signal that it got. */
function patient() {
  const calls: {
    readonly key: string
    readonly signal: AbortSignal
    answer(given?: unknown): void
    fail(error: unknown): void
  }[] = []
  const handler: Handler = (_task, { key, signal }) =>
    new Promise((answer, fail) => calls.push({ key, signal, answer, fail }))
  return { calls, handler }
}

/** An engine in the middle of a close, whose one handler is under way. */
async function inClose(more: Parameters<typeof opened>[0] = {}) {
  const harness = await opened({ limits, ...more })
  const { engine } = harness
  const { calls, handler } = patient()
  engine.handle('db_call', handler)
  await engine.processes.put(by_kind)
  const obj_id = await created(engine, { a: 1 }, 'r')
  await until(() => calls.length === 1)
  let is_closed = false
  const closed = engine.close().then(() => {
    is_closed = true
  })
  await turns(20)
  assert.equal(is_closed, false)
  const [call] = calls
  assert.ok(call)
  return { ...harness, closed, call, obj_id }
}

async function codeOf(done: Promise<unknown>): Promise<string> {
  return done.then(
    () => 'ok',
    ({ code }: { code: string }) => code,
  )
}

/** Opens again and returns the keys that the handler is called with until the task is done. */
async function keysAfter({ harness }: Opened, obj_id: string): Promise<string[]> {
  const keys: string[] = []
  const note: Handler = (_task, { key }) => {
    keys.push(key)
  }
  const engine = await harness.open({ handlers: { db_call: note } })
  await atNode(engine, obj_id, 'done')
  await turns(20)
  assert.deepEqual((await engine.check()).breaches, [])
  await engine.close()
  return keys
}

test('a handler that returns before the drain is over is never called again', async () => {
  const all = await inClose()
  const { engine, call, closed, clock, obj_id } = all
  assert.equal(engine.close(), engine.close())
  assert.equal(healthOf(engine), 'shutting_down')
  const served = servedEngine(engine).submit([], {})
  await assert.rejects(served, { code: 'format_error' })
  const op = { type: 'show', conv_id: '1', ref: { text: 'r', is_number: false } } as const
  const show = { ...op, id_text: undefined, obj_id: undefined }
  assert.equal(await codeOf(servedEngine(engine).submit([show], {})), 'shutting_down')
  clock.advance(drain_ms_max - 1)
  const modified = await engine.modify({ conv_id: 1, ref: 'r', data: { noted: true } })
  assert.deepEqual([modified.proc, modified.resumed], ['ok', false])
  assert.equal((await engine.create({ conv_id: 1, data: {} })).proc, 'ok')
  assert.equal((await engine.task({ conv_id: 1, ref: 'r' }))?.node_id, 'work')
  assert.equal(call.signal.aborted, false)
  call.answer({ charged: true })
  await closed
  assert.equal(await codeOf(engine.create({ conv_id: 1, data: {} })), 'shutting_down')
  const keys = await keysAfter(all, obj_id)
  assert.ok(!keys.includes(call.key))
  assert.equal(keys.length, 1, 'the task that was created meanwhile')
})

// [what the handler does once its signal is aborted, whether it is called again]
const late: [
  does: string,
  (call: { answer(given: unknown): void; fail(e: unknown): void }) => void,
  boolean,
][] = [
  ['returns', (call) => call.answer({ charged: true }), false],
  ['throws', (call) => call.fail(new Error('aborted')), true],
  ['returns no JSON', (call) => call.answer(1), true],
  ['never ends', () => {}, true],
]
for (const [does, end, is_called_again] of late) {
  test(`a handler that ${does} when the close aborts it is ${is_called_again ? '' : 'not '}called again`, async () => {
    const logger = linesLogger()
    const all = await inClose({ logger })
    const { call, clock, closed, obj_id } = all
    clock.advance(drain_ms_max)
    await until(() => call.signal.aborted)
    end(call)
    if (does === 'never ends') {
      await turns(20)
      clock.advance(1_000)
    }
    await closed
    const fields = { conv_id: '1', obj_id, node_id: 'work', handler: 'db_call' }
    assert.deepEqual(logger.lines, [['warn', { event: 'job_aborted', ...fields }]])
    const keys = await keysAfter(all, obj_id)
    assert.deepEqual(keys, is_called_again ? [call.key] : [])
    call.answer({ too: 'late' })
    await turns(20)
  })
}

test('a failed attempt counts during the drain, and its next one is made at the next opening', async () => {
  const logger = linesLogger()
  const { harness, call, clock, closed, obj_id } = await inClose({ logger })
  call.fail(new Error('no line'))
  await closed
  assert.equal(logger.lines.length, 1)
  let calls = 0
  await using next = await harness.open({
    handlers: {
      db_call: {
        handler() {
          calls++
          throw new Error('no line again')
        },
        attempts_max: 2,
      },
    },
  })
  await turns(20)
  assert.equal(calls, 0, 'not before its time')
  clock.advance(1_000)
  const { data } = await atNode(next, obj_id, 'failed')
  assert.deepEqual(data, { a: 1, ...failure('handler_error', 'no line again', 'hardware') })
  assert.equal(calls, 1)
})

test('what a handler did for a paused process is told at the close, and done again', async () => {
  const logger = linesLogger()
  const { harness, engine } = await opened({ limits, logger })
  const { calls, handler } = patient()
  engine.handle('db_call', handler)
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  await until(() => calls.length === 1)
  await engine.processes.pause(1)
  calls[0]?.answer({ charged: true })
  await turns(20)
  await engine.close()
  const fields = { conv_id: '1', obj_id, node_id: 'work', handler: 'db_call' }
  assert.deepEqual(logger.lines.slice(1), [['warn', { event: 'job_postponed', ...fields }]])
  await using next = await harness.open({ handlers: { db_call: handler } })
  await turns(20)
  assert.equal(calls.length, 1)
  await next.processes.resume(1)
  await until(() => calls.length === 2)
  assert.equal(calls[1]?.key, calls[0]?.key)
  calls[1]?.answer({})
  await atNode(next, obj_id, 'done')
})

test('a drain starts no job, no timer and no hand-over', async () => {
  const { engine, call, clock, closed, harness } = await inClose()
  const semaphors = [{ type: 'time', value: 5, to_node_id: 'failed' }]
  await engine.processes.put(processWith(waiting, {}, { obj_id: 2, title: 'Late' }))
  await engine.processes.put(processWith([], { semaphors }, { obj_id: 3 }))
  await engine.processes.put({ ...by_kind, obj_id: 4 })
  const made: [string, number][] = []
  for (const conv_id of [2, 3, 4])
    made.push([await created(engine, {}, undefined, conv_id), conv_id])
  engine.handle('Late', () => ({}))
  clock.advance(6_000)
  await turns(50)
  for (const [obj_id, conv_id] of made) {
    assert.equal((await taskOf(engine, obj_id, conv_id)).node_id, 'work')
  }
  call.answer({})
  await closed
  await using next = await harness.open({ handlers: { Late: () => ({}), db_call: () => ({}) } })
  for (const [obj_id, conv_id] of made) {
    await atNode(next, obj_id, conv_id === 3 ? 'failed' : 'done', conv_id)
  }
})

test('a close without work under way asks no clock', async () => {
  const { engine } = await opened({ limits })
  engine.handle('Charge', () => ({}))
  await engine.processes.put(by_title)
  await engine.processes.put({ ...processWith([{ type: 'api_callback' }, go('done')]), obj_id: 2 })
  await atNode(engine, await created(engine), 'done')
  await turns(20)
  await engine.close()
})
