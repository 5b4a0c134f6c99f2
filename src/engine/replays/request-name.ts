/**
 * What identifies a request and its repeat: user, timestamp and signature, or caller and
 * `request_key` (wire 1.6). Unnamed are a signed request that creates without a ref, because each
 * may be meant, and one that changes nothing.
 */
import { hash } from 'node:crypto'
import { isOp } from '../../codec/op.ts'
import { digestOfOps } from '../../codec/replay-record.ts'
import { fault } from '../../core/faults.ts'
import type { Caller, Op, OpResult } from '../../core/model.ts'
import type { KeptRecord } from './replay-room.ts'

export interface RequestName {
  readonly is_signed: boolean
  /** The user or `payer`, if any. */
  readonly caller: string | undefined
  /** The request's own time. */
  readonly time_s: number | undefined
  /** Bytes, one character each. */
  readonly id: string
  /** Of the ops, if the id does not cover them. */
  readonly digest: string | undefined
  kept?: KeptRecord
}

export const request_key_chars_max = 255

const signature_digits = 40
/** A UUID of version 7 begins with its time in milliseconds. */
const timed_uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Throws `format_error` for an invalid key. */
export function nameOf(
  ops: readonly (Op | OpResult)[],
  { user, payer, signed, request_key }: Caller,
): RequestName | undefined {
  if (request_key !== undefined) {
    checkKey(request_key)
    if (!ops.some(isChange)) return undefined
    return {
      is_signed: false,
      caller: user ?? payer,
      ...partsOfKey(request_key),
      digest: digestOfOps(ops),
    }
  }
  if (signed === undefined || !ops.some(isChange) || ops.some(isNewEachTime)) return undefined
  const id = bytesOfHex(signed.signature.slice(0, signature_digits))
  return { is_signed: true, caller: user, time_s: signed.timestamp_s, id, digest: undefined }
}

function isChange(op: Op | OpResult): boolean {
  return isOp(op) && op.type !== 'show'
}

function isNewEachTime(op: Op | OpResult): boolean {
  return isOp(op) && op.type === 'create' && op.ref === undefined
}

export function checkKey(key: unknown): void {
  if (typeof key === 'string' && key !== '' && key.isWellFormed()) {
    // A character takes one or two UTF-16 units.
    if (key.length <= request_key_chars_max) return
    if ([...key.slice(0, 2 * request_key_chars_max + 1)].length <= request_key_chars_max) return
  }
  throw fault('format_error', `request_key: a text of 1 to ${request_key_chars_max} characters`)
}

function partsOfKey(key: string): Pick<RequestName, 'id' | 'time_s'> {
  if (!timed_uuid.test(key)) {
    return { id: hash('sha256', key, 'binary'), time_s: undefined }
  }
  const bytes = Buffer.from(key.replaceAll('-', ''), 'hex')
  return { id: bytes.toString('latin1'), time_s: Math.floor(bytes.readUIntBE(0, 6) / 1_000) }
}

function bytesOfHex(digits: string): string {
  return Buffer.from(digits, 'hex').toString('latin1')
}
