/**
 * `api_callback`: rests the task until a modify; then the logics behind it run. `is_sync` and
 * `obj_id_path` belong to the public callback URL, which is not served: kept in the definition,
 * ignored.
 *
 * Where the embedder has registered a handler for the node's title as the task comes to rest, the
 * handler answers in the place of a modify; `err_node_id` says where its failure leads.
 */
import type { LogicKind, Move } from '../logic.ts'
import { finishHandled, type Handled, parseHandled } from './handler.ts'

const rest: Move = { move: 'rest' }

export const apiCallback: LogicKind<Handled> = {
  type: 'api_callback',
  is_wait: true,
  parse: parseHandled,
  run: () => rest,
  errNode: ({ err_node_id }) => err_node_id,
  work: {
    order: (_definition, scope) => ({
      work: 'handler',
      handler: String(scope.root('node_name') ?? ''),
      doc: scope.doc,
    }),
    finish: ({ err_node_id }, scope, _doc, outcome) => finishHandled(err_node_id, scope, outcome),
  },
}
