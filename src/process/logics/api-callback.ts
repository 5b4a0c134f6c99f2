/**
 * `api_callback`: the task waits for a modify; then the logics after this one run. `is_sync` and
 * `obj_id_path` say how a request to the callback address of the node names its task. A wrong value
 * of them is only warned of, because most definitions never use the address.
 *
 * If a handler is registered for the node's title when the task begins to wait, the handler answers
 * in place of a modify, and its failure leads to `err_node_id`.
 */
import type { JsonObject } from '../../core/model.ts'
import type { CallbackRules, Command, EvaluationContext, LogicKind } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
import { handlerJob } from './handler.ts'
import { isAbsent, readErrorNode } from './members.ts'

const wait: Command = { command: 'wait' }

export const apiCallback: LogicKind = {
  type: 'api_callback',
  waits_for: 'callback',
  compile(raw, report) {
    const err_node_id = readErrorNode(raw, report)
    const job = handlerJob(titleOfNode, err_node_id)
    return { err_node_id, run: () => wait, job, callback: readCallback(raw, report) }
  },
}

function titleOfNode(context: EvaluationContext): string {
  return String(context.rootField('node_name') ?? '')
}

/** `id`, `data.id`, `items[0].id`. */
const id_path_form = /^[^.[\]]+(?:\.[^.[\]]+|\[[0-9]{1,9}\])*$/

function readCallback({ is_sync, obj_id_path }: JsonObject, report: Report): CallbackRules {
  const path = typeof obj_id_path === 'string' ? obj_id_path.trim() : ''
  const is_path = id_path_form.test(path)
  if (!is_path && !isAbsent(obj_id_path)) {
    report.warning(`obj_id_path ${quoted(obj_id_path)} is no path, so obj_id or ref name the task`)
  }
  return {
    is_sync: is_sync !== false && is_sync !== 'false',
    id_path: is_path ? (path.match(/[^.[\]]+/g) ?? []) : [],
  }
}
