/**
 * An agent with tools: the model says which tool is next, each call is a step that is on disk before
 * the next, and what cannot be undone waits for a person. A crash repeats at most the step it hit.
 */
import { openEngine } from 'conveyor-engine'
import { after, callback, defineProcess, end, go, when } from 'conveyor-engine/define'
import { settled } from 'conveyor-engine/testing'

const agent = defineProcess({
  id: 'agent',
  nodes: {
    start: go('think'),
    think: [
      callback({ error: 'failed' }),
      when('next', 'eq', 'search').go('search'),
      when('next', 'eq', 'refund').go('approval'),
      when('next', 'eq', 'answer').go('done'),
      go('failed'), // a tool that it made up
    ],
    search: [callback({ error: 'failed' }), go('think')],
    approval: [
      callback(),
      when('approved', 'eq', true).go('refund'),
      go('refused'),
      after({ days: 2 }).go('refused'),
    ],
    refund: [callback({ error: 'failed' }), go('think')],
    done: end({ save: true }),
    refused: end({ save: true }),
    failed: end({ save: true }),
  },
})

/** In place of a model: it gets what is known so far and names the next tool. */
async function model({ found, refunded }) {
  if (found === undefined) return { next: 'search' }
  if (refunded === undefined) return { next: 'refund', amount: found.amount }
  return { next: 'answer', text: `refunded ${refunded}` }
}

const handlers = {
  'agent/think': ({ data }) => model(data),
  'agent/search': async ({ data }) => ({ found: { order: data.order, amount: 40 } }),
  'agent/refund': async ({ data }, { key }) => ({ refunded: data.amount, refund_key: key }),
}

const engine = await openEngine(':memory:', { handlers })
await engine.processes.put(agent)
const target = { conv_id: 'agent', ref: 'chat-1' }
await engine.create({ ...target, data: { order: 'order-1' } })
await settled(engine)
const asked = await engine.task(target)
console.log(asked.node_id, asked.data.amount)
await engine.modify({ ...target, data: { approved: true } })
const { node_id, data } = await engine.result(target)
console.log(node_id, data.text)
await engine.close()
