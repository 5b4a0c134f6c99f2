/**
 * The errors of a client's calls: a code of the server's fault table, or a transport error of the
 * client. `outcome` says whether the server may have applied the call nevertheless.
 */
import { isServedFaultCode, type ServedFaultCode, type WholeFaultCode } from '../core/faults.ts'

const clientFaults = {
  unreachable: 'no connection, or it broke before the answer',
  timed_out: 'no answer within the time given',
  result_timeout: 'the task has not ended within the time given',
  bad_answer: 'the answer is not one of a Conveyor server',
} as const

export type ClientFaultCode = ServedFaultCode | keyof typeof clientFaults

export interface ClientFault extends Error {
  readonly code: ClientFaultCode
  /** `unknown`: the call may have been applied. */
  readonly outcome: 'not_applied' | 'unknown'
  /** The pause that the server asks for before another try. */
  readonly retry_after_ms?: number
}

interface More {
  readonly outcome?: ClientFault['outcome']
  readonly retry_after_ms?: number | undefined
  readonly cause?: unknown
}

/** Makes a ClientFault; `outcome` defaults to that of the code. */
export function clientFault(code: ClientFaultCode, text: string, more: More = {}): ClientFault {
  const { outcome = outcomeOf(code), retry_after_ms, cause } = more
  const error = new Error(text, cause === undefined ? {} : { cause })
  const pause = retry_after_ms === undefined ? {} : { retry_after_ms }
  return Object.assign(error, { name: 'Fault', code, outcome, ...pause })
}

export function isClientFault(value: unknown): value is ClientFault {
  if (!(value instanceof Error)) return false
  const { code } = value as { code?: unknown }
  return typeof code === 'string' && isCode(code) && 'outcome' in value
}

/** Faults that concern one batch; any other would refuse the next batch too. */
const batch_fault_codes: ReadonlySet<string> = new Set<WholeFaultCode>([
  'format_error',
  'too_many_ops',
  'body_too_large',
  'rate_limited',
  'overloaded',
  'no_space',
])

export function isBatchFault(code: string): code is WholeFaultCode {
  return batch_fault_codes.has(code)
}

function isCode(code: string): code is ClientFaultCode {
  return isServedFaultCode(code) || Object.hasOwn(clientFaults, code)
}

/** After a fault of a whole request nothing is applied, except for these. */
function outcomeOf(code: ClientFaultCode): ClientFault['outcome'] {
  const unknown: readonly ClientFaultCode[] = [
    'store_failed',
    'internal_error',
    'unreachable',
    'timed_out',
    'bad_answer',
    // An earlier request was applied, whose answer this client does not have.
    'repeated_request',
  ]
  return unknown.includes(code) ? 'unknown' : 'not_applied'
}
