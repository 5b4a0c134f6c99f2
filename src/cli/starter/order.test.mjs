import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEngine } from 'conveyor-engine'
import { settled, testClock } from 'conveyor-engine/testing'
import { handlers, order } from './order.mjs'

const clock = testClock()
const engine = await openEngine(':memory:', { clock, handlers })
await engine.processes.put(order)
const create = (ref) => engine.create({ conv_id: 1, ref, data: { amount: 120 } })

test('a paid order is charged', async () => {
  const { obj_id } = await create('paid')
  await engine.modify({ conv_id: 1, ref: 'paid', data: { paid: true } })
  const { node_id, data } = await engine.result({ conv_id: 1, obj_id })
  assert.equal(node_id, 'done')
  assert.match(data.receipt, /^120 charged as /)
})

test('an order without a payment is late after three days', async () => {
  const { obj_id } = await create('late')
  clock.advance(3 * 86_400_000)
  await settled(engine)
  assert.equal((await engine.result({ conv_id: 1, obj_id })).node_id, 'late')
  await engine.close()
})
