/**
 * Opens a file in a process of its own, with nothing warm, and tells as one line of JSON how long
 * it took until the first answers came: `scale-child PATH REF`. REF is the ref of a task that
 * waits.
 */
import { openEngine } from '../../src/open.ts'
import { scale_conv_id } from './scale-file.ts'

export interface Startup {
  /** Until `openEngine` was through, the loading of the store taken in. */
  readonly open_ms: number
  /** From there until a first create was on disk and answered. */
  readonly create_ms: number
  /** From there until a modify by ref that wakes a task was. */
  readonly modify_ms: number
  /** Resident memory then, in bytes. */
  readonly rss_bytes: number
}

const [path = '', ref = ''] = process.argv.slice(2)
const fresh_ref = `fresh-${process.pid}`

let last_ms = performance.now()
const lap = (): number => {
  const now_ms = performance.now()
  const lap_ms = now_ms - last_ms
  last_ms = now_ms
  return lap_ms
}

const engine = await openEngine(path)
const open_ms = lap()
const created = await engine.create({ conv_id: scale_conv_id, ref: fresh_ref, data: { n: 1 } })
const create_ms = lap()
const modified = await engine.modify({
  conv_id: scale_conv_id,
  ref,
  data: { paid: true },
  is_sync: true,
})
const modify_ms = lap()
const { rss: rss_bytes } = process.memoryUsage()
if (created.proc !== 'ok' || modified.proc !== 'ok') {
  throw new Error(`refused: ${JSON.stringify([created, modified])}`)
}
const startup: Startup = { open_ms, create_ms, modify_ms, rss_bytes }
console.log(JSON.stringify(startup))
await engine.close()
