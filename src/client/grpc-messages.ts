/**
 * Converts ops to messages of the proto, and results and failed calls back. Data is the same JSON
 * text in both directions. A refusal of the server carries a google.rpc.ErrorInfo with the fault
 * code (wire 2); a failure without one comes from grpc-js or a proxy and is classified by its
 * status.
 */
import { type ServiceError, status } from '@grpc/grpc-js'
import { isServedFaultCode } from '../core/faults.ts'
import type { HistoryEntry } from '../core/model.ts'
import type {
  GetTaskRequest,
  HistoryEntry as HistoryEntryMessage,
  Op,
  OpResult,
  Task,
} from '../server/grpc/generated/messages.ts'
import {
  readBytes,
  readCursor,
  readNumber,
  sized_field,
  skipField,
} from '../server/grpc/protobuf.ts'
import type { Sent } from '../server/grpc/schema.ts'
import type { ClientResult, ClientTask } from './api.ts'
import { type ClientFault, type ClientFaultCode, clientFault } from './faults.ts'
import type { SentOp } from './sent-op.ts'
import { withParsedData } from './transport.ts'

export function messageOf(op: SentOp): Sent<Op> {
  const { type, id = '', conv_id, ref, node_id = '', is_sync } = op
  const data_json = Buffer.from(op.data_text)
  const named = ref === undefined ? {} : { ref }
  const target = targetOf(op)
  if (type === 'create') return { id, create: { conv_id, ...named, data_json } }
  if (type === 'modify') return { id, modify: { ...target, data_json, is_sync, node_id } }
  return { id, show: target }
}

/** A message holds a ref or an obj_id; with both given, obj_id decides (wire 1.1). */
export function targetOf({ conv_id, ref, obj_id }: SentOp): Sent<GetTaskRequest> {
  if (obj_id !== undefined) return { conv_id, obj_id }
  return ref === undefined ? { conv_id } : { conv_id, ref }
}

/** One result for each op; throws `bad_answer` where their counts differ. */
export function resultsOf(results: readonly OpResult[], ops: readonly SentOp[]): ClientResult[] {
  if (results.length !== ops.length) {
    throw clientFault('bad_answer', `${results.length} results for ${ops.length} ops`)
  }
  return results.map((result, at) => resultOf(result, ops[at] as SentOp))
}

function resultOf(result: OpResult, op: SentOp): ClientResult {
  const { ref, obj_id, proc, description, task } = result
  return {
    ...(op.id === undefined ? {} : { id: op.id }),
    ref: ref ?? null,
    ...(obj_id === '' ? {} : { obj_id }),
    proc: proc as ClientResult['proc'],
    ...(proc === 'ok' ? {} : { description }),
    ...(task === null ? {} : { task: taskOf(task) }),
  }
}

export function taskOf(task: Task): ClientTask {
  return withParsedData({
    obj_id: task.obj_id,
    conv_id: task.conv_id,
    ref: task.ref ?? null,
    status: task.status as ClientTask['status'],
    user_id: task.user_id === '' ? null : task.user_id,
    create_time_ms: Number(task.create_time_ms),
    change_time_ms: Number(task.change_time_ms),
    node_id: task.node_id,
    node_prev_id: task.node_prev_id,
    data_text: Buffer.from(task.data_json).toString('utf8'),
    ...(task.status_details === null ? {} : { status_details: task.status_details }),
    ...(task.history.length === 0 ? {} : { history: task.history.map(entryOf) }),
  })
}

function entryOf({ node_id, at_ms, why, by, tag }: HistoryEntryMessage): HistoryEntry {
  return {
    ...{ node_id, at_ms: Number(at_ms), why: why as HistoryEntry['why'] },
    ...(by === '' ? {} : { by }),
    ...(tag === '' ? {} : { tag }),
  }
}

export function faultOfStatus(error: ServiceError): ClientFault {
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? []
  const reason = Buffer.isBuffer(packed) ? reasonIn(packed)?.toLowerCase() : undefined
  if (reason !== undefined && isServedFaultCode(reason)) {
    const opening = `${reason}: `
    const { details } = error
    const text = details.startsWith(opening) ? details.slice(opening.length) : details
    return clientFault(reason, text, { cause: error })
  }
  const code = codeOfStatus(error)
  const no_connection = /^(No connection established|Name resolution failed)/.test(error.details)
  return clientFault(code, error.details, {
    cause: error,
    // Without an ErrorInfo the call, or earlier batches of its stream, may have been applied.
    outcome: no_connection ? 'not_applied' : 'unknown',
  })
}

const codes: Partial<Record<status, ClientFaultCode>> = {
  [status.UNAVAILABLE]: 'unreachable',
  [status.CANCELLED]: 'unreachable',
  [status.UNKNOWN]: 'unreachable',
  [status.DEADLINE_EXCEEDED]: 'timed_out',
  [status.RESOURCE_EXHAUSTED]: 'body_too_large',
  [status.UNAUTHENTICATED]: 'bad_signature',
  [status.PERMISSION_DENIED]: 'access_denied',
  [status.UNIMPLEMENTED]: 'not_found',
  [status.INVALID_ARGUMENT]: 'format_error',
}

function codeOfStatus({ code, details }: ServiceError): ClientFaultCode {
  // A reset stream or connection without a reason from the server.
  if (code === status.INTERNAL) return /RST_STREAM/.test(details) ? 'unreachable' : 'internal_error'
  return codes[code] ?? 'bad_answer'
}

/** ErrorInfo.reason in a google.rpc.Status: details (3) → Any.value (2) → reason (1). */
function reasonIn(bytes: Buffer): string | undefined {
  for (const any of sizedFields(bytes, 3)) {
    const [type] = sizedFields(any, 1)
    if (!type?.toString().endsWith('/google.rpc.ErrorInfo')) continue
    const [info] = sizedFields(any, 2)
    const [reason] = info === undefined ? [] : sizedFields(info, 1)
    return reason?.toString()
  }
  return undefined
}

/** The length-delimited fields with this number; none for malformed bytes. */
function sizedFields(bytes: Buffer, wanted: number): Buffer[] {
  const from = readCursor(bytes)
  const found: Buffer[] = []
  try {
    while (from.at < from.end) {
      const tag = readNumber(from)
      if (tag === sized_field(wanted)) found.push(readBytes(from))
      else skipField(from, tag)
    }
  } catch {
    return []
  }
  return found
}
