/**
 * From BullMQ. A queue becomes a process with one node, a worker its handler:
 *
 *     new Queue('mail').add('welcome', data, { jobId, delay, attempts: 3, backoff })
 *     new Worker('mail', async (job) => …, { concurrency: 5 })
 *
 * `jobId` is the ref, also while the task lives only; `delay` is a node with a timer; a failed job
 * is a task in the node `failed`. Jobs that Redis still has are created by their ids, below: created
 * twice, as here, each is sent once.
 */
import { openEngine } from 'conveyor-engine'
import { atTime, callback, defineProcess, end, go } from 'conveyor-engine/define'
import { settled, testClock } from 'conveyor-engine/testing'

const mail = defineProcess({
  id: 'mail',
  nodes: {
    start: go('delayed'),
    delayed: atTime('{{due_s}}').go('send'),
    send: [callback({ error: 'failed' }), go('done')],
    done: end(),
    failed: end({ save: true }),
  },
})

const sent = []
const handlers = {
  'mail/send': {
    ...{ attempts_max: 3, backoff_ms: 1_000, threads_max: 5 },
    async handler({ ref, data }) {
      sent.push(`${ref} to ${data.to}`)
      return {}
    },
  },
}
const clock = testClock()
const engine = await openEngine(':memory:', { clock, handlers })
await engine.processes.put(mail)

// As `await queue.getJobs(['waiting', 'delayed'])` gives them, with the worker stopped.
const jobs = [
  { id: '17', data: { to: 'a@example.org' }, timestamp: clock.now_ms(), delay: 0 },
  { id: '18', data: { to: 'b@example.org' }, timestamp: clock.now_ms(), delay: 60_000 },
]
for (let times = 0; times < 2; times++) {
  for (const { id, data, timestamp, delay } of jobs) {
    const due_s = Math.ceil((timestamp + delay) / 1_000)
    const { proc } = await engine.create({ conv_id: 'mail', ref: id, data: { ...data, due_s } })
    console.log(id, proc)
  }
}
for (const ms of [1_000, 60_000]) {
  clock.advance(ms)
  await settled(engine)
  console.log(sent.join(', '))
}
await engine.close()
