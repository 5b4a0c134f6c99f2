/**
 * The values of aliases and variables: a text, and where tools have described it, a NUL and what
 * they said as JSON. Neither an id nor JSON text has a NUL.
 */
import { type Described, decodeRecord, encodeRecord } from './records.ts'

export function encodeDescribed(text: string, about: Described = {}): Buffer {
  const is_plain = Object.keys(about).length === 0
  return is_plain
    ? Buffer.from(text)
    : Buffer.concat([Buffer.from(`${text}\0`), encodeRecord(about)])
}

export function describedText(value: Buffer): string {
  const end = value.indexOf(0)
  return value.toString('utf8', 0, end === -1 ? value.length : end)
}

export function aboutOf<About extends Described>(value: Buffer): About {
  const end = value.indexOf(0)
  return end === -1 ? ({} as About) : decodeRecord<About>(value.subarray(end + 1))
}
