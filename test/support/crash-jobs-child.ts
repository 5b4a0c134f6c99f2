/**
 * Creates tasks that make calls, run code and call a handler, until it is killed:
 * `crash-jobs-child PATH URL`. Prints a line for each acknowledgement and each call of the handler.
 */
import { writeSync } from 'node:fs'
import { openEngine } from '../../src/open.ts'
import { type ChildReport, conv_id, handled, handlerThat, putProcesses } from './crash-jobs.ts'

const [path = '', url = ''] = process.argv.slice(2)
const send = (report: ChildReport): unknown => writeSync(1, `${JSON.stringify(report)}\n`)
const engine = await openEngine(path, { allow_hosts: [new URL(url).host] })
engine.handle(
  handled,
  handlerThat((obj_id) => send({ handled: obj_id })),
)
await putProcesses(engine, url)
for (;;) {
  const create = { type: 'create', obj: 'task', conv_id, data: { changes: 0 } }
  const results = await engine.apply([create, create, create])
  send({ made: results.map(({ obj_id }) => obj_id as string) })
  await new Promise((resolve) => setTimeout(resolve, 10))
}
