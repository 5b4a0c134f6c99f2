/**
 * A service that charges: `deploy-child PATH`. It creates tasks until SIGTERM, closes and exits. It
 * prints a line where a charge begins, and one just before the handler returns what it has done.
 */
import { writeSync } from 'node:fs'
import type { Handler } from '../../src/engine/jobs/handler-api.ts'
import { openEngine } from '../../src/open.ts'
import { conv_id, type DeployReport, order, ref_prefix } from './deploy.ts'

const [path = ''] = process.argv.slice(2)
const send = (report: DeployReport): unknown => writeSync(1, `${JSON.stringify(report)}\n`)

/** Some charges are still under way when the drain is over: they are made then, or given up. */
const charge: Handler = async (_task, { key, signal }) => {
  send({ begun: key })
  const gives_up = Math.random() < 0.5
  await new Promise<void>((resolve, reject) => {
    setTimeout(resolve, Math.random() * 80)
    signal.addEventListener('abort', () => (gives_up ? reject(signal.reason) : resolve()))
  })
  if (Math.random() < 0.2) throw new Error('no line to the bank')
  send({ done: key })
  return { charged: key }
}

const engine = await openEngine(path, {
  handlers: { charge: { handler: charge, backoff_ms: 5, attempts_max: 1_000 } },
  limits: { drain_ms_max: 20 },
})
await engine.putProcess(order)
let is_stopped = false
process.once('SIGTERM', () => {
  is_stopped = true
  void engine.close().then(() => process.exit(0))
})
for (let n = 0; !is_stopped; n++) {
  const ref = `${ref_prefix}${process.pid}-${n}`
  await engine.create({ conv_id, ref, data: {} }).catch(() => {})
  await new Promise((resolve) => setTimeout(resolve, 5))
}
