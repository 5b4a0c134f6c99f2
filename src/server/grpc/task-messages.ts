/**
 * The messages of ListTasks, CountTasks and WatchTasks: decodes requests and encodes responses, as
 * request-messages and response-messages do.
 */
import { docOfBytes } from '../../codec/json.ts'
import { statuses } from '../../codec/task-record.ts'
import type { Limits } from '../../core/limits.ts'
import type {
  CountFilter,
  TaskCounts,
  TaskFilter,
  TaskPage,
  TaskQuery,
} from '../../engine/api/search-api.ts'
import type { SeenChange } from '../../engine/changes/changes.ts'
import { readWhere } from '../../engine/search/task-filter.ts'
import {
  number_field,
  numberBytes,
  type ReadCursor,
  readBytes,
  readCursor,
  readInteger,
  readNested,
  readNumber,
  readText,
  sized_field,
  sizedBytes,
  skipField,
  textBytes,
  type WriteCursor,
  writeFieldHead,
  writeNumber,
  writeText,
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

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

/** Fields of a TaskFilter by their tags. */
const text_fields = new Map([
  [sized_field(1), 'conv_id'],
  [sized_field(2), 'node_id'],
  [sized_field(3), 'status'],
  [sized_field(4), 'ref_prefix'],
] as const)
const time_fields = new Map([
  [number_field(5), 'created_since_ms'],
  [number_field(6), 'created_until_ms'],
  [number_field(7), 'changed_since_ms'],
  [number_field(8), 'changed_until_ms'],
  [number_field(9), 'ended_since_ms'],
  [number_field(10), 'ended_until_ms'],
  [number_field(11), 'due_before_ms'],
] as const)
const where_field = sized_field(12)

/** A decoded query; its `where` is still bytes, because malformed JSON refuses the call. */
export interface ListMessage {
  readonly query: TaskQuery
  readonly where_json: Buffer | undefined
}

/** Throws for malformed bytes. */
export function readListTasks(bytes: Buffer): ListMessage {
  const from = readCursor(bytes)
  const query: Writable<TaskQuery> = {}
  let where_json: Buffer | undefined
  const filterFrom = (from: ReadCursor): void => {
    while (from.at < from.end) {
      const tag = readNumber(from)
      const text = text_fields.get(tag as never)
      const time = time_fields.get(tag as never)
      if (text !== undefined) setText(query, text, readText(from))
      else if (time !== undefined) query[time] = signed(readInteger(from))
      else if (tag === where_field) where_json = readBytes(from)
      else skipField(from, tag)
    }
  }
  while (from.at < from.end) {
    const tag = readNumber(from)
    if (tag === sized_field(1)) readNested(from, filterFrom)
    else if (tag === number_field(2)) setLimit(query, signed(readInteger(from)))
    else if (tag === sized_field(3)) setText(query, 'cursor', readText(from))
    else if (tag === number_field(4)) query.newest_first = Number(readInteger(from)) !== 0
    else skipField(from, tag)
  }
  return { query, where_json }
}

/** Empty counts as unset. */
function setText(
  query: Writable<TaskQuery>,
  name: 'conv_id' | 'node_id' | 'status' | 'ref_prefix' | 'cursor',
  text: string,
): void {
  if (text === '') delete query[name]
  else query[name] = text as NonNullable<TaskFilter['status']>
}

function setLimit(query: Writable<TaskQuery>, limit: number): void {
  if (limit === 0) delete query.limit
  else query.limit = limit
}

function signed(value: number | bigint): number {
  return Number(BigInt.asIntN(64, BigInt(value)))
}

/** The query as the engine takes it. Throws `bad_filter`. */
export function queryOf({ query, where_json }: ListMessage, limits: Limits): TaskQuery {
  if (where_json === undefined || where_json.length === 0) return query
  const { nesting_max, body_values_max: values_max } = limits
  const where = readWhere(() => docOfBytes(where_json, { nesting_max, values_max }))
  return { ...query, where }
}

/** Throws for malformed bytes. */
export function readCountTasks(bytes: Buffer): CountFilter {
  const from = readCursor(bytes)
  const filter: Writable<TaskQuery> = {}
  while (from.at < from.end) {
    const tag = readNumber(from)
    const text = tag === sized_field(4) ? undefined : text_fields.get(tag as never)
    if (text !== undefined) setText(filter, text, readText(from))
    else skipField(from, tag)
  }
  return filter
}

/** A ListTasksResponse. */
export function encodePage(page: TaskPage): Buffer {
  const { tasks, cursor, scanned, sorted_by, reached_ms, damaged } = page
  const sizes = tasks.map((task) => taskBytes(task))
  let bytes = fieldBytes(cursor) + fieldBytes(sorted_by)
  for (const size of sizes) bytes += sizedBytes(size)
  for (const obj_id of damaged) bytes += sizedBytes(textBytes(obj_id))
  if (scanned !== 0) bytes += 1 + numberBytes(scanned)
  if (reached_ms !== undefined) bytes += 1 + numberBytes(reached_ms)
  const to: WriteCursor = newMessage(bytes)
  for (const [at, task] of tasks.entries()) writeTask(to, sized_field(1), task, sizes[at] as number)
  writeField(to, sized_field(2), cursor)
  if (scanned !== 0) writeNumberField(to, number_field(3), scanned)
  writeField(to, sized_field(4), sorted_by)
  if (reached_ms !== undefined) writeNumberField(to, number_field(5), reached_ms)
  for (const obj_id of damaged) writeText(to, sized_field(6), obj_id)
  return to.buffer
}

function writeNumberField(to: WriteCursor, tag: number, value: number): void {
  to.buffer[to.at++] = tag
  writeNumber(to, value)
}

type Counts = Pick<TaskCounts, 'total' | 'by_status'>

/** A CountTasksResponse. */
export function encodeCounts({ rows, ...all }: TaskCounts): Buffer {
  const sizes = rows.map((row) => {
    const texts = fieldBytes(row.conv_id) + fieldBytes(row.title) + fieldBytes(row.node_id)
    return texts + sizedBytes(countsBytes(row))
  })
  let bytes = sizedBytes(countsBytes(all))
  for (const size of sizes) bytes += sizedBytes(size)
  const to: WriteCursor = newMessage(bytes)
  writeCounts(to, sized_field(1), all)
  for (const [at, row] of rows.entries()) {
    writeFieldHead(to, sized_field(2), sizes[at] as number)
    writeField(to, sized_field(1), row.conv_id)
    writeField(to, sized_field(2), row.title)
    writeField(to, sized_field(3), row.node_id)
    writeCounts(to, sized_field(4), row)
  }
  return to.buffer
}

function countsBytes({ total, by_status }: Counts): number {
  let bytes = total === 0 ? 0 : 1 + numberBytes(total)
  for (const status of statuses) {
    const count = by_status[status]
    if (count !== undefined) bytes += 1 + numberBytes(count)
  }
  return bytes
}

function writeCounts(to: WriteCursor, tag: number, counts: Counts): void {
  const { total, by_status } = counts
  writeFieldHead(to, tag, countsBytes(counts))
  if (total !== 0) writeNumberField(to, number_field(1), total)
  // The order of the proto's fields too, from number 2 on.
  for (const [at, status] of statuses.entries()) {
    const count = by_status[status]
    if (count !== undefined) writeNumberField(to, number_field(at + 2), count)
  }
}

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
