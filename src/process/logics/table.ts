/**
 * The table of logic kinds, and the types that only handlers of the embedder run: a definition with
 * one of those in a reachable node is refused unless its handler is registered.
 */
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind } from '../logic.ts'
import { quoted } from '../report.ts'
import { api } from './api.ts'
import { apiCallback } from './api-callback.ts'
import { apiCode } from './api-code.ts'
import { apiRpc, apiRpcReply } from './api-rpc.ts'
import { apiSum } from './api-sum.ts'
import { apiCopy, apiGetTask, apiQueue } from './api-tasks.ts'
import { setParam } from './assignments.ts'
import { go, goIfConst } from './go.ts'
import { isAbsent } from './members.ts'

export const logicTable: readonly LogicKind[] = [
  go,
  goIfConst,
  setParam,
  apiCallback,
  api,
  apiCode,
  apiCopy,
  apiRpc,
  apiRpcReply,
  apiQueue,
  apiGetTask,
  apiSum,
]

export const handler_types = ['git_call', 'db_call', 'api_form', 'api_git'] as const
export type HandlerType = (typeof handler_types)[number]

/** The kind of a raw logic; undefined where this program does not run it. */
export function kindOf({ type, lang }: JsonObject): LogicKind | undefined {
  const kind = logicTable.find((one) => one.type === type)
  return kind === apiCode && !isAbsent(lang) && lang !== 'js' ? undefined : kind
}

const by_handler = '(a handler in a program that embeds the engine can run it)'

/** Why there is no kind of a raw logic, and whether a handler of the embedder may run it. */
export function whyNotRun({ type, lang }: JsonObject): { text: string; may_be_handled: boolean } {
  if (type === apiCode.type) {
    const text = `api_code: lang ${quoted(lang)} is not run here, only "js" is ${by_handler}`
    return { text, may_be_handled: true }
  }
  const may_be_handled = handler_types.some((one) => one === type)
  const what = may_be_handled ? `is not run here ${by_handler}` : 'is no logic of this release'
  return { text: `type ${quoted(type)} ${what}`, may_be_handled }
}
