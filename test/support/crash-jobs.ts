/**
 * The work of the crash test of calls, code and handlers: a process whose tasks do one of each and
 * leave a mark of every state change. A change that was made twice shows twice: in the counter of
 * the task's data, and in the task that each step creates in the process of marks.
 */
import type { Engine } from '../../src/engine/api.ts'
import type { Handler } from '../../src/engine/jobs/handler-api.ts'

export const conv_id = 'work'
export const marks = 'marks'
/** The work of each task, in order; each is marked by the node behind it. */
export const steps = ['call', 'code', 'handler'] as const
export type Step = (typeof steps)[number]
/** A kind that is not run here, so the embedder's handler does it. */
export const handled = 'db_call'

const node = (id: string, obj_type: number, logics: readonly object[]): object => ({
  ...{ id, obj_type, title: id, options: '{"save_task":true}' },
  condition: { logics, semaphors: [] },
})
const go = (to_node_id: string): object => ({ type: 'go', to_node_id })

/** `url` is of the server that counts calls. */
export async function putProcesses(engine: Engine, url: string): Promise<void> {
  const logics: Record<Step, object> = {
    call: { type: 'api', url, method: 'POST', extra: { id: '{{root.task_id}}' } },
    code: { type: 'api_code', lang: 'js', src: 'data.code = data.answer + 1' },
    handler: { type: handled },
  }
  const nodes = steps.flatMap((step, at) => [
    node(step, 0, [{ ...logics[step], err_node_id: 'failed' }, go(`${step} done`)]),
    node(`${step} done`, 0, [
      {
        ...{ type: 'set_param', extra: { changes: '$.math({{changes}}+1)' } },
        ...{ extra_type: { changes: 'number' }, err_node_id: 'failed' },
      },
      {
        ...{ type: 'api_copy', mode: 'create', conv_id: marks, err_node_id: 'failed' },
        ...{ data: { of: '{{root.task_id}}', step }, data_type: { of: 'string', step: 'string' } },
      },
      go(steps[at + 1] ?? 'end'),
    ]),
  ])
  await engine.putProcess({
    obj_id: marks,
    scheme: { nodes: [node('start', 1, [go('kept')]), node('kept', 0, [])] },
  })
  await engine.putProcess({
    obj_id: conv_id,
    scheme: {
      nodes: [node('start', 1, [go('call')]), ...nodes, node('end', 2, []), node('failed', 2, [])],
    },
  })
}

/** A handler that tells whom it was called for, and takes its time. */
export function handlerThat(tells: (obj_id: string) => void): Handler {
  return async ({ obj_id }) => {
    tells(obj_id)
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 10))
    return { handler: obj_id }
  }
}

/** Lines that the child writes: what it made, and whom its handler was called for. */
export interface ChildReport {
  readonly made?: readonly string[]
  readonly handled?: string
}
