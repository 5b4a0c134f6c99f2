/**
 * A program that creates tasks one after the other, ships them to a target, and prints the number
 * of each that was answered, until it is killed: FILE TARGET FIRST.
 */
import { openEngine } from '../../src/open.ts'

const [path = '', target = '', first = '0'] = process.argv.slice(2)
const engine = await openEngine(path, {
  ...{ backup_to: target, backup_lag_ms: 100, background: false },
})
const node = (id: string, obj_type: number, logics: readonly object[]) => ({
  ...{ id, obj_type, condition: { logics, semaphors: [] } },
})
await engine.processes.put({
  obj_id: 7,
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }]),
      node('end', 2, []),
    ],
  },
})
for (let n = Number(first); ; n++) {
  const { proc } = await engine.create({
    conv_id: 7,
    ref: `r${n}`,
    data: { n, text: 'x'.repeat(99) },
  })
  if (proc !== 'ok') throw new Error(proc)
  process.stdout.write(`${n}\n`)
  if (n % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 60))
}
