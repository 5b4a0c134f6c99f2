/**
 * A webhook sender with a rate for each receiver: two deliveries a second to one host, others in
 * line without a thread; a receiver that fails is tried again, then kept for a person.
 */
import { openEngine } from 'conveyor-engine'
import { callback, defineProcess, end, go, limited } from 'conveyor-engine/define'
import { settled, testClock } from 'conveyor-engine/testing'

const webhook = defineProcess({
  id: 'webhook',
  nodes: {
    start: go('send'),
    send: [
      limited([{ key: '{{host}}', rate: 2, per_s: 1 }], callback({ error: 'not delivered' })),
      go('delivered'),
    ],
    delivered: end(),
    'not delivered': end({ save: true }),
  },
})

const sent = new Map()
const clock = testClock()
const handlers = {
  'webhook/send': {
    ...{ attempts_max: 3, backoff_ms: 10 },
    // In production a fetch with the key as Idempotency-Key, which throws unless the answer is 2xx.
    async handler({ data }) {
      if (data.host === 'down.example') throw new Error('503')
      sent.set(data.host, (sent.get(data.host) ?? 0) + 1)
      return {}
    },
  },
}
const engine = await openEngine(':memory:', { clock, handlers })
await engine.processes.put(webhook)
const hosts = ['a.example', 'b.example', 'a.example', 'a.example', 'a.example', 'down.example']
for (const [at, host] of hosts.entries()) {
  await engine.create({ conv_id: 'webhook', ref: `event-${at}`, data: { host } })
}
await settled(engine)
console.log('at once', sent.get('a.example'), sent.get('b.example'))
for (let s = 1; s <= 3; s++) {
  clock.advance(1_000)
  await settled(engine)
}
console.log('later', sent.get('a.example'))
const failed = await engine.result({ conv_id: 'webhook', ref: 'event-5' })
console.log(failed.node_id)
await engine.close()
