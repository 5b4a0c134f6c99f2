/**
 * A program of a user who has the bundle and lmdb, run on another processor: the first opening of a
 * file, a task through a callback, a handler and code, a second opening, a reopening. It prints what
 * it saw as one line of JSON: `probe.mjs FILE`.
 */

import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type * as Index from '../../src/index.ts'
import { go } from './processes.ts'

export interface Seen {
  readonly machine: string
  readonly created: string
  readonly modified: string
  readonly data: unknown
  readonly second: string
  readonly reopened: unknown
  readonly files: readonly string[]
}

const name = './conveyor.mjs'
const { openEngine } = (await import(name)) as typeof Index
const [file = ''] = process.argv.slice(2)
const target = { conv_id: 5, ref: 'order-1' }
const src = 'data.twice = 2 * data.receipt'
const node = (id: string, ...logics: object[]): object => ({
  ...{ id, title: id, obj_type: id === 'start' ? 1 : 0, condition: { logics } },
})
const scheme = {
  nodes: [
    node('start', go('wait')),
    node('wait', { type: 'api_callback' }, go('charge')),
    node('charge', { type: 'api_callback' }, go('code')),
    node('code', { type: 'api_code', lang: 'js', src }, go('end')),
    { id: 'end', obj_type: 2, options: { save_task: true } },
  ],
}

const engine = await openEngine(file, {
  handlers: { '5/charge': ({ data }) => ({ receipt: (data as { amount: number }).amount + 1 }) },
})
await engine.processes.put({ obj_id: 5, scheme })
const created = await engine.create({ ...target, data: { amount: 20 } })
const modified = await engine.modify({ ...target, data: { paid: true } })
const { data } = await engine.result(target, { timeout_ms: 60_000 })
const second = await openEngine(file).then(
  () => 'opened',
  ({ code }) => String(code),
)
await engine.close()
const again = await openEngine(file)
const task = await again.task(target)
await again.close()
const seen: Seen = {
  ...{ machine: `${process.platform}-${process.arch}`, created: created.proc },
  ...{ modified: modified.proc, data, second, reopened: task?.data },
  files: readdirSync(dirname(file)),
}
console.log(JSON.stringify(seen))
