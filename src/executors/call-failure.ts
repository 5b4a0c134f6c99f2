/**
 * The table of call failures: the tag in the task's error fields, and whether a retry may succeed.
 * Tags, and the descriptions `failed_connect`, `timeout` and `no_scheme`, are fixed by the process
 * format. A response of any status is left to the logic.
 */
import type { CallFigures, ErrorType, JobOutcome } from '../process/logic.ts'

interface Row {
  readonly error_type: ErrorType
  readonly tag: string
  readonly may_pass?: true
}

export const callFailureTable = {
  failed_connect: { error_type: 'software', tag: 'api_bad_answer', may_pass: true },
  timeout: { error_type: 'software', tag: 'api_bad_answer', may_pass: true },
  bad_url: { error_type: 'software', tag: 'api_bad_answer' },
  refused_address: { error_type: 'software', tag: 'api_bad_answer' },
  certificate: { error_type: 'software', tag: 'api_bad_answer' },
  redirects: { error_type: 'software', tag: 'api_bad_answer' },
  bad_answer: { error_type: 'software', tag: 'api_bad_answer' },
  too_large: { error_type: 'software', tag: 'api_task_size_overflow_limit' },
  not_text: { error_type: 'software', tag: 'api_no_valid_json' },
  not_bound: { error_type: 'hardware', tag: 'api_bind_error' },
  inside: { error_type: 'hardware', tag: 'api_fatal_error' },
} as const satisfies Record<string, Row>

export type CallFailureCause = keyof typeof callFailureTable

/** What is known of a response, also of a failed one. */
export type Answered = Pick<CallFigures, 'status' | 'response_bytes'>

/** `description` contains no secrets. */
export interface CallFailure {
  readonly cause: CallFailureCause
  readonly description: string
  readonly answered?: Answered
}

export function callFailure(
  cause: CallFailureCause,
  description: string,
  answered?: Answered,
): CallFailure {
  return { cause, description, ...(answered && { answered }) }
}

export function isCallFailure(value: object): value is CallFailure {
  return 'cause' in value && 'description' in value
}

export function outcomeOf({ cause, description }: CallFailure): JobOutcome {
  return { outcome: 'failed', ...callFailureTable[cause], description }
}

/** Whether the status asks for a retry. */
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

/** Maps an error of a socket, of TLS or of the HTTP parser. */
export function failureOfError(error: unknown): CallFailure {
  const { code = '' } = error as { code?: string }
  if (certificate_codes.some((start) => code.startsWith(start))) {
    return callFailure('certificate', `the certificate is not accepted: ${code}`)
  }
  if (code.startsWith('HPE_') || code.startsWith('ERR_HTTP_') || code === 'ERR_INVALID_CHAR') {
    return callFailure('bad_answer', `no HTTP as it should be: ${code}`)
  }
  return callFailure('failed_connect', 'failed_connect')
}
