/**
 * Tasks as rows of CSV. Numbers keep their text in both directions. On the way in each cell is a
 * text unless its column is converted; on the way out columns are members of the task, or paths
 * into its data.
 */
import { isObject, parseJson, stringifyJson } from '../codec/json.ts'
import { isFault } from '../core/faults.ts'
import type { JsonValue } from '../core/model.ts'
import { plainCell, textCell } from './csv.ts'
import type { RawOp } from './task-actions.ts'
import type { TaskView } from './task-view.ts'

export const column_types = ['number', 'boolean', 'object', 'array'] as const
export type ColumnType = (typeof column_types)[number]

export interface CsvColumns {
  readonly names: readonly string[]
  /** The column that is the ref; its cell is in the data as well. */
  readonly ref?: string | undefined
  /** By name; an empty cell of a converted column gives no member. */
  readonly types: ReadonlyMap<string, ColumnType>
}

/** Why these names cannot be columns; undefined where they can. */
export function columnsMistake({ names, ref, types }: CsvColumns): string | undefined {
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) return `two columns are called ${JSON.stringify(twice)}`
  if (names.includes('')) return `column ${names.indexOf('') + 1} has no name`
  const missing = [...(ref === undefined ? [] : [ref]), ...types.keys()].find(
    (name) => !names.includes(name),
  )
  return missing === undefined ? undefined : `there is no column ${JSON.stringify(missing)}`
}

/** The create op of a row, or a sentence on its mistake. */
export function opOfRow(
  cells: readonly string[],
  { names, ref, types }: CsvColumns,
  conv_id: string,
): RawOp | string {
  if (cells.length !== names.length) {
    return `${cells.length} cells where there are ${names.length} columns`
  }
  const members: string[] = []
  let ref_text: string | undefined
  for (const [at, name] of names.entries()) {
    const cell = plainCell(cells[at] as string)
    const type = types.get(name)
    if (name === ref && cell !== '') ref_text = JSON.stringify(cell)
    if (type !== undefined && cell === '') continue
    const value = type === undefined ? JSON.stringify(cell) : convertedText(cell, type)
    if (value === undefined) return `${name}: ${shown(cell)} is no ${type}`
    members.push(`${JSON.stringify(name)}:${value}`)
  }
  const data_text = `{${members.join(',')}}`
  return { type: 'create', conv_id, data_text, ...(ref_text === undefined ? {} : { ref_text }) }
}

const number_text = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/

/** The cell as JSON text; undefined where it is none of the type. */
function convertedText(cell: string, type: ColumnType): string | undefined {
  if (type === 'number') return number_text.test(cell) ? cell : undefined
  if (type === 'boolean') return cell === 'true' || cell === 'false' ? cell : undefined
  try {
    const value = parseJson(cell)
    const is_fit = type === 'array' ? Array.isArray(value) : isObject(value)
    return is_fit ? stringifyJson(value) : undefined
  } catch (error) {
    if (isFault(error)) return undefined
    throw error
  }
}

const shown_chars = 40
const shown = (cell: string): string => JSON.stringify(cell.slice(0, shown_chars))

/** Of every export that names no columns. */
export const default_columns = [
  ...['conv_id', 'obj_id', 'ref', 'status', 'node_id', 'node_title'],
  ...['create_time_ms', 'change_time_ms', 'data'],
]

/** The cells of a task: members of it, `data`, and for any other name a path into the data. */
export function cellsOf(task: TaskView, columns: readonly string[]): string[] {
  const data = parseJson(task.data_text)
  const members: Readonly<Record<string, string | number | undefined>> = {
    ...{ conv_id: task.conv_id, obj_id: task.obj_id, ref: task.ref ?? '', status: task.status },
    ...{ node_id: task.node_id, node_title: task.node_title ?? '', data: task.data_text },
    ...{ create_time_ms: task.create_time_ms, change_time_ms: task.change_time_ms },
  }
  return columns.map((column) => {
    if (Object.hasOwn(members, column)) return textCell(String(members[column]))
    const names = column.startsWith('data.') ? column.slice('data.'.length) : column
    const value = names.split('.').reduce(memberOf, data as JsonValue | undefined)
    if (value === undefined || value === null) return ''
    return typeof value === 'string' ? textCell(value) : stringifyJson(value)
  })
}

function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}
