/**
 * The answer of a query, made row by row as JSON text and bounded: it never holds more than fits
 * into a task. A cell is JSON text already.
 */
import { stringifyJson } from '../../codec/json.ts'
import { parsedValue } from '../../process/values.ts'

export interface Answer {
  names(names: readonly string[]): void
  /** False once the answer is too large; the rest must not be read then. */
  add(cells: readonly string[]): boolean
  /** Why the answer is too large; undefined where it is not. */
  overflow(): string | undefined
  /** `count`: what the database says, where it gives no rows. */
  text(count: number | undefined): string
}

export interface AnswerBounds {
  readonly bytes_max: number
  readonly rows_max: number
}

export function newAnswer({ bytes_max, rows_max }: AnswerBounds): Answer {
  const rows: string[] = []
  let columns: readonly (readonly [at: number, start: string])[] = []
  let bytes = 0
  let why: string | undefined
  return {
    names(names) {
      // Of columns with one name the last one counts, as in any object.
      const last = new Map(names.map((name, at) => [name, at]))
      columns = [...last].map(([name, at]) => [at, `${JSON.stringify(name)}:`])
    },
    add(cells) {
      const row = `{${columns.map(([at, start]) => start + (cells[at] ?? 'null')).join(',')}}`
      bytes += Buffer.byteLength(row) + 1
      if (rows.length >= rows_max) why ??= `more than ${rows_max} rows (rows_max)`
      if (bytes > bytes_max) why ??= `more than ${bytes_max} bytes`
      if (why === undefined) rows.push(row)
      else rows.length = 0
      return why === undefined
    },
    overflow: () => why,
    text: (count) => `{"result":[${rows.join(',')}],"rows_count":${count ?? rows.length}}`,
  }
}

/** JSON as it is; what is beyond the bounds of a value is text. */
export function jsonCell(text: string): string {
  const value = parsedValue(text)
  return value === undefined ? JSON.stringify(text) : stringifyJson(value)
}

/** A number, as text where a double would change it; other spellings (`NaN`) are text too. */
export function numberCell(text: string): string {
  const double = Number(text)
  const is_same = Number.isFinite(double) && (String(double) === text || isSame(text, double))
  return is_same ? String(double) : JSON.stringify(text)
}

/** Whether the digits are those of the double: `1.50`, `-0.0`, `1e+20`. */
function isSame(text: string, double: number): boolean {
  const digits = (number: string): string => {
    const [, sign = '', whole = '', part = '', power = '0'] =
      /^(-?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?$/.exec(number) ?? []
    const all = (whole + part).replace(/^0+/, '')
    if (all === '') return '0'
    const kept = all.replace(/0+$/, '')
    return `${sign}${kept}e${Number(power) - part.length + all.length - kept.length}`
  }
  return digits(text) === digits(String(double))
}
