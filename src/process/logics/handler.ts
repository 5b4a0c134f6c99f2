/**
 * Work done by the embedder's own code: what a logic orders from a handler, and what the handler's
 * outcome does to the task. Two kinds of logic stand on it: types that are not run here, where a
 * handler is registered for the type, and `api_callback` in a node whose title has a handler.
 *
 * What the handler gave is laid over the data as it then is. Nothing here knows who is registered.
 */
import { bytesOf, docOfText, mergeDocs } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind, Move, Report, Scope, WorkOutcome } from '../logic.ts'
import { readErrNode } from './assignments.ts'

/** What is kept of a handled logic. */
export interface Handled {
  readonly err_node_id: string | undefined
}

const work: Move = { move: 'work' }

/** The logic of a type that the embedder runs. */
export function handledKind(type: string): LogicKind<Handled> {
  return {
    type,
    parse: parseHandled,
    run: () => work,
    errNode: ({ err_node_id }) => err_node_id,
    work: {
      order: (_definition, scope) => ({ work: 'handler', handler: type, doc: scope.doc }),
      finish: ({ err_node_id }, scope, _doc, outcome) => finishHandled(err_node_id, scope, outcome),
    },
  }
}

/** `err_node_id` is all that is read; the rest is the handler's own. */
export function parseHandled(raw: JsonObject, report: Report): Handled {
  return { err_node_id: readErrNode(raw, report) }
}

/** Merges what a handler gave, or fails with its tag. */
export function finishHandled(
  err_node_id: string | undefined,
  scope: Scope,
  outcome: WorkOutcome,
): Move {
  if (outcome.outcome === 'failed') {
    const { error_type, tag, description } = outcome
    return { move: 'fail', kind: 'handler', error_type, tag, description, err_node_id }
  }
  const doc = mergeDocs(scope.doc, docOfText(outcome.text))
  const bytes = bytesOf(doc.text)
  const max = scope.task_bytes_max
  if (bytes <= max) return { move: 'set', doc, err_node_id }
  return {
    move: 'fail',
    kind: 'handler',
    error_type: 'software',
    tag: 'handler_task_size_overflow',
    description: `Your task size: ${bytes} bytes, Max available task size: ${max} bytes`,
    err_node_id,
  }
}
