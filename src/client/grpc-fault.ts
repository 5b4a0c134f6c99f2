/**
 * The end of a failed gRPC call as a ClientFault. The server's own refusals carry a
 * google.rpc.ErrorInfo with the code of the fault table (wire 2); what grpc-js or something on the
 * way ended is told by its status.
 *
 * Of the details, a google.rpc.Status, four fields are read and the others passed over.
 */
import { type ServiceError, status } from '@grpc/grpc-js'
import { isWholeFaultCode, opFaults } from '../words/faults.ts'
import { type ClientFault, type ClientFaultCode, clientFault } from './faults.ts'

export function faultOfStatus(error: ServiceError): ClientFault {
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? []
  const reason = packed instanceof Uint8Array ? reasonIn(packed)?.toLowerCase() : undefined
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
function reasonIn(bytes: Uint8Array): string | undefined {
  for (const any of fieldsOf(bytes, 3)) {
    const [type] = fieldsOf(any, 1)
    if (type === undefined || !textOf(type).endsWith('/google.rpc.ErrorInfo')) continue
    const [info] = fieldsOf(any, 2)
    const [reason] = info === undefined ? [] : fieldsOf(info, 1)
    return reason === undefined ? undefined : textOf(reason)
  }
  return undefined
}

/** The length-delimited fields with this number; nothing more where the bytes make no sense. */
function fieldsOf(bytes: Uint8Array, wanted: number): Uint8Array[] {
  const found: Uint8Array[] = []
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = bytes[at++] ?? 0
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    return value
  }
  while (at < bytes.length) {
    const tag = varint()
    const kind = tag & 7
    if (kind === 0) varint()
    else if (kind === 2) {
      const length = varint()
      if (Math.floor(tag / 8) === wanted) found.push(bytes.subarray(at, at + length))
      at += length
    } else return found
  }
  return found
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8')
}
