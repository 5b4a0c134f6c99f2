/**
 * Tells the log what a server has refused, once, where it answers: a whole request, or single ops
 * of one. A bug has a line of its own, so the `internal_error` that it becomes has none.
 */

import type { ServerName } from './counters.ts'
import type { Tell } from './events.ts'
import { type FaultCode, isOpFaultCode } from './faults.ts'
import type { Op, OpResult } from './model.ts'

export interface RefusedBy {
  readonly tell: Tell
  readonly server: ServerName
  readonly user?: string | undefined
  readonly address?: string | undefined
}

export function tellRefusal({ tell, ...by }: RefusedBy, code: FaultCode, conv_id?: unknown): void {
  if (code === 'internal_error') return
  if (isOpFaultCode(code)) {
    const { server, user } = by
    const process = typeof conv_id === 'string' ? conv_id : undefined
    tell('op_refused', { server, code, conv_id: process, user })
  } else tell('request_refused', { ...by, code })
}

/** `results[i]` is that of `ops[i]`; the engine answers a malformed op with itself. */
export function tellRefusedOps(
  tell: Tell,
  server: ServerName,
  user: string | undefined,
  ops: readonly (Op | OpResult)[],
  results: readonly OpResult[],
): void {
  for (let at = 0; at < results.length; at++) {
    const code = results[at]?.proc
    if (code === 'ok') continue
    const { conv_id } = ops[at] as { conv_id?: string }
    tell('op_refused', { server, code, conv_id, user })
  }
}
