/**
 * A process of as many nodes as there may be, in one line: its tasks reach the last one, where they
 * end or wait. A circle of as many moves still fails.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodes_max } from '../src/process/definition-limits.ts'
import { settled } from '../src/testing.ts'
import { opened } from './support/handler-harness.ts'

const last = nodes_max - 1
const to = (at: number): object => ({ type: 'go', to_node_id: `n${at}` })

// [what the last node is, the node, the status of its task, why it has failed]
const rows: [string, object, string, string?][] = [
  ['an end', { obj_type: 2, options: { save_task: true } }, 'processed'],
  ['the way back', { obj_type: 0, condition: { logics: [to(0)] } }, 'failed', 'loop'],
]

for (const [name, node, status, tag] of rows) {
  test(`a task of ${nodes_max} nodes in a line, the last of them ${name}, is ${status}`, async () => {
    const { engine } = await opened()
    const nodes = Array.from({ length: nodes_max }, (_, at) => {
      if (at === last) return { id: `n${at}`, ...node }
      return { id: `n${at}`, obj_type: at === 0 ? 1 : 0, condition: { logics: [to(at + 1)] } }
    })
    await engine.processes.put({ obj_id: 1, scheme: { nodes } })
    const { obj_id = '' } = await engine.create({ conv_id: 1, data: {} })
    await settled(engine)
    const task = await engine.task({ conv_id: 1, obj_id })
    assert.equal(task?.status, status)
    assert.equal(task?.node_id, `n${last}`)
    assert.equal(task?.status_details?.tag, tag)
    await engine.close()
  })
}
