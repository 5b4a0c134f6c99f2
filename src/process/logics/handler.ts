/**
 * Jobs that the embedder's own functions run. Two kinds of logic order them: types that this
 * program does not run itself, where a handler is registered for the type, and `api_callback` in a
 * node whose title has a handler. What the handler returns is merged into the data as it is then.
 *
 * A job waits for its handler to be registered, except in a node that nothing leads to: there the
 * definition was stored without one, and a task that an import moved there fails.
 */
import { mergeDocs } from '../../codec/doc-text.ts'
import { docOfText } from '../../codec/json.ts'
import type { Command, EvaluationContext, LogicJob, LogicKind } from '../logic.ts'
import { fail, oversize } from './failures.ts'
import { readErrorNode } from './members.ts'

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
    finish(context, _order_doc, outcome) {
      if (outcome.outcome === 'failed') return fail('handler', outcome, err_node_id)
      const doc = mergeDocs(context.doc, docOfText(outcome.text))
      const description = oversize(doc, context.task_bytes_max)
      if (description === undefined) return { command: 'set', doc, err_node_id }
      return fail('handler', { tag: 'handler_task_size_overflow', description }, err_node_id)
    },
  }
}
