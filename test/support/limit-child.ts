/**
 * Creates tasks at a limit of two for each customer and has each call a server, until it is killed:
 * `limit-child PATH PORT COUNT`. Once no task is left it prints what `check` finds.
 */
import { writeSync } from 'node:fs'
import { callback, defineProcess, end, go, limited } from '../../src/define.ts'
import { openEngine } from '../../src/open.ts'

const [path = '', port = '0', count = '0'] = process.argv.slice(2)
const engine = await openEngine(path, {
  limits: { jobs_max: 64 },
  handlers: {
    charge: {
      threads_max: 64,
      async handler({ data }) {
        const { customer } = data as { customer: number }
        await (await fetch(`http://127.0.0.1:${port}/${customer}`)).text()
      },
    },
  },
})
await engine.processes.put(
  defineProcess({
    id: 'orders',
    nodes: {
      start: go('charge'),
      charge: [limited([{ key: '{{customer}}', at_once: 2 }], callback()), go('done')],
      done: end(),
    },
  }),
)
writeSync(1, 'begun\n')
const creates = Array.from({ length: Number(count) }, (_, n) =>
  engine.create({ conv_id: 'orders', data: { customer: n % 10 } }),
)
await Promise.all(creates)
while ((await engine.tasks.count({ conv_id: 'orders', status: 'live' })).total > 0) {
  await new Promise((resolve) => setTimeout(resolve, 5))
}
const { breaches, counts } = await engine.check()
writeSync(1, `${JSON.stringify([breaches, counts.limit, counts.slot, counts.task_slot])}\n`)
await engine.close()
