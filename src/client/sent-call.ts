/**
 * A call as it is sent, try after try. Once a try may have been applied, the same bytes are sent
 * again, under the same name: by that a server that keeps replays knows the repeat. Before that
 * each try has a name of its own, so a call that waits for long is not signed for a time long past.
 */
import type { ClientResult } from './api.ts'
import type { Cancellation } from './cancellation.ts'
import { isClientFault } from './faults.ts'
import type { SentOp } from './sent-op.ts'
import type { Transport } from './transport.ts'

export interface SentCall {
  /** One try. */
  send(cancellation: Cancellation): Promise<ClientResult[]>
  /** Whether the server answers a repeat as the first time. */
  isKept(): boolean
}

/** What a call needs of a transport. */
export type Sender = Pick<Transport, 'encode' | 'keeps'>

export function sentCall(transport: Sender, ops: readonly SentOp[]): SentCall {
  let encoded = transport.encode(ops)
  let is_new = true
  let may_be_applied = false
  return {
    isKept: () => transport.keeps(ops),
    async send(cancellation) {
      if (!is_new && !may_be_applied) encoded = transport.encode(ops)
      is_new = false
      try {
        return await encoded.send(cancellation, may_be_applied)
      } catch (error) {
        if (!isClientFault(error) || error.outcome === 'unknown') may_be_applied = true
        throw error
      }
    },
  }
}
