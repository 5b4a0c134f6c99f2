/**
 * The output of verbs: JSON with stable keys for programs, where data keeps its exact text and user
 * ids are numbers; tables, fields and lines for people. Text for people has no control characters:
 * titles and refs are callers' text, and a terminal would obey them.
 */
import type { ResultView } from '../task-operations/task-actions.ts'
import type { TaskView } from '../task-operations/task-view.ts'
import { type Exit, exits } from './exit-codes.ts'
import { type Io, print } from './io.ts'
import { clean, linesText, table } from './text.ts'
import { type Given, isOn } from './verb.ts'

export const printJson = (io: Io, json: string): Promise<void> => print(io.stdout, `${json}\n`)

export function printLines(io: Io, lines: readonly string[]): Promise<void> {
  return print(io.stdout, lines.map((line) => `${line}\n`).join(''))
}

/** Prints the result of a verb: JSON text or a value for programs, `text` for people. */
export async function printDone(
  given: Given,
  io: Io,
  json: string | object,
  text = '',
): Promise<Exit> {
  if (!isOn(given, 'json')) await print(io.stdout, text)
  else await printJson(io, typeof json === 'string' ? json : JSON.stringify(json))
  return exits.done
}

export interface ListForm<Item> {
  /** Default: the item itself. */
  readonly jsonOf?: (item: Item) => string
  readonly heads: readonly string[]
  readonly cellsOf: (item: Item) => readonly string[]
}

/** Prints a list: a JSON document per item for programs, a table for people. */
export async function printList<Item>(
  given: Given,
  io: Io,
  items: readonly Item[],
  { jsonOf = (item: Item): string => JSON.stringify(item), heads, cellsOf }: ListForm<Item>,
): Promise<Exit> {
  if (isOn(given, 'json')) await printLines(io, items.map(jsonOf))
  else await print(io.stdout, table(heads, items.map(cellsOf)))
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
export const idJson = (id: string): string => (/^[1-9][0-9]*$/.test(id) ? id : JSON.stringify(id))

/** A ref as it was sent; as a number where it was one. */
function refJson(view: Pick<ResultView, 'ref' | 'ref_is_number'>): string {
  return view.ref_is_number === true && view.ref !== null ? view.ref : JSON.stringify(view.ref)
}

export function taskJson(task: TaskView): string {
  return jsonOf({
    ...membersOf(task, ['obj_id', 'conv_id']),
    ref: refJson(task),
    ...membersOf(task, ['status', 'status_details']),
    user_id: task.user_id === null ? 'null' : idJson(task.user_id),
    ...membersOf(task, ['create_time_ms', 'change_time_ms', 'node_id', 'node_title']),
    ...membersOf(task, ['node_prev_id', 'wait']),
    data: task.data_text,
    ...membersOf(task, ['trace_id', 'history']),
  })
}

export function resultJson(result: ResultView): string {
  return jsonOf({
    ref: refJson(result),
    ...membersOf(result, ['obj_id', 'proc', 'description', 'key', 'was', 'now']),
  })
}

/** Members as JSON text, in this order. */
export function membersOf<T extends object>(
  value: T,
  names: readonly (keyof T & string)[],
): Record<string, string | undefined> {
  return Object.fromEntries(names.map((name) => [name, JSON.stringify(value[name])]))
}

/** Prints the result of an op; `ok` is the text for people if it succeeded. */
export async function printResult(
  given: Given,
  io: Io,
  result: ResultView,
  ok: string,
): Promise<Exit> {
  if (isOn(given, 'json')) await printJson(io, resultJson(result))
  else if (result.proc === 'ok') await print(io.stdout, linesText([ok]))
  else await print(io.stderr, `conveyor: refused, ${reasonOf(result)}\n`)
  return result.proc === 'ok' ? exits.done : exits.refused
}

export function reasonOf(result: { proc: string; description?: string }): string {
  const says = result.description === undefined ? '' : `: ${result.description}`
  return clean(`${result.proc}${says}`)
}

/** Prints a line on stderr, at most once in `every_ms`. */
export function newProgress(io: Io, every_ms: number): (says: string) => Promise<void> {
  let printed_ms = io.clock.now_ms()
  return async (says) => {
    const now_ms = io.clock.now_ms()
    if (now_ms - printed_ms < every_ms) return
    printed_ms = now_ms
    await print(io.stderr, `${says}\n`)
  }
}
