/**
 * `api_callback`: the task waits for a modify; then the logics after this one run. `is_sync` and
 * `obj_id_path` belong to the callback URL of the public service, which is not served here; they
 * are ignored.
 *
 * If a handler is registered for the node's title when the task begins to wait, the handler answers
 * in place of a modify, and its failure leads to `err_node_id`.
 */
import type { Command, EvaluationContext, LogicKind } from '../logic.ts'
import { handlerJob } from './handler.ts'
import { readErrorNode } from './members.ts'

const wait: Command = { command: 'wait' }

export const apiCallback: LogicKind = {
  type: 'api_callback',
  waits_for: 'callback',
  compile(raw, report) {
    const err_node_id = readErrorNode(raw, report)
    return { err_node_id, run: () => wait, job: handlerJob(titleOfNode, err_node_id) }
  },
}

function titleOfNode(context: EvaluationContext): string {
  return String(context.rootField('node_name') ?? '')
}
