/**
 * A replay record: the results of a request, from which its repeat is answered. What the request
 * itself contains is left out, because the repeat brings it. Numbers are big-endian with their
 * bytes in parentheses; a text is its length in bytes (2) and its UTF-8.
 *
 *     crc32 of the rest (4)
 *     of a request with a key, the digest of its ops (16)
 *     for each op, in order:
 *       outcome: 0 a show, 1 ok, 2 ok with the task id after that of the op before,
 *         3 refused (bits 0 and 1); flags (bits 2 to 7)
 *       1: the task (12), or, if flagged as near to the one before, what differs: its bytes 2, 3
 *         and 9 to 11 (5); 3: code, description and, if flagged, the member and the task (12)
 *       if flagged, the ref: where it is not the one that the op names
 */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { OpFaultCode } from '../core/faults.ts'
import type { Op, OpResult } from '../core/model.ts'
import { idBytes } from './ids.ts'
import { empty_doc } from './json.ts'
import { isOp, refOf } from './op.ts'

/** A result for each op, in order; undefined for a show. */
export type KeptResults = readonly (OpResult | undefined)[]

const [shown, ok, ok_next, refused] = [0, 1, 2, 3]
const flag = {
  is_modify: 1 << 2,
  resumed: 1 << 3,
  ref: 1 << 4,
  ref_number: 1 << 5,
  /** Of a refused op; of another, `near`. */
  task: 1 << 6,
  near: 1 << 6,
  key: 1 << 7,
} as const
const checksum_bytes = 4
const id_bytes = 12
const near_bytes = 5
export const digest_bytes = 16

let bytes = Buffer.allocUnsafeSlow(4 * 1024)
let end = 0

/** The bytes are valid until the next call. */
export function encodeReplay(
  ops: readonly (Op | OpResult)[],
  results: readonly OpResult[],
  digest: string | undefined,
): Buffer {
  end = checksum_bytes
  if (digest !== undefined) end += bytes.write(digest, end, 'hex')
  let before = ''
  for (let at = 0; at < ops.length; at++) {
    const op = ops[at] as Op | OpResult
    const result = results[at] as OpResult
    reserve(1)
    if (isShow(op)) bytes[end++] = shown
    else {
      putResult(op, result, before)
      if (result.obj_id !== undefined) before = result.obj_id
    }
  }
  bytes.writeUInt32BE(crc32(bytes.subarray(checksum_bytes, end)))
  return bytes.subarray(0, end)
}

function putResult(op: Op | OpResult, result: OpResult, before: string): void {
  const { proc, obj_id, resumed, key, ref, ref_is_number } = result
  const own = refIn(op)
  const has_own_ref = ref === own.ref && ref_is_number === own.ref_is_number
  let first =
    (resumed === undefined ? 0 : flag.is_modify) |
    (resumed === true ? flag.resumed : 0) |
    (has_own_ref || ref === null ? 0 : flag.ref) |
    (ref_is_number ? flag.ref_number : 0)
  if (proc === 'ok') {
    const id = obj_id as string
    const is_near = isNear(before, id)
    const is_next = is_near && numberOf(id) === numberOf(before) + 1 && isSameSecond(before, id)
    first |= is_next ? ok_next : is_near ? ok | flag.near : ok
    bytes[end++] = first
    if (!is_next) putId(id, is_near)
  } else {
    first |= refused | (obj_id === undefined ? 0 : flag.task) | (key === undefined ? 0 : flag.key)
    bytes[end++] = first
    putText(proc)
    putText(result.description ?? '')
    if (key !== undefined) putText(key)
    if (obj_id !== undefined) putId(obj_id)
  }
  if (first & flag.ref) putText(ref as string)
}

const isShow = (op: Op | OpResult): boolean => op.type === 'show' && isOp(op)

/** The ref that an op names, as its result echoes it. */
function refIn(op: Op | OpResult): Pick<OpResult, 'ref' | 'ref_is_number'> {
  return isOp(op) ? refOf(op.ref) : op
}

/** Whether a process has made both ids, at most some hours apart. */
function isNear(before: string, obj_id: string): boolean {
  if (before === '' || !obj_id.startsWith(before.slice(0, 4))) return false
  return obj_id.startsWith(before.slice(8, 18), 8)
}

const isSameSecond = (before: string, obj_id: string): boolean =>
  obj_id.startsWith(before.slice(4, 8), 4)

const numberOf = (obj_id: string): number => Number.parseInt(obj_id.slice(18), 16)

function nextId(before: string): string {
  return before.slice(0, 18) + (numberOf(before) + 1).toString(16).padStart(6, '0')
}

