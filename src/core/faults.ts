/**
 * The table of all faults. Codes never change, texts may. Rows are in order of precedence: if
 * several apply, the first is answered.
 *
 * `whole` faults answer a whole request, `op` faults one op, `admin` faults administration calls
 * and waits. Op faults are values in results; the others are thrown. Calls without op results throw
 * five op faults too: `conv_not_found` (administration), `task_damaged` and `not_found_task` (a
 * task that is read or waited for), `wrong_validate_params` (a schema), `access_denied` (a client
 * certificate). A malformed option or argument throws a RangeError or TypeError.
 */

export interface WholeRow {
  readonly http: number
  readonly grpc: string
  readonly text: string
}

const whole = (http: number, grpc: string, text: string): WholeRow => ({ http, grpc, text })

export const wholeFaults = {
  bad_request: whole(400, 'RESOURCE_EXHAUSTED', 'not HTTP as it should be'),
  not_found: whole(404, 'UNIMPLEMENTED', 'no such path'),
  method_not_allowed: whole(405, 'UNIMPLEMENTED', 'only POST'),
  shutting_down: whole(503, 'UNAVAILABLE', 'shutting down'),
  store_failed: whole(503, 'UNAVAILABLE', 'the store has failed'),
  overloaded: whole(503, 'UNAVAILABLE', 'too much is waiting already'),
  no_space: whole(507, 'RESOURCE_EXHAUSTED', 'the disk is nearly full'),
  unsupported_encoding: whole(415, 'INTERNAL', 'Content-Encoding is not supported'),
  body_too_large: whole(413, 'RESOURCE_EXHAUSTED', 'the body is over the limit'),
  request_timeout: whole(408, 'DEADLINE_EXCEEDED', 'the body did not arrive in time'),
  bad_signature: whole(401, 'UNAUTHENTICATED', 'unknown user or wrong signature'),
  stale_timestamp: whole(401, 'UNAUTHENTICATED', 'timestamp outside the window'),
  rate_limited: whole(429, 'RESOURCE_EXHAUSTED', 'over the rate of this user'),
  format_error: whole(400, 'INVALID_ARGUMENT', 'the body is not as described'),
  too_many_ops: whole(400, 'RESOURCE_EXHAUSTED', 'too many ops'),
  repeated_request: whole(
    409,
    'ALREADY_EXISTS',
    'this request was applied before; its answer is not repeated',
  ),
  request_key_reused: whole(409, 'INVALID_ARGUMENT', 'the request_key belongs to another request'),
  internal_error: whole(500, 'INTERNAL', 'internal error'),
}

export interface OpRow {
  readonly grpc: string
  /** When it applies; the description in a result says more. */
  readonly when: string
}

const op = (grpc: string, when: string): OpRow => ({ grpc, when })

export const opFaults = {
  error: op('INVALID_ARGUMENT', 'the op is malformed; `key` names the member'),
  access_denied: op(
    'PERMISSION_DENIED',
    'no grant of the user covers it, or there is no such process',
  ),
  conv_not_found: op('NOT_FOUND', 'no such process; said only to callers who may see all of them'),
  conveyor_is_not_active: op(
    'FAILED_PRECONDITION',
    'the process is paused, or a draft without nodes',
  ),
  not_found_task: op('NOT_FOUND', 'no such task in this process; an ended one is only shown'),
  no_api_callback_in_node_with_task: op(
    'FAILED_PRECONDITION',
    '`is_sync` or `node_id` was sent, and the task does not wait there',
  ),
  task_not_in_current_sync_callback_node: op(
    'FAILED_PRECONDITION',
    'a body was posted to the address of a synchronous callback, and the task does not wait there',
  ),
  task_size_overflow_limit: op(
    'RESOURCE_EXHAUSTED',
    'the data would be over the limit, also after a merge',
  ),
  wrong_validate_params: op(
    'INVALID_ARGUMENT',
    'an input parameter of the process is not satisfied',
  ),
  not_unical_ref: op('ALREADY_EXISTS', 'another live task holds the ref'),
  answer_too_large: op(
    'RESOURCE_EXHAUSTED',
    'the tasks shown in this request exceed `answer_bytes_max`',
  ),
  task_damaged: op('DATA_LOSS', 'the stored record fails its checksum'),
  too_many_tasks: op(
    'RESOURCE_EXHAUSTED',
    'the process has `process_tasks_max` live tasks already',
  ),
}

