/**
 * An approval with reminders: a request waits for a person, who is reminded each day, at most twice;
 * then it goes to the manager's list. The clock is moved here as in a test.
 */
import { openEngine } from 'conveyor-engine'
import { after, callback, defineProcess, end, go, setData, when } from 'conveyor-engine/define'
import { settled, testClock } from 'conveyor-engine/testing'

const approval = defineProcess({
  id: 'approval',
  nodes: {
    start: [setData({ reminders: 0 }), go('wait')],
    wait: [
      callback(),
      when('approved', 'eq', true).go('approved'),
      go('refused'),
      after({ days: 1 }).go('due'),
    ],
    due: [when('reminders', 'eq', 2).go('escalated'), go('remind')],
    remind: [
      callback({ error: 'wait' }), // the handler below; a mail that fails must not end the request
      setData({ reminders: '$.math({{reminders}}+1)' }, { types: { reminders: 'number' } }),
      go('wait'),
    ],
    approved: end({ save: true }),
    refused: end({ save: true }),
    escalated: end({ save: true }),
  },
})

const mails = []
const handlers = {
  'approval/remind': async ({ ref }) => {
    mails.push(ref)
    return {}
  },
}

const clock = testClock()
const engine = await openEngine(':memory:', { clock, handlers })
await engine.processes.put(approval)
const day_ms = 86_400_000
for (const ref of ['quick', 'slow']) await engine.create({ conv_id: 'approval', ref, data: {} })
await settled(engine)
await engine.modify({ conv_id: 'approval', ref: 'quick', data: { approved: true } })
for (let day = 1; day <= 3; day++) {
  clock.advance(day_ms)
  await settled(engine)
}
for (const ref of ['quick', 'slow']) {
  const { node_id, data } = await engine.result({ conv_id: 'approval', ref })
  console.log(ref, node_id, data.reminders)
}
console.log(mails.join(' '))
await engine.close()
