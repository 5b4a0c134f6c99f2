/**
 * The end of a failed gRPC call as a ClientFault. The server's own refusals carry a
 * google.rpc.ErrorInfo with the code of the fault table (wire 2); what grpc-js or something on the
 * way ended is told by its status.
 *
 * Of the details, a google.rpc.Status, four fields are read and the others passed over.
 */
import { type ServiceError, status } from '@grpc/grpc-js'
import { isWholeFaultCode, opFaults } from '../core/faults.ts'
import {
  readBytes,
  readCursor,
  readNumber,
  sized_field,
  skipField,
} from '../server/grpc/protobuf.ts'
import { type ClientFault, type ClientFaultCode, clientFault } from './faults.ts'

export function faultOfStatus(error: ServiceError): ClientFault {
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? []
  const reason = Buffer.isBuffer(packed) ? reasonIn(packed)?.toLowerCase() : undefined
  if (reason !== undefined && isToldCode(reason)) {
    const opening = `${reason}: `
    const { details } = error
    const text = details.startsWith(opening) ? details.slice(opening.length) : details
    return clientFault(reason, text, { cause: error })
  }
  const code = codeOfStatus(error)
  const no_connection = /^(No connection established|Name resolution failed)/.test(error.details)
  return clientFault(code, error.details, {
    cause: error,
    // Without a word of the server's own it may have been applied: a stream that ends on one batch
    // may have applied those before it.
    outcome: no_connection ? 'not_applied' : 'unknown',
  })
}

function isToldCode(code: string): code is ClientFaultCode {
  return isWholeFaultCode(code) || Object.hasOwn(opFaults, code)
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
  // A stream or connection that was cut; the server did not say why.
  if (code === status.INTERNAL) return /RST_STREAM/.test(details) ? 'unreachable' : 'internal_error'
  return codes[code] ?? 'bad_answer'
}

/** Status.details (3) → Any.value (2) → ErrorInfo.reason (1). */
function reasonIn(bytes: Buffer): string | undefined {
  for (const any of fieldsOf(bytes, 3)) {
    const [type] = fieldsOf(any, 1)
    if (!type?.toString().endsWith('/google.rpc.ErrorInfo')) continue
    const [info] = fieldsOf(any, 2)
    const [reason] = info === undefined ? [] : fieldsOf(info, 1)
    return reason?.toString()
  }
  return undefined
}

/** The length-delimited fields with this number; none where the bytes make no sense. */
function fieldsOf(bytes: Buffer, wanted: number): Buffer[] {
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