function putId(obj_id: string, is_near = false): void {
  reserve(id_bytes)
  const id = idBytes(obj_id)
  end += bytes.write(is_near ? id.slice(2, 4) + id.slice(9) : id, end, 'latin1')
}

function putText(text: string): void {
  const length = Buffer.byteLength(text)
  reserve(2 + length)
  end = bytes.writeUInt16BE(length, end)
  end += bytes.write(text, end)
}

function reserve(more_bytes: number): void {
  if (end + more_bytes <= bytes.length) return
  const larger = Buffer.allocUnsafeSlow(2 * (end + more_bytes))
  bytes.copy(larger, 0, 0, end)
  bytes = larger
}

export interface DecodedReplay {
  /** Of the ops, in hex; empty for a signed request. */
  readonly digest: string
  results(ops: readonly (Op | OpResult)[]): KeptResults
}

/** `damaged` where the checksum does not match. The bytes must stay as they are. */
export function decodeReplay(record: Buffer, has_digest: boolean): DecodedReplay | 'damaged' {
  if (!isReadableReplay(record)) return 'damaged'
  const results_at = checksum_bytes + (has_digest ? digest_bytes : 0)
  return {
    digest: record.toString('hex', checksum_bytes, results_at),
    results(ops) {
      const from: ReadCursor = { record, at: results_at, before: '' }
      return ops.map((op) => readResult(from, op))
    },
  }
}

export function isReadableReplay(record: Buffer): boolean {
  if (record.length <= checksum_bytes) return false
  return record.readUInt32BE(0) === crc32(record.subarray(checksum_bytes))
}

interface ReadCursor {
  readonly record: Buffer
  at: number
  before: string
}

function readResult(from: ReadCursor, op: Op | OpResult): OpResult | undefined {
  const first = from.record[from.at++] as number
  const what = first & 3
  if (what === shown) return undefined
  const { type, id_text } = op
  const head = {
    ...(type === undefined ? {} : { type }),
    ...(id_text === undefined ? {} : { id_text }),
  }
  if (what === refused) {
    const proc = readText(from) as OpFaultCode
    const description = readText(from)
    const key = first & flag.key ? { key: readText(from) } : {}
    const task = first & flag.task ? { obj_id: readId(from) } : {}
    return {
      ...head,
      ...refOfResult(from, first, op),
      obj: 'task',
      ...task,
      proc,
      description,
      ...key,
    }
  }
  const obj_id = what === ok_next ? nextId(from.before) : readId(from, (first & flag.near) !== 0)
  from.before = obj_id
  const resumed = first & flag.is_modify ? { resumed: (first & flag.resumed) !== 0 } : {}
  return { ...head, ...refOfResult(from, first, op), obj: 'task', obj_id, proc: 'ok', ...resumed }
}

function refOfResult(
  from: ReadCursor,
  first: number,
  op: Op | OpResult,
): Pick<OpResult, 'ref' | 'ref_is_number'> {
  const is_number = (first & flag.ref_number) !== 0
  if (first & flag.ref) return refOf({ text: readText(from), is_number })
  const { ref } = refIn(op)
  return ref === null ? { ref } : refOf({ text: ref, is_number })
}

function readId(from: ReadCursor, is_near = false): string {
  const { record, at, before } = from
  from.at += is_near ? near_bytes : id_bytes
  const hex = record.toString('hex', at, from.at)
  const id = is_near
    ? before.slice(0, 4) + hex.slice(0, 4) + before.slice(8, 18) + hex.slice(4)
    : hex
  from.before = id
  return id
}

function readText(from: ReadCursor): string {
  const { record } = from
  const at = from.at + 2
  from.at = at + record.readUInt16BE(from.at)
  return record.toString('utf8', at, from.at)
}

/** Of what ops ask for, their data by its text. In hex, which costs less than bytes do. */
export function digestOfOps(ops: readonly (Op | OpResult)[]): string {
  const texts: string[] = []
  for (const op of ops) {
    if (!isOp(op)) texts.push(JSON.stringify(op))
    else {
      const { type, id_text, conv_id, ref } = op
      const members: unknown[] = [type, id_text, conv_id, ref?.text, ref?.is_number]
      if (op.type !== 'create') members.push(op.obj_id)
      if (op.type === 'modify') members.push(op.is_sync, op.node_id)
      const { text } = op.type === 'show' ? empty_doc : op.data
      texts.push(JSON.stringify([...members, text.length]), text)
    }
  }
  return hash('sha256', texts.join('\n'), 'hex').slice(0, 2 * digest_bytes)
}
