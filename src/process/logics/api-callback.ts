/**
 * `api_callback`: the task waits for a modify; `is_sync` and `obj_id_path` say how a request to the
 * callback address names its task. A handler registered for the node's title answers instead.
 *
 * Also the jobs of handlers: what a handler returns is merged into the data of that time. A job
 * waits until its handler is registered, except in a node that nothing leads to: there the task
 * fails.
 */
import { mergeDocs } from '../../codec/doc-text.ts'
import { docOfText } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { CallbackRules, Command, EvaluationContext, LogicJob, LogicKind } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
import { fail, oversize } from './failures.ts'
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

const job_command: Command = { command: 'job' }

/** The kind of a type that the embedder runs. Its members are for the handler. */
export function handlerKind(type: string, isReachable: () => boolean): LogicKind {
  return {
    type,
    compile(raw, report) {
      const err_node_id = readErrorNode(raw, report)
      const job = handlerJob(() => type, err_node_id, isReachable)
      return { err_node_id, run: () => job_command, job }
    },
  }
}

/** The job of the handler with this name. `isAwaited`: whether it waits until there is one. */
export function handlerJob(
  nameOf: (context: EvaluationContext) => string,
  err_node_id: string | undefined,
  isAwaited: () => boolean = () => true,
): LogicJob {
  return {
    order: (context) => ({
      job: 'handler',
      handler: nameOf(context),
      is_awaited: isAwaited(),
      doc: context.doc,
    }),
    finish(context, _order, outcome) {
      if (outcome.outcome === 'failed') return fail('handler', outcome, err_node_id)
      const doc = mergeDocs(context.doc, docOfText(outcome.text))
      const description = oversize(doc, context.task_bytes_max)
      if (description === undefined) return { command: 'set', doc, err_node_id }
      return fail('handler', { tag: 'handler_task_size_overflow', description }, err_node_id)
    },
  }
}
