/**
 * The table of logic kinds. A new kind is one file beside this one and one row here. It also names
 * the types that this program does not run itself: a definition with one of them is refused unless
 * the embedder has registered a handler for the type.
 */
import type { JsonObject } from '../../core/model.ts'
import type { Logic, LogicKind } from '../logic.ts'
import type { Report } from '../report.ts'
import { api } from './api.ts'
import { apiCallback } from './api-callback.ts'
import { apiCode } from './api-code.ts'
import { apiCopy } from './api-copy.ts'
import { apiGetTask } from './api-get-task.ts'
import { apiQueue } from './api-queue.ts'
import { apiRpc } from './api-rpc.ts'
import { apiRpcReply } from './api-rpc-reply.ts'
import { apiSum } from './api-sum.ts'
import { go } from './go.ts'
import { goIfConst } from './go-if-const.ts'
import { handlerLogic } from './handler.ts'
import { setParam } from './set-param.ts'

/** A kind without the type of its definition. */
export interface LogicRow {
  readonly type: string
  /** Parses a raw logic and binds it. Mistakes go to `report`; the result is not used then. */
  compile(raw: JsonObject, report: Report): Logic
}

export const logicTable: readonly LogicRow[] = [
  rowOf(go),
  rowOf(goIfConst),
  rowOf(setParam),
  rowOf(apiCallback),
  rowOf(api),
  rowOf(apiCode),
  rowOf(apiCopy),
  rowOf(apiRpc),
  rowOf(apiRpcReply),
  rowOf(apiQueue),
  rowOf(apiGetTask),
  rowOf(apiSum),
]

/** Types that only the embedder's handlers run. */
export const handler_types = ['git_call', 'db_call', 'api_form', 'api_git'] as const
export type HandlerType = (typeof handler_types)[number]

/** The row of one of these types, for an embedder that has a handler for it. */
export function handlerRow(type: string): LogicRow {
  return rowOf(handlerLogic(type))
}

function rowOf<Definition extends object>(kind: LogicKind<Definition>): LogicRow {
  const { type, waits_for, run, job } = kind
  return {
    type,
    compile(raw, report) {
      const definition = kind.parse(raw, report)
      const { err_node_id }: { err_node_id?: string | undefined } = definition
      return {
        type,
        waits_for,
        err_node_id,
        run: (context) => run(definition, context),
        job: job && {
          order: (context) => job.order(definition, context),
          finish: (context, order_doc, outcome) =>
            job.finish(definition, context, order_doc, outcome),
        },
      }
    },
  }
}
