/**
 * `api_callback`: rests the task until a modify; then the logics behind it run. `is_sync` and
 * `obj_id_path` belong to the public callback URL, which is not served: kept in the definition,
 * ignored.
 *
 * Where the embedder has registered a handler for the node's title as the task comes to rest, the
 * handler answers in the place of a modify; `err_node_id` says where its failure leads.
 */
import type { Command, LogicKind } from '../logic.ts'
import { finishHandlerJob, type HandlerLogic, parseHandlerLogic } from './handler.ts'

const wait: Command = { command: 'wait' }

export const apiCallback: LogicKind<HandlerLogic> = {
  type: 'api_callback',
  waits_for: 'callback',
  parse: parseHandlerLogic,
  run: () => wait,
  errorNode: ({ err_node_id }) => err_node_id,
  job: {
    order: (_definition, context) => ({
      job: 'handler',
      handler: String(context.rootField('node_name') ?? ''),
      doc: context.doc,
    }),
    finish: ({ err_node_id }, context, _doc, outcome) =>
      finishHandlerJob(err_node_id, context, outcome),
  },
}
