/**
 * A nightly batch: a schedule makes one task at two o'clock, whose handler makes a task for each
 * invoice; each reports to the batch, which ends when the last has, with their sum. The refs make
 * the fan-out repeatable: a second attempt makes no second task.
 */
import { openEngine } from 'conveyor-engine'
import {
  after,
  callback,
  defineProcess,
  end,
  go,
  modifyTask,
  setData,
  when,
} from 'conveyor-engine/define'
import { settled, testClock } from 'conveyor-engine/testing'

const batch = defineProcess({
  id: 'batch',
  nodes: {
    start: [setData({ done: 0, total: 0 }), go('fan out')],
    'fan out': [callback(), go('collect')],
    collect: [callback(), go('add')],
    add: [
      setData(
        { done: '$.math({{done}}+1)', total: '$.math({{total}}+{{price}})' },
        { types: { done: 'number', total: 'number' } },
      ),
      when('done', 'less', '{{parts}}', 'number').go('collect'),
      go('summed'),
    ],
    summed: end({ save: true }),
  },
})
const part = defineProcess({
  id: 'part',
  nodes: {
    start: go('price'),
    price: [callback(), go('report')],
    // Refused while the batch still fans out: then again after a second.
    report: [
      modifyTask('batch', '{{batch}}', {
        ...{ data: { price: '{{price}}' }, types: { price: 'number' } },
        ...{ is_sync: true, error: 'pause' },
      }),
      go('done'),
    ],
    pause: [after({ seconds: 1 }).go('report')],
    done: end(),
  },
})

const amounts = [100, 250, 50]
const clock = testClock()
const engine = await openEngine(':memory:', { clock })
engine.handle('batch/fan out', async ({ ref }) => {
  for (const [at, amount] of amounts.entries()) {
    await engine.create({ conv_id: 'part', ref: `${ref}/${at}`, data: { batch: ref, amount } })
  }
  return { parts: amounts.length }
})
engine.handle('part/price', async ({ data }) => ({ price: data.amount * 2 }))
for (const one of [batch, part]) await engine.processes.put(one)
await engine.schedules.put({
  ...{ id: 'nightly', cron: '0 2 * * *', timezone: 'Europe/Kyiv' },
  conv_id: 'batch',
})
const { next_ms } = await engine.schedules.show('nightly')
clock.advance(next_ms - clock.now_ms())
await settled(engine)
clock.advance(1_000)
await settled(engine)
const { last } = await engine.schedules.show('nightly')
const { node_id, data } = await engine.result({ conv_id: 'batch', obj_id: last.obj_id })
console.log(node_id, data.done, data.total)
await engine.close()
