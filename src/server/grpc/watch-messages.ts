/**
 * The messages of WatchTasks: decodes the request, and encodes each change as response-messages
 * does.
 */
import type { SeenChange } from '../../engine/changes/changes.ts'
import {
  number_field,
  numberBytes,
  readCursor,
  readInteger,
  readNumber,
  readText,
  sized_field,
  sizedBytes,
  skipField,
  writeNumber,
} from './protobuf.ts'
import {
  fieldBytes,
  newMessage,
  refBytes,
  taskBytes,
  writeField,
  writeRef,
  writeTask,
} from './response-messages.ts'

export interface WatchMessage {
  readonly from: string
  readonly conv_id: string
  readonly with_task: boolean
}

/** Throws for malformed bytes. */
export function readWatchTasks(bytes: Buffer): WatchMessage {
  const cursor = readCursor(bytes)
  let from = ''
  let conv_id = ''
  let with_task = false
  while (cursor.at < cursor.end) {
    const tag = readNumber(cursor)
    if (tag === sized_field(1)) from = readText(cursor)
    else if (tag === sized_field(2)) conv_id = readText(cursor)
    else if (tag === number_field(3)) with_task = Number(readInteger(cursor)) !== 0
    else skipField(cursor, tag)
  }
  return { from, conv_id, with_task }
}

/** A WatchTasksResponse. */
export function encodeChange(change: SeenChange): Buffer {
  const { position } = change
  if (change.obj_id === undefined) {
    const to = newMessage(fieldBytes(position))
    writeField(to, sized_field(1), position)
    return to.buffer
  }
  const { conv_id, obj_id, ref, status, node_id, at_ms, task } = change
  const ms = Math.floor(at_ms)
  const ids = fieldBytes(position) + fieldBytes(conv_id) + fieldBytes(obj_id) + refBytes(ref)
  const states = fieldBytes(status) + fieldBytes(node_id) + 1 + numberBytes(ms)
  const task_bytes = task === undefined ? 0 : taskBytes(task)
  const to = newMessage(ids + states + (task === undefined ? 0 : sizedBytes(task_bytes)))
  writeField(to, sized_field(1), position)
  writeField(to, sized_field(2), conv_id)
  writeField(to, sized_field(3), obj_id)
  writeRef(to, sized_field(4), ref)
  writeField(to, sized_field(5), status)
  writeField(to, sized_field(6), node_id)
  to.buffer[to.at++] = number_field(7)
  writeNumber(to, ms)
  if (task !== undefined) writeTask(to, sized_field(8), task, task_bytes)
  return to.buffer
}
