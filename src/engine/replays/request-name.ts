/**
 * What identifies a request and its repeat: user, timestamp and signature, or caller and
 * `request_key` (wire 1.6). Unnamed are a signed request that creates without a ref, because each
 * may be meant, and one that changes nothing.
 */
import { hash } from 'node:crypto'
import { bytesOf24 } from '../../codec/ids.ts'
import { isOp } from '../../codec/op.ts'
import { digestOfOps } from '../../codec/replay-record.ts'
import { fault } from '../../core/faults.ts'
import type { Caller, CreateOp, Op, OpResult } from '../../core/model.ts'
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
  kept: KeptRecord | undefined
}

export const request_key_chars_max = 255

/** A UUID of version 7 begins with its time in milliseconds. */
const timed_uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** `is_change`: an op on another object than a task changes something. Throws `format_error`. */
export function nameOf(
  ops: readonly (Op | OpResult)[],
  { user, payer, signed, request_key }: Caller,
  is_change = false,
): RequestName | undefined {
  if (request_key !== undefined) {
    checkKey(request_key)
    if (!is_change && !ops.some(isChange)) return undefined
    return {
      is_signed: false,
      caller: user ?? payer,
      ...partsOfKey(request_key),
      digest: digestOfOps(ops),
      kept: undefined,
    }
  }
  if (signed === undefined || (!is_change && !changesOnce(ops))) return undefined
  // 96 bits: a user could at most make two requests of its own look alike.
  const id = bytesOf24(signed.signature)
  const { timestamp_s: time_s } = signed
  return { is_signed: true, caller: user, time_s, id, digest: undefined, kept: undefined }
}

function isChange(op: Op | OpResult): boolean {
  return isOp(op) && op.type !== 'show'
}

/** Whether ops change tasks, and none creates one each time that it is applied. */
function changesOnce(ops: readonly (Op | OpResult)[]): boolean {
  let changes = false
  for (const op of ops) {
    if (!isChange(op)) continue
    if (op.type === 'create' && (op as CreateOp).ref === undefined) return false
    changes = true
  }
  return changes
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
    return { id: hash('sha256', key, 'binary').slice(0, 16), time_s: undefined }
  }
  const bytes = Buffer.from(key.replaceAll('-', ''), 'hex')
  return { id: bytes.toString('latin1'), time_s: Math.floor(bytes.readUIntBE(0, 6) / 1_000) }
}
