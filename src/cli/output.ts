/**
 * Admin values as the text a verb prints: JSON with stable keys for programs, where data keeps its
 * exact text and ids of users are numbers, and cells for people.
 */
import type { ResultView, TaskView } from '../server/admin/task-verbs.ts'
import { type Exit, exits } from './exit-codes.ts'
import { type Io, print } from './io.ts'
import { clean } from './table.ts'

/** One JSON document on a line. */
export function printJson(io: Io, json: string): Promise<void> {
  return print(io.stdout, `${json}\n`)
}

/** NDJSON of many. */
export function printLines(io: Io, lines: readonly string[]): Promise<void> {
  return print(io.stdout, lines.map((line) => `${line}\n`).join(''))
}

/** The JSON text of an object whose members are JSON text already; undefined ones are left out. */
export function jsonOf(members: Readonly<Record<string, string | undefined>>): string {
  const parts: string[] = []
  for (const [key, text] of Object.entries(members)) {
    if (text !== undefined) parts.push(`${JSON.stringify(key)}:${text}`)
  }
  return `{${parts.join(',')}}`
}

/** A user id is digits, hence a number in JSON, however long. */
export function idJson(id: string): string {
  return /^[1-9][0-9]*$/.test(id) ? id : JSON.stringify(id)
}

/** A ref as it was sent: its digits where it was a number. */
export function refJson(view: Pick<ResultView, 'ref' | 'ref_is_number'>): string {
  return view.ref_is_number === true && view.ref !== null ? view.ref : JSON.stringify(view.ref)
}

export function taskJson(task: TaskView): string {
  return jsonOf({
    obj_id: JSON.stringify(task.obj_id),
    conv_id: JSON.stringify(task.conv_id),
    ref: refJson(task),
    status: JSON.stringify(task.status),
    status_details: JSON.stringify(task.status_details),
    user_id: task.user_id === null ? 'null' : idJson(task.user_id),
    create_time_ms: String(task.create_time_ms),
    change_time_ms: String(task.change_time_ms),
    node_id: JSON.stringify(task.node_id),
    node_prev_id: JSON.stringify(task.node_prev_id),
    data: task.dataText,
  })
}

export function resultJson(result: ResultView): string {
  return jsonOf({
    ref: refJson(result),
    obj_id: JSON.stringify(result.obj_id),
    proc: JSON.stringify(result.proc),
    description: JSON.stringify(result.description),
    key: JSON.stringify(result.key),
  })
}

/** Prints what an op came to; `ok` is what people read where it went well. */
export async function printResult(
  io: Io,
  json: boolean,
  result: ResultView,
  ok: string,
): Promise<Exit> {
  if (json) await printJson(io, resultJson(result))
  else if (result.proc === 'ok') await print(io.stdout, `${clean(ok)}\n`)
  else await print(io.stderr, `conveyor: refused, ${reasonOf(result)}\n`)
  return result.proc === 'ok' ? exits.done : exits.refused
}

export function reasonOf(result: ResultView): string {
  const says = result.description === undefined ? '' : `: ${result.description}`
  return clean(`${result.proc}${says}`)
}

/** UTC to the second, as `2026-01-31 08:05:09Z`. */
export function timeText(time_ms: number): string {
  return `${new Date(time_ms).toISOString().slice(0, 19).replace('T', ' ')}Z`
}
