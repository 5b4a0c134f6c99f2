/**
 * THE table of logic kinds. A new kind is one file beside this and one row here. Types that no
 * release of this program runs are named too, so that an import says so, unless the embedder does.
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

/** A kind with its definition's type hidden. */
export interface LogicRow {
  readonly type: string
  /** Reads the raw logic and binds it. Mistakes go to `report`; the result then does not matter. */
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

export const handler_types: readonly string[] = ['git_call', 'db_call', 'api_form', 'api_git']

/** The row of a type not run here, for a definition whose embedder has a handler for it. */
export function handlerRow(type: string): LogicRow {
  return rowOf(handlerLogic(type))
}

function rowOf<Definition>(kind: LogicKind<Definition>): LogicRow {
  const { type, waits_for, run, errorNode, job } = kind
  return {
    type,
    compile(raw, report) {
      const definition = kind.parse(raw, report)
      return {
        type,
        waits_for,
        err_node_id: errorNode?.(definition),
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
