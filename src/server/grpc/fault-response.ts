/**
 * A fault as gRPC says it (wire 2): the status of its row in the fault table, the message `code:
 * description`, and a google.rpc.ErrorInfo in the details. The one place that turns whatever was
 * thrown into a status; what is no Fault is a bug, told to the embedder and answered without its
 * text.
 *
 * The details are a google.rpc.Status, written here field by field: four fields of two messages
 * that will never change are less than a second proto to ship.
 */
import { Metadata, type StatusObject, status } from '@grpc/grpc-js'
import {
  isFault,
  isWholeFaultCode,
  type OpFaultCode,
  opFaults,
  type WholeFaultCode,
  wholeFaults,
} from '../../core/faults.ts'
import { number_field, sized_field } from './protobuf-read.ts'
import { sizedBytes, type WriteCursor, writeFieldHead } from './protobuf-write.ts'

/** A fault that may be told to a caller. */
export interface PublicFault {
  readonly code: WholeFaultCode | OpFaultCode
  readonly description: string
}

/** The refusal for anything thrown; `onBug` is told of what should not have been. */
export function publicFault(thrown: unknown, onBug: (bug: unknown) => void): PublicFault {
  if (isFault(thrown)) {
    const { code, message } = thrown
    if (code === 'internal_error') return { code, description: wholeFaults[code].text }
    if (isWholeFaultCode(code) || isOpFaultCode(code)) return { code, description: message }
  }
  onBug(thrown)
  return { code: 'internal_error', description: wholeFaults.internal_error.text }
}

/** The end of a call that failed, as grpc-js takes it. */
export function faultStatus(thrown: unknown, onBug: (bug: unknown) => void): StatusObject {
  const { code, description } = publicFault(thrown, onBug)
  const row = isWholeFaultCode(code) ? wholeFaults[code] : opFaults[code]
  const number = status[row.grpc]
  // What is not well formed cannot be encoded.
  const details = `${code}: ${description}`.toWellFormed()
  const metadata = new Metadata()
  metadata.set('grpc-status-details-bin', statusDetails(number, details, code.toUpperCase()))
  return { code: number, details, metadata }
}

export const error_domain = 'conveyor'

function isOpFaultCode(code: string): code is OpFaultCode {
  return Object.hasOwn(opFaults, code)
}

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
  const to: WriteCursor = { room: Buffer.allocUnsafe(sizedBytes(bytes.length)), at: 0 }
  writeFieldHead(to, sized_field(number), bytes.length)
  to.room.set(bytes, to.at)
  return to.room
}
