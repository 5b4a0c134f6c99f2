/**
 * Encodes the response messages of the proto: measures each message, then writes it once into a
 * buffer of that size. Empty texts are left out, as proto3 does; a ref has presence.
 */
import type { HistoryEntry, OpResult, StatusDetails, Task } from '../../core/model.ts'
import type { ActionResult } from '../../engine/api/task-api.ts'
import {
  number_field,
  numberBytes,
  sized_field,
  sizedBytes,
  textBytes,
  type WriteCursor,
  writeFieldHead,
  writeNumber,
  writeText,
} from './protobuf.ts'
import type { OpMessage, StreamBatch } from './request-messages.ts'

/** The answer to one batch of a stream. */
export interface StreamResponse {
  readonly proc: string
  readonly description: string
  readonly results: readonly OpResult[]
}

/** A CreateTaskResponse or ModifyTaskResponse, which have the same fields. */
export function encodeAddress({ ref, obj_id = '' }: OpResult): Buffer {
  const to = newMessage(refBytes(ref) + fieldBytes(obj_id))
  writeRef(to, sized_1, ref)
  writeField(to, sized_2, obj_id)
  return to.buffer
}

/** An ApplyJsonResponse. */
export function encodeJson(text: string): Buffer {
  const to = newMessage(fieldBytes(text))
  writeField(to, sized_1, text)
  return to.buffer
}

/** A CancelTaskResponse or RetryTaskResponse, which have the same fields. */
export function encodeAction({ ref, obj_id = '', task, was }: ActionResult): Buffer {
  const task_bytes = task === undefined ? 0 : taskBytes(task)
  const was_bytes = fieldBytes(was?.status) + fieldBytes(was?.node_id)
  const shown_bytes = task === undefined ? 0 : sizedBytes(task_bytes)
  const to = newMessage(refBytes(ref) + fieldBytes(obj_id) + shown_bytes + was_bytes)
  writeRef(to, sized_1, ref)
  writeField(to, sized_2, obj_id)
  if (task !== undefined) writeTask(to, sized_3, task, task_bytes)
  writeField(to, sized_4, was?.status)
  writeField(to, sized_5, was?.node_id)
  return to.buffer
}

/** A GetTaskResponse or WaitTaskResponse. */
export function encodeTask({ task }: Pick<OpResult, 'task'>, with_history: boolean): Buffer {
  if (task === undefined) return newMessage(0).buffer
  const history = with_history ? (task.history ?? []) : []
  let bytes = taskBytes(task)
  for (const entry of history) bytes += sizedBytes(entryBytes(entry))
  const to = newMessage(sizedBytes(bytes))
  writeTask(to, sized_1, task, bytes)
  for (const entry of history) writeEntry(to, sized_12, entry)
  return to.buffer
}

/** An ApplyOpsResponse; results[at] gets the id of ops[at]. */
export function encodeResults(ops: readonly OpMessage[], results: readonly OpResult[]): Buffer {
  const to = newMessage(resultsBytes(ops, results))
  writeResults(to, sized_1, ops, results)
  return to.buffer
}

/** A StreamOpsResponse. */
export function encodeStreamResponse({ seq, ops }: StreamBatch, answer: StreamResponse): Buffer {
  const { proc, description, results } = answer
  const seq_bytes = seq === 0 ? 0 : 1 + numberBytes(seq)
  const rest_bytes = resultsBytes(ops, results) + fieldBytes(proc) + fieldBytes(description)
  const to = newMessage(seq_bytes + rest_bytes)
  if (seq !== 0) {
    to.buffer[to.at++] = number_1
    writeNumber(to, seq)
  }
  writeResults(to, sized_2, ops, results)
  writeField(to, sized_3, proc)
  writeField(to, sized_4, description)
  return to.buffer
}

const number_1 = number_field(1)
const number_2 = number_field(2)
const number_6 = number_field(6)
const number_7 = number_field(7)
const sized_1 = sized_field(1)
const sized_2 = sized_field(2)
const sized_3 = sized_field(3)
const sized_4 = sized_field(4)
const sized_5 = sized_field(5)
const sized_6 = sized_field(6)
const sized_8 = sized_field(8)
const sized_9 = sized_field(9)
const sized_10 = sized_field(10)
const sized_11 = sized_field(11)
const sized_12 = sized_field(12)

