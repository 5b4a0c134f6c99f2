/**
 * Starting does not depend on how much there is: a file of a million waiting tasks, timers armed,
 * opens and answers as one of a thousand does. Only with `CONVEYOR_SLOW=1`; the numbers are
 * printed.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'

import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import type { Startup } from './support/scale-child.ts'
import { makeScaleFile, scaleRef } from './support/scale-file.ts'
import { buildChild } from './support/store-child.ts'

const is_slow = process.env.CONVEYOR_SLOW === '1'
const few = 1_000
const many = Number(process.env.CONVEYOR_SCALE_TASKS ?? 1_000_000)
const starts = 5

it('a start does not depend on the number of tasks', {
  skip: !is_slow,
  timeout: 1_800_000,
}, async (t) => {
  const child = await buildChild('scale-child.ts')
  const medians: Startup[] = []
  try {
    for (const tasks of [few, many]) {
      const made = await makeScaleFile(join(child.folder, `${tasks}.lmdb`), tasks)
      const seen: Startup[] = []
      for (let n = 0; n < starts; n++) {
        // Tasks of all ages are woken, so that no page of theirs is warm from the start before.
        const ref = scaleRef(Math.floor(((n + 0.5) * tasks) / starts))
        const { stdout } = await promisify(execFile)(process.execPath, [
          child.script,
          made.path,
          ref,
        ])
        seen.push(JSON.parse(stdout) as Startup)
      }
      const median = medianOf(seen)
      medians.push(median)
      t.diagnostic(
        `${tasks} tasks: ${Math.round(made.bytes / 2 ** 20)} MiB, ` +
          `${Math.round(made.bytes_per_task)} bytes a task, ` +
          `made at ${Math.round(made.creates_per_s)} creates a second; ` +
          `open ${median.open_ms.toFixed(1)} ms, create ${median.create_ms.toFixed(1)} ms, ` +
          `modify ${median.modify_ms.toFixed(1)} ms, ` +
          `${Math.round(median.rss_bytes / 2 ** 20)} MiB resident`,
      )
    }
  } finally {
    await child.remove()
  }
  const [small, large] = medians as [Startup, Startup]
  const ratio = totalOf(large) / totalOf(small)
  t.diagnostic(`a start with ${many} tasks takes ${ratio.toFixed(2)} times one with ${few}`)
  // Anything that reads all tasks would take hundreds of times as long and as much memory.
  assert.ok(ratio < 10, `${totalOf(large)} ms with many, ${totalOf(small)} ms with few`)
  assert.ok(large.rss_bytes < 4 * small.rss_bytes, 'memory grows with the number of tasks')
})

const totalOf = ({ open_ms, create_ms, modify_ms }: Startup): number =>
  open_ms + create_ms + modify_ms

function medianOf(seen: readonly Startup[]): Startup {
  const sorted = [...seen].sort((one, other) => totalOf(one) - totalOf(other))
  return sorted[seen.length >> 1] as Startup
}
