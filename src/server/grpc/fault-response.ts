/**
 * Faults as gRPC statuses (wire 2): the status code of the fault table, the message `code:
 * description`, and a google.rpc.ErrorInfo in the details. An error that is no Fault is a bug: it
 * goes to `onBug`, and the caller gets `internal_error` without its text.
 *
 * The details are a google.rpc.Status, written field by field: four fields of two frozen messages
 * do not justify a second proto.
 */
import { Metadata, type StatusObject, status } from '@grpc/grpc-js'
import {
  grpcStatusOf,
  isFault,
  isServedFaultCode,
  type ServedFaultCode,
  wholeFaults,
} from '../../core/faults.ts'
import { emitRefused, type Refusal } from '../../core/refusals.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import {
  number_field,
  sized_field,
  sizedBytes,
  type WriteCursor,
  writeFieldHead,
} from './protobuf.ts'

/** A fault in the form that a caller may see. */
export interface PublicFault {
  readonly code: ServedFaultCode
  readonly description: string
}

/** Where refusals are counted and logged, and bugs reported. */
export interface FaultContext {
  readonly engine: Pick<ServedEngine, 'counters' | 'emit'>
  readonly onBug: (bug: unknown) => void
}

/** What is counted and logged of a call, or of a batch, that ends with a fault. */
export interface EndedCall extends Pick<Refusal, 'address' | 'conv_id' | 'began_ms'> {
  /** A long call, which normally ends with `shutting_down`. */
  readonly is_long?: true
}

/** Counts and logs what ends a call, and returns its public form; a bug also goes to `onBug`. */
export function endInFault(
  thrown: unknown,
  { engine, onBug }: FaultContext,
  { is_long, ...call }: EndedCall,
): PublicFault {
  const found = publicFault(thrown, onBug)
  const { code } = found
  if (is_long && code === 'shutting_down') engine.counters.countRequest('grpc', code)
  else emitRefused(engine, { ...call, server: 'grpc', code })
  return found
}

function publicFault(thrown: unknown, onBug: (bug: unknown) => void): PublicFault {
  if (isFault(thrown)) {
    const { code, message, outside = message } = thrown
    if (code === 'internal_error') return { code, description: wholeFaults[code].text }
    if (isServedFaultCode(code)) return { code, description: outside }
  }
  onBug(thrown)
  return { code: 'internal_error', description: wholeFaults.internal_error.text }
}

/** The status with which grpc-js ends a failed call. */
export function faultStatus(thrown: unknown, context: FaultContext, call: EndedCall): StatusObject {
  const { code, description } = endInFault(thrown, context, call)
  const number = status[grpcStatusOf(code) as keyof typeof status]
  // A lone surrogate cannot be encoded as UTF-8.
  const details = `${code}: ${description}`.toWellFormed()
  const metadata = new Metadata()
  metadata.set('grpc-status-details-bin', statusDetails(number, details, code.toUpperCase()))
  return { code: number, details, metadata }
}

const error_domain = 'conveyor'

/** google.rpc.Status {code = 1, message = 2, details = 3: Any {type_url = 1, value = 2}}. */
function statusDetails(code: number, message: string, reason: string): Buffer {
  const info = Buffer.concat([text(1, reason), text(2, error_domain)])
  const any = Buffer.concat([text(1, 'type.googleapis.com/google.rpc.ErrorInfo'), field(2, info)])
  return Buffer.concat([Buffer.from([number_field(1), code]), text(2, message), field(3, any)])
}

function text(number: number, value: string): Buffer {
  return field(number, Buffer.from(value))
}

function field(number: number, bytes: Buffer): Buffer {
  const to: WriteCursor = { buffer: Buffer.allocUnsafe(sizedBytes(bytes.length)), at: 0 }
  writeFieldHead(to, sized_field(number), bytes.length)
  to.buffer.set(bytes, to.at)
  return to.buffer
}
