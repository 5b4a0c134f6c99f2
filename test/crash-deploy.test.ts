/**
 * A service with a handler is stopped as a deploy stops it, and killed, again and again on one file.
 * A charge whose handler returned before a stop is never begun again; after a kill it may be, under
 * the same key. Every task ends once, with its own charge.
 *
 * `CONVEYOR_SLOW=1` runs a hundred rounds.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { openEngine } from '../src/open.ts'
import { conv_id, type DeployReport, order } from './support/deploy.ts'
import { buildChild } from './support/store-child.ts'

const rounds = process.env.CONVEYOR_SLOW === '1' ? 100 : 4

test(`${rounds} deploys and kills: no charge that was done in time is begun again`, {
  timeout: 1_200_000,
}, async (t) => {
  const child = await buildChild('deploy-child.ts')
  const path = join(child.folder, 'tasks.lmdb')
  /** Done before a stop: never again. */
  const final = new Set<string>()
  const begun = new Set<string>()
  let [aborted, repeated] = [0, 0]
  const onReport = ({ begun: key }: DeployReport): void => {
    if (key === undefined) return
    assert.ok(!final.has(key), `${key} was done before a stop and is begun again`)
    if (begun.has(key)) repeated++
    begun.add(key)
  }
  try {
    for (let round = 0; round < rounds; round++) {
      const signal = round % 4 === 3 ? 'SIGKILL' : 'SIGTERM'
      const { open, done } = await runAndStop([child.script, path], signal, onReport)
      if (signal === 'SIGKILL') continue
      for (const key of done) final.add(key)
      aborted += open
    }
    const engine = await openEngine(path)
    await engine.putProcess(order)
    const handled = new Map<string, string>()
    engine.handle('charge', ({ obj_id }, { key }) => {
      onReport({ begun: key })
      handled.set(obj_id, key)
      return { charged: key }
    })
    const count = async (): Promise<number> => (await engine.processes.show(conv_id)).tasks
    while ((await count()) > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    assert.deepEqual((await engine.check()).breaches, [])
    const charges = new Set<string>()
    let tasks = 0
    for (const key of final) {
      const [obj_id = ''] = key.split('-')
      const task = await engine.task({ conv_id, obj_id })
      assert.deepEqual([task?.status, task?.data], ['processed', { charged: key }])
      charges.add(key)
      tasks++
    }
    assert.equal(charges.size, tasks)
    for (const [obj_id, key] of handled) {
      assert.deepEqual((await engine.task({ conv_id, obj_id }))?.data, { charged: key })
    }
    await engine.close()
    assert.ok(tasks > 0 && handled.size > 0, `${tasks} done in time, ${handled.size} left`)
    t.diagnostic(`${tasks} done in time, ${aborted} cut off, ${repeated} begun again`)
  } finally {
    await child.remove()
  }
})

/** The charges that the service had done when it ended, and how many were begun only. */
async function runAndStop(
  args: readonly string[],
  signal: 'SIGTERM' | 'SIGKILL',
  onReport: (report: DeployReport) => void,
): Promise<{ open: number; done: readonly string[] }> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const open = new Set<string>()
  const done: string[] = []
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    if (!line.endsWith('}')) return
    const report = JSON.parse(line) as DeployReport
    onReport(report)
    if (report.begun !== undefined) open.add(report.begun)
    if (report.done === undefined) return
    open.delete(report.done)
    done.push(report.done)
    if (done.length === 20) child.kill(signal)
  })
  const [[code, by]] = await Promise.all([once(child, 'exit'), once(lines, 'close')])
  assert.deepEqual([code, by], signal === 'SIGTERM' ? [0, null] : [null, 'SIGKILL'])
  return { open: open.size, done }
}
