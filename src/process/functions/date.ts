/**
 * `$.date` and `$.unixtime`: now, moved and shown through a format of `%y %m %d %h %i %s`.
 *
 * `%d+1` or `%h-2` behind a field moves the whole moment, then every field is shown from the moved
 * one; `+{{n}}` takes the number from the data. Years, months and days move on the calendar (31
 * January and a month is the end of February), hours, minutes and seconds in elapsed time. A minus
 * before a zero (`%y-01-01`) or before a template is text. `$.unixtime` reads what the format shows
 * as a date. `.tz('Europe/Kyiv')` behind either shows and reads the clock of that zone; without it,
 * UTC.
 */

import { cut } from '../quoted.ts'
import {
  type Expansion,
  expectText,
  failWith,
  joinParts,
  mistakeAt,
  type Part,
  type Source,
  skipSpaces,
  type Term,
} from '../templates/parser.ts'
import { textOf } from '../values.ts'
import { dateOf, type Field, fields, fieldText, type Shift, shifted } from './calendar.ts'
import { type FunctionKind, type NumberTerm, wholeNumber } from './function.ts'
import { utc, type Zone, zoneOf } from './zone.ts'

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

/** A format: what it shows, and by what it moves the moment first. */
interface Format {
  readonly pieces: readonly (Part | { readonly field: Field })[]
  readonly moves: readonly { readonly field: Field; readonly by: NumberTerm }[]
  readonly text: string
}

function readDate(source: Source): Term {
  const start = source.at
  const format = readFormat(source)
  const zone = readZone(source)
  if (format.pieces.length === 0) {
    source.at = start
    throw mistakeAt(source, 'a format was expected')
  }
  return (run) => show(format, zone, run)
}

function readUnixtime(source: Source): Term {
  const start = source.at
  const format = readFormat(source)
  const zone = readZone(source)
  if (format.pieces.length === 0) return (run) => Math.floor(run.scope.now_ms / 1_000)
  const is_date = probe(format)
  if (!is_date) {
    source.at = start
    throw mistakeAt(source, `${cut(format.text)} does not show a date`)
  }
  return (run) => {
    const text = show(format, zone, run)
    if (text === undefined) return undefined
    const wall_ms = dateOf(text)
    if (wall_ms !== undefined) return Math.floor(zone.instantOf(wall_ms) / 1_000)
    return failWith(run, 'convert', `$.unixtime: ${cut(text)} is no date`)
  }
}

function show(format: Format, zone: Zone, run: Expansion): string | undefined {
  const shifts: Shift[] = []
  for (const { field, by } of format.moves) shifts.push({ field, by: by(run) })
  if (run.failure !== undefined) return undefined
  const wall_ms = shifted(zone, run.scope.now_ms, shifts)
  if (wall_ms === undefined) {
    return failWith(run, 'convert', `${cut(format.text)} goes beyond the calendar`)
  }
  const parts = format.pieces.map((piece) =>
    typeof piece === 'object' ? fieldText(piece.field, wall_ms) : piece,
  )
  return joinParts(parts, run, (value) => (value === undefined ? '' : textOf(value)))
}

/** Whether a format without templates shows something that is a date; with them it may. */
function probe(format: Format): boolean {
  if (format.pieces.some((piece) => typeof piece === 'function')) return true
  const texts = format.pieces.map((piece) =>
    typeof piece === 'object' ? fieldText(piece.field, Date.UTC(2024, 0, 1)) : piece,
  )
  return dateOf(texts.join('')) !== undefined
}

const field_start = /%([a-zA-Z]?)/y
const move_start = /\+(?:[0-9]{1,9}(?![0-9])|(?=\{\{|\$\.))|-[1-9][0-9]{0,8}(?![0-9])/y

function readFormat(source: Source): Format {
  const start = source.at
  const pieces: Format['pieces'][number][] = []
  const moves: Format['moves'][number][] = []
  skipSpaces(source)
  for (;;) {
    pieces.push(...source.parts('%)'))
    if (source.text[source.at] !== '%') break
    field_start.lastIndex = source.at
    const letter = field_start.exec(source.text)?.[1] ?? ''
    const field = fields.find((known) => known === letter)
    if (field === undefined) throw mistakeAt(source, `"%${letter}" is none of %y %m %d %h %i %s`)
    source.at += 2
    pieces.push({ field })
    const by = readMove(source)
    if (by !== undefined) moves.push({ field, by })
  }
  const text = source.text.slice(start, source.at)
  expectText(source, ')')
  return { pieces, moves, text }
}

function readMove(source: Source): NumberTerm | undefined {
  move_start.lastIndex = source.at
  const match = move_start.exec(source.text)
  if (match === null) return undefined
  if (match[0].length > 1) {
    source.at += match[0].length
    const by = Number(match[0])
    return () => by
  }
  source.at++
  const label = source.at
  const term = source.term()
  if (term === undefined) throw mistakeAt(source, 'a number was expected')
  const text = source.text.slice(label, source.at)
  return wholeTerm(term, text)
}

function wholeTerm(term: Term, label: string): NumberTerm {
  return (run) => {
    const number = wholeNumber(term(run))
    if (number !== undefined) return number
    failWith(run, 'convert', `${cut(label)} is no whole number`)
    return Number.NaN
  }
}

const zone_call = /\.tz\(\s*(?:'([^']*)'|"([^"]*)")\s*\)/y

function readZone(source: Source): Zone {
  if (!source.text.startsWith('.tz(', source.at)) return utc
  zone_call.lastIndex = source.at
  const match = zone_call.exec(source.text)
  const name = match?.[1] ?? match?.[2]
  if (name === undefined)
    throw mistakeAt(source, "a zone in quotes was expected, .tz('Europe/Kyiv')")
  const zone = zoneOf(name)
  if (zone === undefined) throw mistakeAt(source, `"${cut(name)}" is no time zone`)
  source.at = zone_call.lastIndex
  return zone
}
