/**
 * The shape of data: their JSON text with a zero in place of each value. The tasks of a process
 * share a few shapes, so a record has what stands in these places, with zeros in between, and the
 * number of the shape, which is made of its text. Both give the same text again, for any data.
 */
import { crc32 } from 'node:zlib'

export interface Shape {
  readonly n: number
  readonly text: string
  /** What stands before, between and after the values. */
  readonly parts: readonly string[]
}

/** Data and shapes of more characters are stored as they are. */
const data_chars_max = 4_096
export const shape_chars_max = 1_000

/** A string, with the colon after the key of a member, or another value without brackets. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*":?|[^"[\]{},:]+/g
const place = '\x00'

export function shapeOf(text: string): Shape {
  return { n: crc32(text) & 0xffff, text, parts: text.split(place) }
}

/** Undefined where a shape would save little or is too long. */
export function shapeOfData(data: string): Shape | undefined {
  if (data.length > data_chars_max || data.includes(place)) return undefined
  const text = data.replace(token, (found) => {
    if (!found.startsWith('"')) return place
    return found.endsWith(':') ? found : `"${place}"`
  })
  const shape = shapeOf(text)
  const is_used = shape.parts.length > 1 && text.length > 4 * shape.parts.length
  return is_used && text.length <= shape_chars_max ? shape : undefined
}

/** Undefined if the data do not fit. A value may be any text. */
export function valuesIn(data: string, { parts }: Shape): string | undefined {
  const [first = ''] = parts
  if (data.length > data_chars_max || !data.startsWith(first)) return undefined
  let at = first.length
  let values = ''
  for (let n = 1; n < parts.length; n++) {
    const part = parts[n] as string
    const end = data.indexOf(part, at)
    if (end === -1) return undefined
    values += n === 1 ? data.slice(at, end) : place + data.slice(at, end)
    at = end + part.length
  }
  return at === data.length && !data.includes(place) ? values : undefined
}

export function dataOf(values: string, { parts }: Shape): string {
  let data = ''
  for (const [n, value] of values.split(place).entries()) data += parts[n] + value
  return data + parts.at(-1)
}
