/**
 * The output of verbs: JSON with stable keys for programs, where data keeps its exact text and user
 * ids are numbers; tables for people. Control characters in cells are replaced, because titles and
 * refs are callers' text and a terminal obeys what it is sent.
 */
import type { ResultView } from '../task-operations/task-actions.ts'
import type { TaskView } from '../task-operations/task-view.ts'
import { type Exit, exits } from './exit-codes.ts'
import { type Io, print } from './io.ts'

/** One JSON document on one line. */
export function printJson(io: Io, json: string): Promise<void> {
  return print(io.stdout, `${json}\n`)
}

/** Each text on a line of its own. */
export function printLines(io: Io, lines: readonly string[]): Promise<void> {
  return print(io.stdout, lines.map((line) => `${line}\n`).join(''))
}

/** Prints the result of a verb: `json` for programs, `text` for people. */
export async function printDone(io: Io, is_json: boolean, json: string, text = ''): Promise<Exit> {
  if (is_json) await printJson(io, json)
  else if (text !== '') await print(io.stdout, text)
  return exits.done
}

/** Prints a list: a JSON document per item for programs, a table for people. */
export async function printList<Item>(
  io: Io,
  json: boolean,
  items: readonly Item[],
  form: {
    readonly jsonOf: (item: Item) => string
    readonly heads: readonly string[]
    readonly cellsOf: (item: Item) => readonly string[]
  },
): Promise<Exit> {
  if (json) await printLines(io, items.map(form.jsonOf))
  else await print(io.stdout, table(form.heads, items.map(form.cellsOf)))
  return exits.done
}

/** A JSON object from members that are JSON text; undefined members are left out. */
export function jsonOf(members: Readonly<Record<string, string | undefined>>): string {
  const parts: string[] = []
  for (const [key, text] of Object.entries(members)) {
    if (text !== undefined) parts.push(`${JSON.stringify(key)}:${text}`)
  }
  return `{${parts.join(',')}}`
}

/** A user id consists of digits, hence is a number in JSON, however long. */
export function idJson(id: string): string {
  return /^[1-9][0-9]*$/.test(id) ? id : JSON.stringify(id)
}

/** A ref as it was sent; as a number where it was one. */
function refJson(view: Pick<ResultView, 'ref' | 'ref_is_number'>): string {
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
    node_title: JSON.stringify(task.node_title),
    node_prev_id: JSON.stringify(task.node_prev_id),
    wait: JSON.stringify(task.wait),
    data: task.data_text,
    trace_id: JSON.stringify(task.trace_id),
    history: JSON.stringify(task.history),
  })
}

export function resultJson(result: ResultView): string {
  return jsonOf({
    ref: refJson(result),
    obj_id: JSON.stringify(result.obj_id),
    proc: JSON.stringify(result.proc),
    description: JSON.stringify(result.description),
    key: JSON.stringify(result.key),
    was: JSON.stringify(result.was),
    now: JSON.stringify(result.now),
  })
}

/** Prints the result of an op; `ok` is the text for people where it succeeded. */
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

export function reasonOf(result: { proc: string; description?: string }): string {
  const says = result.description === undefined ? '' : `: ${result.description}`
  return clean(`${result.proc}${says}`)
}

/** UTC to the second, as `2026-01-31 08:05:09Z`. */
export function timeText(time_ms: number): string {
  return `${new Date(time_ms).toISOString().slice(0, 19).replace('T', ' ')}Z`
}

/** A time span for people: `40 s`, `3 h`, `12 d`. */
export function spanText(ms: number): string {
  const s = Math.round(Math.abs(ms) / 1_000)
  if (s < 120) return `${s} s`
  if (s < 7_200) return `${Math.round(s / 60)} min`
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`
}

/** Bytes for people: `640 MiB`. */
export function bytesText(bytes: number): string {
  const mib = bytes / 1_048_576
  if (mib >= 10_240) return `${Math.round(mib / 1_024)} GiB`
  return mib >= 1 ? `${Math.round(mib)} MiB` : `${bytes} bytes`
}

/** Rows below a heading; empty without rows. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  return columns([heads, ...rows])
}

/** Rows as lines, columns aligned and two spaces apart. */
export function columns(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(clean))
  const widths: number[] = []
  for (const row of cells) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, length(cell))
  }
  const lines = cells.map((row) =>
    row.map((cell, at) => cell + ' '.repeat((widths[at] as number) - length(cell))).join('  '),
  )
  return lines.map((line) => `${line.trimEnd()}\n`).join('')
}

/** Text without control characters, line ends, and what turns the direction of text around. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, '·')
}

function length(text: string): number {
  return [...text].length
}
