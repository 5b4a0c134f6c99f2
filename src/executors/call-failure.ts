/**
 * The table of what can go wrong with a call: whether a retry may help, and the tag for the task's
 * error fields. A complete response of any status is left to the logic, except for the statuses by
 * which a server asks for a retry.
 */
import type { ErrorType, JobOutcome } from '../process/logic.ts'

export const callFailureTable = {
  timeout: { error_type: 'hardware', tag: 'api_expire_query' },
  connection: { error_type: 'hardware', tag: 'api_bind_error' },
  busy: { error_type: 'hardware', tag: 'api_fatal_error' },
  stopped: { error_type: 'hardware', tag: 'api_fatal_error' },
  bad_url: { error_type: 'software', tag: 'api_bad_answer' },
  refused_address: { error_type: 'software', tag: 'api_bad_answer' },
  certificate: { error_type: 'software', tag: 'api_bad_answer' },
  redirects: { error_type: 'software', tag: 'api_bad_answer' },
  bad_answer: { error_type: 'software', tag: 'api_bad_answer' },
  too_large: { error_type: 'software', tag: 'api_task_size_overflow_limit' },
  not_text: { error_type: 'software', tag: 'api_no_valid_json' },
} as const satisfies Record<string, { readonly error_type: ErrorType; readonly tag: string }>

export type CallFailureCause = keyof typeof callFailureTable

/** A failure that a call may meet. `description` contains no secrets. */
export interface CallFailure {
  readonly cause: CallFailureCause
  readonly description: string
}

export function callFailure(cause: CallFailureCause, description: string): CallFailure {
  return { cause, description }
}

export function isCallFailure(value: object): value is CallFailure {
  return 'cause' in value && 'description' in value
}

export function outcomeOf({ cause, description }: CallFailure): JobOutcome {
  return { outcome: 'failed', ...callFailureTable[cause], description }
}

/** Whether a server asks for a retry by this status. */
export function isBusyStatus(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429
}

const certificate_codes = [
  'CERT_',
  'ERR_TLS_',
  'SELF_SIGNED_',
  'DEPTH_ZERO_',
  'UNABLE_TO_',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'HOSTNAME_MISMATCH',
]

/** An error of a socket, of TLS or of the HTTP parser as a failure. */
export function failureOfError(error: unknown): CallFailure {
  const { code = '', message = String(error) } = error as { code?: string; message?: string }
  if (certificate_codes.some((start) => code.startsWith(start))) {
    return callFailure('certificate', `the certificate is not accepted: ${code}`)
  }
  if (code.startsWith('HPE_') || code.startsWith('ERR_HTTP_') || code === 'ERR_INVALID_CHAR') {
    return callFailure('bad_answer', `no HTTP as it should be: ${code}`)
  }
  return callFailure('connection', code === '' ? message : `no connection: ${code}`)
}