export const adminFaults = {
  bad_definition: 'the definition has mistakes',
  tasks_in_node: 'tasks rest in a node that the definition drops',
  draft_outdated: 'another version was confirmed since the draft began',
  process_has_tasks: 'the process still has live tasks',
  user_exists: 'there is a user with this id',
  user_not_found: 'there is no such user',
  bad_schedule: 'the schedule has a mistake, or is never due',
  schedule_not_found: 'there is no such schedule',
  key_missing: 'the key of the secrets is missing or wrong',
  file_held: 'another process holds the file',
  not_a_database: 'the file is no conveyor database',
  older_format: 'the file was written by an older conveyor',
  newer_format: 'the file was written by a newer conveyor',
  native_not_loaded: 'a native file that data files need does not load here',
  bad_filter: 'the filter of tasks is not as described',
  bad_cursor: 'the cursor is malformed, or belongs to another filter or order',
  node_not_found: 'there is no such node',
  bulk_id_taken: 'another bulk job has this id',
  not_possible: 'not possible in this state',
  result_timeout: 'the task has not ended in the time given',
  changes_gone: 'changes after this position are no longer kept',
} as const

/** The gRPC status of the admin faults that its calls can meet. */
export const admin_statuses = {
  bad_filter: 'INVALID_ARGUMENT',
  bad_cursor: 'INVALID_ARGUMENT',
  node_not_found: 'NOT_FOUND',
  not_possible: 'FAILED_PRECONDITION',
  changes_gone: 'OUT_OF_RANGE',
} as const satisfies Partial<Record<keyof typeof adminFaults, string>>

/** The code of a fault that gRPC callers can meet. */
export type ServedFaultCode = WholeFaultCode | OpFaultCode | keyof typeof admin_statuses

export type WholeFaultCode = keyof typeof wholeFaults
export type OpFaultCode = keyof typeof opFaults
export type AdminFaultCode = keyof typeof adminFaults
export type FaultCode = WholeFaultCode | OpFaultCode | AdminFaultCode

/** An expected failure: `code` is stable, `message` is safe to show to callers. */
export interface Fault extends Error {
  readonly code: FaultCode
  /** With `rate_limited`: seconds after which another request may enter. */
  readonly retry_after_s?: number
  /** With `bad_definition`: every mistake of the definition. */
  readonly mistakes?: readonly string[]
  /** The same with where each is, and with `tasks_in_node` each node. */
  readonly places?: readonly Mistake[]
  /** Of a refused import: what would not have refused it. */
  readonly warnings?: readonly Mistake[]
  /** The message for outside callers, where `message` names files of this machine. */
  readonly outside?: string
}

/** A mistake or warning of a definition, with its place as far as known. */
export interface Mistake {
  readonly text: string
  readonly conv_id?: string
  readonly node_id?: string
  readonly node_title?: string
}

type MemberName = 'mistakes' | 'places' | 'warnings' | 'retry_after_s' | 'outside' | 'cause'

/** Makes a Fault. `text` defaults to the text of the table; `cause` is never sent to callers. */
export function fault(
  code: FaultCode,
  text?: string,
  more: Partial<Pick<Fault, MemberName>> = {},
): Fault {
  const error = new Error(text ?? faultText(code), { cause: more.cause })
  Object.assign(error, { name: 'Fault', code })
  const { cause: _, ...members } = more
  return Object.assign(error, members) as Fault
}

export function isFault(value: unknown): value is Fault {
  if (!(value instanceof Error) && (typeof value !== 'object' || value === null)) return false
  const code = (value as { code?: unknown }).code
  return typeof code === 'string' && isFaultCode(code)
}

/** The code of a fault; any other thrown value is a bug. */
export function codeOf(thrown: unknown): FaultCode {
  return isFault(thrown) ? thrown.code : 'internal_error'
}

/** Whether the store refuses writes, for now or for good. Any other error of a commit is a bug. */
export function isStoreUnavailable(value: unknown): boolean {
  return (
    isFault(value) &&
    (value.code === 'no_space' || value.code === 'overloaded' || isStoreClosed(value))
  )
}

/** Whether the store refuses writes for good. */
export function isStoreClosed(value: unknown): boolean {
  return isFault(value) && (value.code === 'store_failed' || value.code === 'shutting_down')
}

export function isWholeFaultCode(code: string): code is WholeFaultCode {
  return Object.hasOwn(wholeFaults, code)
}

export function isOpFaultCode(code: string): code is OpFaultCode {
  return Object.hasOwn(opFaults, code)
}

/** The name of the gRPC status of a fault; undefined for one that gRPC does not serve. */
export function grpcStatusOf(code: FaultCode): string | undefined {
  if (isWholeFaultCode(code)) return wholeFaults[code].grpc
  if (isOpFaultCode(code)) return opFaults[code].grpc
  return (admin_statuses as Partial<Record<string, string>>)[code]
}

export function isServedFaultCode(code: string): code is ServedFaultCode {
  return isFaultCode(code) && grpcStatusOf(code) !== undefined
}

function isFaultCode(code: string): code is FaultCode {
  return isWholeFaultCode(code) || isOpFaultCode(code) || Object.hasOwn(adminFaults, code)
}

function faultText(code: FaultCode): string {
  if (isWholeFaultCode(code)) return wholeFaults[code].text
  if (Object.hasOwn(adminFaults, code)) return adminFaults[code as AdminFaultCode]
  return code
}
