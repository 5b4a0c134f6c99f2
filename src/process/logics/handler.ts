/**
 * Work done by the embedder's own code: what a logic orders from a handler, and what the handler's
 * outcome does to the task. Two kinds of logic stand on it: types that are not run here, where a
 * handler is registered for the type, and `api_callback` in a node whose title has a handler.
 *
 * What the handler gave is laid over the data as it then is. Nothing here knows who is registered.
 */
import { bytesOf, docOfText, mergeDocs } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { Command, EvaluationContext, JobOutcome, LogicKind } from '../logic.ts'
import type { Report } from '../report.ts'
import { readErrNode } from './assignments.ts'

/** What is kept of a handled logic. */
export interface HandlerLogic {
  readonly err_node_id: string | undefined
}

const job: Command = { command: 'job' }

/** The logic of a type that the embedder runs. */
export function handlerLogic(type: string): LogicKind<HandlerLogic> {
  return {
    type,
    parse: parseHandlerLogic,
    run: () => job,
    errorNode: ({ err_node_id }) => err_node_id,
    job: {
      order: (_definition, context) => ({ job: 'handler', handler: type, doc: context.doc }),
      finish: ({ err_node_id }, context, _doc, outcome) =>
        finishHandlerJob(err_node_id, context, outcome),
    },
  }
}

/** `err_node_id` is all that is read; the rest is the handler's own. */
export function parseHandlerLogic(raw: JsonObject, report: Report): HandlerLogic {
  return { err_node_id: readErrNode(raw, report) }
}

/** Merges what a handler gave, or fails with its tag. */
export function finishHandlerJob(
  err_node_id: string | undefined,
  context: EvaluationContext,
  outcome: JobOutcome,
): Command {
  if (outcome.outcome === 'failed') {
    const { error_type, tag, description } = outcome
    return { command: 'fail', kind: 'handler', error_type, tag, description, err_node_id }
  }
  const doc = mergeDocs(context.doc, docOfText(outcome.text))
  const bytes = bytesOf(doc.text)
  const max = context.task_bytes_max
  if (bytes <= max) return { command: 'set', doc, err_node_id }
  return {
    command: 'fail',
    kind: 'handler',
    error_type: 'software',
    tag: 'handler_task_size_overflow',
    description: `Your task size: ${bytes} bytes, Max available task size: ${max} bytes`,
    err_node_id,
  }
}
