/**
 * The messages that callers get. Each is measured and then written once, into bytes of its own.
 *
 * A text that is empty is left out, as proto3 has it; a ref says whether it is there.
 */
import type { OpResult, Task } from '../../core/model.ts'
import { number_field, sized_field } from './protobuf-read.ts'
import {
  numberBytes,
  sizedBytes,
  textBytes,
  type WriteCursor,
  writeFieldHead,
  writeNumber,
  writeText,
} from './protobuf-write.ts'
import type { OpMessage, StreamBatch } from './request-messages.ts'

/** What became of a batch of a stream. */
export interface StreamResponse {
  readonly proc: string
  readonly description: string
  readonly results: readonly OpResult[]
}

/** CreateTaskResponse, and ModifyTaskResponse, which is the same. */
export function encodeAddress({ ref, obj_id = '' }: OpResult): Buffer {
  const to = messageOf(refBytes(ref) + fieldBytes(obj_id))
  writeRef(to, sized_1, ref)
  writeField(to, sized_2, obj_id)
  return to.room
}

/** GetTaskResponse. */
export function encodeTask({ task }: OpResult): Buffer {
  if (task === undefined) return messageOf(0).room
  const bytes = taskBytes(task)
  const to = messageOf(sizedBytes(bytes))
  writeTask(to, sized_1, task, bytes)
  return to.room
}

/** ApplyOpsResponse. Each result has the id of its op. */
export function encodeResults(ops: readonly OpMessage[], results: readonly OpResult[]): Buffer {
  const to = messageOf(resultsBytes(ops, results))
  writeResults(to, sized_1, ops, results)
  return to.room
}

/** StreamOpsResponse. */
export function encodeStreamResponse({ seq, ops }: StreamBatch, answer: StreamResponse): Buffer {
  const { proc, description, results } = answer
  const seq_bytes = seq === 0 ? 0 : 1 + numberBytes(seq)
  const rest_bytes = resultsBytes(ops, results) + fieldBytes(proc) + fieldBytes(description)
  const to = messageOf(seq_bytes + rest_bytes)
  if (seq !== 0) {
    to.room[to.at++] = number_1
    writeNumber(to, seq)
  }
  writeResults(to, sized_2, ops, results)
  writeField(to, sized_3, proc)
  writeField(to, sized_4, description)
  return to.room
}

const number_1 = number_field(1)
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

function messageOf(bytes: number): WriteCursor {
  return { room: Buffer.allocUnsafe(bytes), at: 0 }
}

function resultsBytes(ops: readonly OpMessage[], results: readonly OpResult[]): number {
  let bytes = 0
  for (let at = 0; at < results.length; at++) {
    bytes += sizedBytes(resultBytes(ops[at]?.id ?? '', results[at] as OpResult))
  }
  return bytes
}

function resultBytes(id: string, { ref, obj_id, proc, description, task }: OpResult): number {
  const named = fieldBytes(id) + refBytes(ref) + fieldBytes(obj_id)
  const told = fieldBytes(proc) + fieldBytes(description)
  return named + told + (task === undefined ? 0 : sizedBytes(taskBytes(task)))
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

function taskBytes(task: Task): number {
  const names = fieldBytes(task.obj_id) + fieldBytes(task.conv_id) + refBytes(task.ref)
  const said = fieldBytes(task.status) + fieldBytes(task.user_id ?? '')
  const times = 2 + numberBytes(task.create_time_ms) + numberBytes(task.change_time_ms)
  const nodes = fieldBytes(task.node_id) + fieldBytes(task.node_prev_id)
  return names + said + times + nodes + fieldBytes(task.dataText)
}

function writeTask(to: WriteCursor, tag: number, task: Task, bytes: number): void {
  writeFieldHead(to, tag, bytes)
  writeField(to, sized_1, task.obj_id)
  writeField(to, sized_2, task.conv_id)
  writeRef(to, sized_3, task.ref)
  writeField(to, sized_4, task.status)
  writeField(to, sized_5, task.user_id ?? '')
  to.room[to.at++] = number_6
  writeNumber(to, task.create_time_ms)
  to.room[to.at++] = number_7
  writeNumber(to, task.change_time_ms)
  writeField(to, sized_8, task.node_id)
  writeField(to, sized_9, task.node_prev_id)
  writeField(to, sized_10, task.dataText)
}

function fieldBytes(text = ''): number {
  return text === '' ? 0 : sizedBytes(textBytes(text))
}

function writeField(to: WriteCursor, tag: number, text = ''): void {
  if (text !== '') writeText(to, tag, text)
}

function refBytes(ref: string | null): number {
  return ref === null ? 0 : sizedBytes(textBytes(ref))
}

function writeRef(to: WriteCursor, tag: number, ref: string | null): void {
  if (ref !== null) writeText(to, tag, ref)
}
