/**
 * A program that embeds the library, whose disk hangs (hung-library.ts): callers that create a task
 * after another, and on request as many at once as were asked for. Each line that it prints is a
 * report; they are written at once, because its event loop may be blocked.
 */
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { isFault } from '../../../src/core/faults.ts'
import type { EngineOptions } from '../../../src/engine/api/engine-api.ts'
import { openEngine } from '../../../src/open.ts'
import { plain } from '../workload.ts'

/** With the time of day. */
export type HungReport = { readonly at: number } & (
  | { readonly sent: string }
  | { readonly ref: string; readonly code: string }
  /** The longest that a timer was late since it was asked. */
  | { readonly late_ms: number }
  | { readonly event: string; readonly is_under_way?: boolean }
  | { readonly is_open: true }
)

export type HungOrder =
  | { readonly flood: number; readonly text_bytes: number }
  | { readonly do: 'emit' | 'close' }

const [path = '', options = '{}'] = process.argv.slice(2)
const callers = 4
const tick_ms = 10
const report = (what: object): void => {
  const at = performance.timeOrigin + performance.now()
  writeSync(1, `${JSON.stringify({ at, ...what })}\n`)
}

const log = (fields: object): void => {
  const { event, is_under_way } = fields as { event: string; is_under_way?: boolean }
  if (event === 'slow_commit') report({ event, is_under_way })
}
const engine = await openEngine(path, {
  ...(JSON.parse(options) as EngineOptions),
  logger: { debug() {}, info() {}, warn: log, error: log },
})
let is_closing = false

async function create(ref: string, data: object): Promise<void> {
  report({ sent: ref })
  try {
    const { proc } = await engine.create({ conv_id: plain, ref, data })
    report({ ref, code: proc })
  } catch (error) {
    report({ ref, code: isFault(error) ? error.code : String(error) })
  }
}

async function call(caller: number): Promise<void> {
  for (let n = 0; !is_closing; n++) await create(`${caller}-${n}`, { n: 1 })
}

let last_ms = performance.now()
let late_ms = 0
setInterval(() => {
  const now_ms = performance.now()
  late_ms = Math.max(late_ms, now_ms - last_ms - tick_ms)
  last_ms = now_ms
}, tick_ms)

let floods = 0
const flooded: Promise<void>[] = []
for (let caller = 0; caller < callers; caller++) flooded.push(call(caller))
report({ is_open: true })

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as HungOrder
  if ('flood' in order) {
    const data = { n: 1, text: 'x'.repeat(order.text_bytes) }
    const flood = `flood-${floods++}`
    for (let n = 0; n < order.flood; n++) flooded.push(create(`${flood}-${n}`, data))
  } else if (order.do === 'emit') {
    report({ late_ms })
    late_ms = 0
  } else {
    is_closing = true
    await Promise.all(flooded)
    await engine.close()
    process.exit()
  }
}
