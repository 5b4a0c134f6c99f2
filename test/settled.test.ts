/**
 * `settled`: after it a test sees everything that its clock and its calls have caused, and nothing
 * that is due later.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { after, callback, defineProcess, end, go, runCode } from '../src/define.ts'
import { openEngine } from '../src/index.ts'
import { settled, testClock } from '../src/testing.ts'

const order = defineProcess({
  id: 7,
  nodes: {
    start: go('charge'),
    charge: [callback(), go('ship')],
    ship: [callback(), after({ days: 2 }).go('count')],
    count: [runCode('data.counted = true'), go('done')],
    done: end({ save: true }),
  },
})

/** [what, the calls of `charge` that fail, milliseconds to pass, where the task is then, calls] */
// biome-ignore format: a table
const rows: readonly (readonly [string, number, readonly number[], string, number])[] = [
  ['a handler has answered',                             0, [],                        'delayed ship',   1],
  ['a later attempt is not waited for',                  1, [],                        'delayed charge', 1],
  ['the next attempt has been made',                     1, [1_000],                   'delayed ship',   2],
  ['the last attempt has failed',                        2, [1_000],                   'failed charge',  2],
  ['a timer has fired, and the code behind it has run',  0, [2 * 86_400_000],          'processed done', 1],
  ['all of it, one after the other',                     1, [1_000, 2 * 86_400_000],   'processed done', 2],
]
for (const [what, failures, steps, where, calls_wanted] of rows) {
  test(what, async () => {
    const clock = testClock()
    const engine = await openEngine(':memory:', { clock })
    let calls = 0
    const charge = async (): Promise<object> => {
      await new Promise((resolve) => setTimeout(resolve, 2))
      if (++calls <= failures) throw new Error('the bank is closed')
      return {}
    }
    engine.handle('charge', charge, { attempts_max: 2, backoff_ms: 1_000 })
    await engine.processes.put(order)
    const { obj_id } = await engine.create({ conv_id: 7, data: {} })
    await settled(engine)
    for (const by_ms of steps) {
      clock.advance(by_ms)
      await settled(engine)
    }
    const task = await engine.task({ conv_id: 7, obj_id: obj_id ?? '' })
    assert.deepEqual([`${task?.status} ${task?.node_id}`, calls], [where, calls_wanted])
    await engine.close()
    await settled(engine)
  })
}

test('schedules that were due have made their tasks, and those are handled', async () => {
  const clock = testClock()
  const engine = await openEngine(':memory:', { clock, handlers: { charge: () => ({}) } })
  await engine.processes.put(order)
  await engine.schedules.put({ id: 'hourly', every_ms: 3_600_000, conv_id: 7, catch_up: 'all' })
  clock.advance(10 * 3_600_000)
  await settled(engine)
  assert.equal((await engine.tasks.count({ conv_id: 7, node_id: 'ship' })).total, 10)
  await engine.close()
})
