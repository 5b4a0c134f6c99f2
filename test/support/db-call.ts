/** A process whose one node queries a database, run to its end. */
import assert from 'node:assert/strict'
import type { Task } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { go, node } from './processes.ts'

export function querying(
  query: string,
  more: object = {},
  conv_id = '1',
  semaphors: object[] = [],
): object {
  const logic = { type: 'db_call', instance_id: 7, query, err_node_id: 'failed', ...more }
  const kept = { options: { save_task: true } }
  return {
    obj_id: conv_id,
    scheme: {
      nodes: [
        node('start', 1, [go('ask')]),
        node('ask', 0, [logic, go('done')], { semaphors }),
        node('done', 2, [], kept),
        node('failed', 2, [], kept),
      ],
    },
  }
}

/** The task after its query, with the data it had before left out. */
export async function asked(
  engine: Engine,
  query: string,
  data: object = {},
  more: object = {},
): Promise<Task> {
  const definition = querying(query, more)
  await engine.processes.put(definition)
  const { obj_id, proc } = await engine.create({ conv_id: '1', data })
  assert.equal(proc, 'ok')
  return engine.result({ conv_id: '1', obj_id: obj_id as string })
}

/** `rows: …` of a success, else `<type> <tag>: <description>`. */
export function saysOf({ node_id, data }: Task): string {
  const found = data as Record<string, unknown>
  if (node_id === 'done') return `${found.rows_count}: ${JSON.stringify(found.result)}`
  const of = (name: string) => found[`__conveyor_db_call_return_${name}__`]
  const [type, tag, description] = ['type_error', 'type_tag', 'description'].map(of)
  return `${type} ${tag}: ${description}`
}
