/**
 * Lets schedules be due until it is killed: `crash-schedules-child PATH REAL_MS`. Its time runs
 * 2,000 times as fast as real time, since REAL_MS, so it goes on while no child runs.
 */
import { writeSync } from 'node:fs'
import { openEngine } from '../../src/open.ts'
import { job, scheduled } from './schedule-setup.ts'

const speed = 2_000
const [path = '', real_ms = '0'] = process.argv.slice(2)
const now_ms = (): number => Number(real_ms) + (Date.now() - Number(real_ms)) * speed

const engine = await openEngine(path, {
  limits: { catch_up_max: 100_000_000, ended_kept_ms: 1_000_000_000_000 },
  clock: {
    now_ms,
    wake_at(at_ms, fn) {
      const left_ms = Math.min(Math.max(0, at_ms - now_ms()) / speed, 1_000_000)
      const timer = setTimeout(fn, Math.ceil(left_ms))
      return () => clearTimeout(timer)
    },
  },
})
await engine.processes.put(job)
for (const schedule of scheduled) await engine.schedules.put(schedule)
writeSync(1, 'ready\n')
for (const { id } of scheduled) {
  while ((await engine.schedules.show(id)).last === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
writeSync(1, 'made\n')
