/**
 * Jobs that the embedder's own functions run. Two kinds of logic order them: types that this
 * program does not run itself, where a handler is registered for the type, and `api_callback` in a
 * node whose title has a handler. What the handler returns is merged into the data as it is then.
 */
import { docOfText, mergeDocs } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { Command, EvaluationContext, JobKind, LogicKind } from '../logic.ts'
import type { Report } from '../report.ts'
import { fail, oversize } from './failures.ts'
import { readErrorNode } from './members.ts'

/** All that is read of such a logic: its other members are for the handler. */
export interface HandlerLogic {
  readonly err_node_id: string | undefined
}

const job: Command = { command: 'job' }

/** The kind of a type that the embedder runs. */
export function handlerLogic(type: string): LogicKind<HandlerLogic> {
  return {
    type,
    parse: parseHandlerLogic,
    run: () => job,
    job: handlerJob(() => type),
  }
}

export function parseHandlerLogic(raw: JsonObject, report: Report): HandlerLogic {
  return { err_node_id: readErrorNode(raw, report) }
}

/** The job of the handler with this name. */
export function handlerJob(nameOf: (context: EvaluationContext) => string): JobKind<HandlerLogic> {
  return {
    order: (_definition, context) => ({
      job: 'handler',
      handler: nameOf(context),
      doc: context.doc,
    }),
    finish({ err_node_id }, context, _order_doc, outcome) {
      if (outcome.outcome === 'failed') return fail('handler', outcome, err_node_id)
      const doc = mergeDocs(context.doc, docOfText(outcome.text))
      const description = oversize(doc, context.task_bytes_max)
      if (description === undefined) return { command: 'set', doc, err_node_id }
      return fail('handler', { tag: 'handler_task_size_overflow', description }, err_node_id)
    },
  }
}
