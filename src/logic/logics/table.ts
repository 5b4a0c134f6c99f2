/**
 * THE table of logic kinds. A new kind is one file beside this and one row here. Types that no
 * release of this program runs are named too, so that an import says so.
 */
import type { JsonObject } from '../../words/model.ts'
import type { Logic, LogicKind, Report } from '../logic.ts'
import { apiCallback } from './api-callback.ts'
import { go } from './go.ts'
import { goIfConst } from './go-if-const.ts'
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
]

export const not_run_here: readonly string[] = ['git_call', 'db_call', 'api_form']

function rowOf<Definition>(kind: LogicKind<Definition>): LogicRow {
  const { type, is_wait = false, run, errNode, work } = kind
  return {
    type,
    compile(raw, report) {
      const definition = kind.parse(raw, report)
      return {
        type,
        is_wait,
        err_node_id: errNode?.(definition),
        run: (scope) => run(definition, scope),
        work: work && {
          order: (scope) => work.order(definition, scope),
          finish: (scope, order_doc, outcome) => work.finish(definition, scope, order_doc, outcome),
        },
      }
    },
  }
}
