/**
 * From a cron table: each line becomes a schedule and a process of its own. What is new: a run is a
 * task with its history, a failure is tried again, and a time missed while nothing ran is made up.
 */
import { openEngine } from 'conveyor-engine'
import { callback, defineProcess, end, go } from 'conveyor-engine/define'
import { settled, testClock } from 'conveyor-engine/testing'

const table = `
# m h dom mon dow  command
30 4 * * *         vacuum
*/15 * * * 1-5     poll
`

const engine_clock = testClock()
const engine = await openEngine(':memory:', { clock: engine_clock })
const commands = { vacuum: async () => {}, poll: async () => {} }
const runs = { vacuum: 0, poll: 0 }

const lines = table.split('\n').filter((line) => /^[^#\s]/.test(line))
for (const line of lines) {
  const [, cron, name] = /^((?:\S+\s+){4}\S+)\s+(\S+)$/.exec(line)
  await engine.processes.put(
    defineProcess({
      id: name,
      nodes: {
        start: go('run'),
        run: [callback({ error: 'failed' }), go('done')],
        done: end(),
        failed: end({ save: true }),
      },
    }),
  )
  engine.handle(`${name}/run`, async () => {
    await commands[name]()
    runs[name]++
    return {}
  })
  // `latest`: of the times missed, the newest one; the same schedule put again changes nothing.
  const schedule = { id: name, cron, timezone: 'Europe/Kyiv', conv_id: name, catch_up: 'latest' }
  console.log(name, (await engine.schedules.put(schedule)).state)
}
for (let quarter = 0; quarter < 96; quarter++) {
  engine_clock.advance(15 * 60_000)
  await settled(engine)
}
console.log(runs.vacuum, runs.poll)
await engine.close()