export function newMessage(bytes: number): WriteCursor {
  return { buffer: Buffer.allocUnsafe(bytes), at: 0 }
}

function resultsBytes(ops: readonly OpMessage[], results: readonly OpResult[]): number {
  let bytes = 0
  for (let at = 0; at < results.length; at++) {
    bytes += sizedBytes(resultBytes(ops[at]?.id ?? '', results[at] as OpResult))
  }
  return bytes
}

function resultBytes(id: string, { ref, obj_id, proc, description, task }: OpResult): number {
  const ids = fieldBytes(id) + refBytes(ref) + fieldBytes(obj_id)
  const outcome = fieldBytes(proc) + fieldBytes(description)
  return ids + outcome + (task === undefined ? 0 : sizedBytes(taskBytes(task)))
}

function writeResults(
  to: WriteCursor,
  tag: number,
  ops: readonly OpMessage[],
  results: readonly OpResult[],
): void {
  for (let at = 0; at < results.length; at++) {
    const id = ops[at]?.id ?? ''
    const result = results[at] as OpResult
    writeFieldHead(to, tag, resultBytes(id, result))
    writeField(to, sized_1, id)
    writeRef(to, sized_2, result.ref)
    writeField(to, sized_3, result.obj_id)
    writeField(to, sized_4, result.proc)
    writeField(to, sized_5, result.description)
    const { task } = result
    if (task !== undefined) writeTask(to, sized_6, task, taskBytes(task))
  }
}

export function taskBytes(task: Task): number {
  const ids = fieldBytes(task.obj_id) + fieldBytes(task.conv_id) + refBytes(task.ref)
  const states = fieldBytes(task.status) + fieldBytes(task.user_id ?? '')
  const times = 2 + numberBytes(task.create_time_ms) + numberBytes(task.change_time_ms)
  const nodes = fieldBytes(task.node_id) + fieldBytes(task.node_prev_id)
  const details = task.status_details
  const why = details === undefined ? 0 : sizedBytes(detailsBytes(details))
  return ids + states + times + nodes + fieldBytes(task.data_text) + why
}

function detailsBytes({ tag, description }: StatusDetails): number {
  return fieldBytes(tag) + fieldBytes(description)
}

export function writeTask(to: WriteCursor, tag: number, task: Task, bytes: number): void {
  writeFieldHead(to, tag, bytes)
  writeField(to, sized_1, task.obj_id)
  writeField(to, sized_2, task.conv_id)
  writeRef(to, sized_3, task.ref)
  writeField(to, sized_4, task.status)
  writeField(to, sized_5, task.user_id ?? '')
  to.buffer[to.at++] = number_6
  writeNumber(to, task.create_time_ms)
  to.buffer[to.at++] = number_7
  writeNumber(to, task.change_time_ms)
  writeField(to, sized_8, task.node_id)
  writeField(to, sized_9, task.node_prev_id)
  writeField(to, sized_10, task.data_text)
  const { status_details } = task
  if (status_details === undefined) return
  writeFieldHead(to, sized_11, detailsBytes(status_details))
  writeField(to, sized_1, status_details.tag)
  writeField(to, sized_2, status_details.description)
}

function entryBytes({ node_id, at_ms, why, by, tag }: HistoryEntry): number {
  const texts = fieldBytes(node_id) + fieldBytes(why) + fieldBytes(by) + fieldBytes(tag)
  return texts + 1 + numberBytes(at_ms)
}

function writeEntry(to: WriteCursor, field: number, entry: HistoryEntry): void {
  writeFieldHead(to, field, entryBytes(entry))
  writeField(to, sized_1, entry.node_id)
  to.buffer[to.at++] = number_2
  writeNumber(to, entry.at_ms)
  writeField(to, sized_3, entry.why)
  writeField(to, sized_4, entry.by)
  writeField(to, sized_5, entry.tag)
}

export function fieldBytes(text = ''): number {
  return text === '' ? 0 : sizedBytes(textBytes(text))
}

export function writeField(to: WriteCursor, tag: number, text = ''): void {
  if (text !== '') writeText(to, tag, text)
}

export function refBytes(ref: string | null): number {
  return ref === null ? 0 : sizedBytes(textBytes(ref))
}

export function writeRef(to: WriteCursor, tag: number, ref: string | null): void {
  if (ref !== null) writeText(to, tag, ref)
}
