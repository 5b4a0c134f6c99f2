/**
 * Counts and logs what a server refuses: requests are counted and logged, ops logged, because the
 * engine counts them. A bug has its own log line, so its `internal_error` has none.
 */
import { shownConvId } from './alias.ts'
import type { Counters, ServerName } from './counters.ts'
import type { Emit } from './events.ts'
import { type FaultCode, isOpFaultCode } from './faults.ts'
import type { Op, OpResult } from './model.ts'

export interface Refusal {
  readonly server: ServerName
  readonly code: FaultCode
  readonly user?: string | undefined
  readonly address?: string | undefined
  /** The process of a call's single op, as sent. */
  readonly conv_id?: unknown
  readonly began_ms?: number
}

export function emitRefused(
  { counters, emit }: { readonly counters: Pick<Counters, 'countRequest'>; readonly emit: Emit },
  { server, code, conv_id, began_ms, ...caller }: Refusal,
): void {
  counters.countRequest(server, code, began_ms)
  if (code === 'internal_error') return
  // The operator's listener takes no ops.
  if (isOpFaultCode(code) && server !== 'operator') {
    const process = typeof conv_id === 'string' ? shownConvId(conv_id) : undefined
    emit('op_refused', { server, code, conv_id: process, user: caller.user })
  } else emit('request_refused', { server, code, ...caller })
}

/** `results[i]` belongs to `ops[i]`; the engine answers a malformed op with the op itself. */
export function emitRefusedOps(
  emit: Emit,
  server: ServerName,
  user: string | undefined,
  ops: readonly (Op | OpResult)[],
  results: readonly OpResult[],
): void {
  for (let at = 0; at < results.length; at++) {
    const code = results[at]?.proc
    if (code === 'ok') continue
    const { conv_id } = ops[at] as { conv_id?: string }
    emit('op_refused', { server, code, conv_id: conv_id && shownConvId(conv_id), user })
  }
}
