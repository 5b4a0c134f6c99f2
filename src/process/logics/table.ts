/**
 * The table of logic kinds. A new kind is one file beside this one and one row here. It also names
 * the types that this program does not run itself: a definition with one of them is refused unless
 * the embedder has registered a handler for the type.
 */
import type { JsonValue } from '../../core/model.ts'
import type { LogicKind } from '../logic.ts'
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
import { handlerKind } from './handler.ts'
import { setParam } from './set-param.ts'

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

/** Types that only the embedder's handlers run. */
export const handler_types = ['git_call', 'db_call', 'api_form', 'api_git'] as const
export type HandlerType = (typeof handler_types)[number]

/** The kind of a logic type; undefined where neither this program nor a handler runs it. */
export function kindOf(
  type: JsonValue | undefined,
  isHandled: (type: string) => boolean,
): LogicKind | undefined {
  const kind = logicTable.find((one) => one.type === type)
  if (kind !== undefined) return kind
  const handled = handler_types.find((one) => one === type)
  return handled !== undefined && isHandled(handled) ? handlerKind(handled) : undefined
}
