/**
 * `$.date` and `$.unixtime`: the present moment, shifted and shown in a format of
 * `%y %m %d %h %i %s`.
 *
 * `%d+1` or `%h-2` shifts the whole moment, and every field is then shown from the shifted moment;
 * `+{{n}}` takes the number from the data. Years, months and days are shifted on the calendar (31
 * January plus a month is the end of February), hours, minutes and seconds in elapsed time. A minus
 * before a zero (`%y-01-01`) or before a template is text. `$.unixtime` reads the shown text as a
 * date. `.tz('Europe/Kyiv')` after either uses the clock of that zone instead of UTC.
 */

import { truncated } from '../report.ts'
import {
  type Expansion,
  expectText,
  failWith,
  joinParts,
  matchAt,
  mistakeAt,
  type Part,
  skipSpaces,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import {
  dateOf,
  type Field,
  fields,
  fieldText,
  type Shift,
  shifted,
  utc,
  type Zone,
  zoneOf,
} from './calendar.ts'
import { type FunctionKind, type NumberTerm, wholeNumberTerm } from './function.ts'

export const unixtimeFunction: FunctionKind = {
  name: 'unixtime',
  syntax: ['$.unixtime()', '$.unixtime(format)', "$.unixtime(format).tz('Europe/Kyiv')"],
  result: 'number',
  examples: [
    { text: '$.unixtime()', gives: 1709209815 },
    { text: '$.unixtime(%y-%m-%d %h:%i+60:%s)', gives: 1709213415 },
    { text: '$.unixtime(%y-%m-%d+1 09:00:00)', gives: 1709283600 },
    { text: "$.unixtime(%y-%m-%d 02:00:00).tz('Europe/Kyiv')", gives: 1709164800 },
    { text: '$.unixtime({{day}})', data: { day: '2024-01-01' }, gives: 1704067200 },
  ],
  read: readUnixtime,
}

export const dateFunction: FunctionKind = {
  name: 'date',
  syntax: ['$.date(format)', "$.date(format).tz('Europe/Kyiv')"],
  result: 'string',
  examples: [
    { text: '$.date(%y-%m-%d %h:%i:%s)', gives: '2024-02-29 12:30:15' },
    { text: '$.date(%d+1/%m %h:%i)', gives: '01/03 12:30' },
    { text: '$.date(%y+1-%m-%d)', gives: '2025-02-28' },
    { text: '$.date(%d+{{n}}.%m)', data: { n: 2 }, gives: '02.03' },
    { text: "$.date(%y-%m-%d %h:%i).tz('Europe/Kyiv')", gives: '2024-02-29 14:30' },
  ],
  read: readDate,
}

/** A format: what it shows, and the shifts that are applied to the moment before. */
interface Format {
  readonly pieces: readonly (Part | { readonly field: Field })[]
  readonly shifts: readonly { readonly field: Field; readonly by: NumberTerm }[]
  readonly text: string
}

function readDate(cursor: TemplateCursor): Term {
  const start = cursor.at
  const format = readFormat(cursor)
  const zone = readZone(cursor)
  if (format.pieces.length === 0) {
    cursor.at = start
    throw mistakeAt(cursor, 'a format was expected')
  }
  return (expansion) => show(format, zone, expansion)
}

function readUnixtime(cursor: TemplateCursor): Term {
  const start = cursor.at
  const format = readFormat(cursor)
  const zone = readZone(cursor)
  if (format.pieces.length === 0) return (expansion) => Math.floor(expansion.context.now_ms / 1_000)
  if (!canShowDate(format)) {
    cursor.at = start
    throw mistakeAt(cursor, `${truncated(format.text)} does not show a date`)
  }
  return (expansion) => {
    const text = show(format, zone, expansion)
    if (text === undefined) return undefined
    const wall_ms = dateOf(text)
    if (wall_ms !== undefined) return Math.floor(zone.instantOf(wall_ms) / 1_000)
    return failWith(expansion, 'convert', `$.unixtime: ${truncated(text)} is no date`)
  }
}

function show(format: Format, zone: Zone, expansion: Expansion): string | undefined {
  const shifts: Shift[] = []
  for (const { field, by } of format.shifts) shifts.push({ field, by: by(expansion) })
  if (expansion.failure !== undefined) return undefined
  const wall_ms = shifted(zone, expansion.context.now_ms, shifts)
  if (wall_ms === undefined) {
    return failWith(expansion, 'convert', `${truncated(format.text)} goes beyond the calendar`)
  }
  const parts = format.pieces.map((piece) =>
    typeof piece === 'object' ? fieldText(piece.field, wall_ms) : piece,
  )
  return joinParts(parts, expansion)
}

/** Whether the format can show a date. One with templates always can. */
function canShowDate(format: Format): boolean {
  if (format.pieces.some((piece) => typeof piece === 'function')) return true
  const texts = format.pieces.map((piece) =>
    typeof piece === 'object' ? fieldText(piece.field, Date.UTC(2024, 0, 1)) : piece,
  )
  return dateOf(texts.join('')) !== undefined
}

const field_start = /%([a-zA-Z]?)/y
const shift_start = /\+(?:[0-9]{1,9}(?![0-9])|(?=\{\{|\$\.))|-[1-9][0-9]{0,8}(?![0-9])/y

function readFormat(cursor: TemplateCursor): Format {
  const start = cursor.at
  const pieces: Format['pieces'][number][] = []
  const shifts: Format['shifts'][number][] = []
  skipSpaces(cursor)
  for (;;) {
    pieces.push(...cursor.parts('%)'))
    if (cursor.text[cursor.at] !== '%') break
    field_start.lastIndex = cursor.at
    const letter = field_start.exec(cursor.text)?.[1] ?? ''
    const field = fields.find((known) => known === letter)
    if (field === undefined) throw mistakeAt(cursor, `"%${letter}" is none of %y %m %d %h %i %s`)
    cursor.at += 2
    pieces.push({ field })
    const by = readShift(cursor)
    if (by !== undefined) shifts.push({ field, by })
  }
  const text = cursor.text.slice(start, cursor.at)
  expectText(cursor, ')')
  return { pieces, shifts, text }
}

function readShift(cursor: TemplateCursor): NumberTerm | undefined {
  const shift = matchAt(cursor, shift_start)?.[0]
  if (shift === undefined) return undefined
  if (shift.length > 1) {
    const by = Number(shift)
    return () => by
  }
  const start = cursor.at
  const term = cursor.term()
  if (term === undefined) throw mistakeAt(cursor, 'a number was expected')
  return wholeNumberTerm(term, cursor.text.slice(start, cursor.at))
}

const zone_call = /\.tz\(\s*(?:'([^']*)'|"([^"]*)")\s*\)/y

function readZone(cursor: TemplateCursor): Zone {
  if (!cursor.text.startsWith('.tz(', cursor.at)) return utc
  const start = cursor.at
  const match = matchAt(cursor, zone_call)
  const name = match?.[1] ?? match?.[2]
  if (name === undefined) {
    throw mistakeAt(cursor, "a zone in quotes was expected, .tz('Europe/Kyiv')")
  }
  const zone = zoneOf(name)
  if (zone !== undefined) return zone
  cursor.at = start
  throw mistakeAt(cursor, `"${truncated(name)}" is no time zone`)
}
