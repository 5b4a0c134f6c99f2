/**
 * `$.date` and `$.unixtime`: the present moment, shifted, in a format of `%y %m %d %h %i %s`. A
 * shift (`%d+1`, `%h-{{n}}`, `%d+$.math(…)`) moves the whole moment: years, months and days on the
 * calendar, the others in elapsed time. A minus is text before a zero, before another part, after a
 * shift, and before a value that only then makes a whole date (`%y-%m-{{day}}`). `$.unixtime` reads
 * the shown text as a date; a missing year or date is that of the shifted moment.
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
  type WallMs,
  type Zone,
  zoneOf,
} from './calendar.ts'
import { type FunctionKind, type NumberTerm, wholeNumberTerm } from './function.ts'

export const unixtimeFunction: FunctionKind = {
  name: 'unixtime',
  syntax: ['$.unixtime()', '$.unixtime(format)', "$.unixtime(format).tz('Europe/Kyiv')"],
  result: 'number',
  fails_when_run: true,
  examples: [
    { text: '$.unixtime()', gives: 1709209815 },
    { text: '$.unixtime(%y-%m-%d %h:%i+60:%s)', gives: 1709213415 },
    { text: '$.unixtime(%y-%m-%d+1 09:00:00)', gives: 1709283600 },
    { text: "$.unixtime(%y-%m-%d 02:00:00).tz('Europe/Kyiv')", gives: 1709164800 },
    { text: '$.unixtime({{day}})', data: { day: '2024-01-01' }, gives: 1704067200 },
    { text: '$.unixtime(%y-%m-%d %13:%00:%00)', gives: 1709211600 },
    { text: '$.unixtime(02:00:00)', gives: 1709172000 },
    { text: '$.unixtime({{day}})', data: { day: '31.12.2024 10:00:00' }, gives: 1735639200 },
    { text: '$.unixtime(%d+1.%m.%y %h:00)', gives: 1709294400 },
  ],
  read: readUnixtime,
}

export const dateFunction: FunctionKind = {
  name: 'date',
  syntax: ['$.date()', '$.date(format)', "$.date(format).tz('Europe/Kyiv')"],
  result: 'string',
  fails_when_run: true,
  examples: [
    { text: '$.date()', gives: '2024-02-29 12:30:15' },
    { text: '$.date(%y-%m-%d %h:%i:%s)', gives: '2024-02-29 12:30:15' },
    { text: '$.date(%d+1/%m %h:%i)', gives: '01/03 12:30' },
    { text: '$.date(%y+1-%m-%d)', gives: '2025-02-28' },
    { text: '$.date(%d+{{n}}.%m)', data: { n: 2 }, gives: '02.03' },
    { text: '$.date(%y-%m-%d-{{n}})', data: { n: 2 }, gives: '2024-02-27' },
    { text: "$.date(%y-%m-%d %h:%i).tz('Europe/Kyiv')", gives: '2024-02-29 14:30' },
  ],
  read: readDate,
}

/** What `$.date()` shows: `%y-%m-%d %h:%i:%s`. */
const whole_format: Format = {
  pieces: fields.flatMap((field, at) => [['', '-', '-', ' ', ':', ':'][at] ?? '', { field }]),
  text: '',
}

/** A part of the moment, with what the whole moment is shifted by after it. */
interface FieldPiece {
  readonly field: Field
  readonly by?: NumberTerm
  /** The value whose minus may be text. */
  readonly subtracted?: Term
}

/** A format: what it shows of the moment that all its shifts have been applied to. */
interface Format {
  readonly pieces: readonly (Part | FieldPiece)[]
  readonly text: string
}

function readDate(cursor: TemplateCursor): Term {
  const format = readFormat(cursor)
  const zoneIn = readZone(cursor)
  const shown = format.pieces.length === 0 ? whole_format : format
  return (expansion) => show(shown, zoneIn, expansion)?.text
}

function readUnixtime(cursor: TemplateCursor): Term {
  const start = cursor.at
  const format = readFormat(cursor)
  const zoneIn = readZone(cursor)
  if (format.pieces.length === 0) return (expansion) => Math.floor(expansion.context.now_ms / 1_000)
  if (!canShowDate(format)) {
    cursor.at = start
    throw mistakeAt(cursor, `${truncated(format.text)} does not show a date`)
  }
  return (expansion) => {
    const shown = show(format, zoneIn, expansion)
    if (shown === undefined) return undefined
    const wall_ms = dateOf(shown.text, shown.wall_ms)
    if (wall_ms !== undefined) return Math.floor(shown.zone.instantOf(wall_ms) / 1_000)
    return failWith(expansion, 'convert', `$.unixtime: ${truncated(shown.text)} is no date`)
  }
}

interface Shown {
  readonly text: string
  /** The shifted moment on the clock of the zone. */
  readonly wall_ms: WallMs
  readonly zone: Zone
}

function show(format: Format, zoneIn: ZoneTerm, expansion: Expansion): Shown | undefined {
  const shifts: Shift[] = []
  for (const piece of format.pieces) {
    if (typeof piece !== 'object' || piece.by === undefined) continue
    shifts.push({ field: piece.field, by: piece.by(expansion) })
  }
  const zone = zoneIn(expansion)
  if (expansion.failure !== undefined || zone === undefined) return undefined
  const wall_ms = shifted(zone, expansion.context.now_ms, shifts)
  if (wall_ms === undefined) {
    return failWith(expansion, 'convert', `${truncated(format.text)} goes beyond the calendar`)
  }
  const parts = format.pieces.map((piece) =>
    typeof piece === 'object' ? fieldText(piece.field, wall_ms) : piece,
  )
  const text = joinParts(parts, expansion)
  return text === undefined ? undefined : { text, wall_ms, zone }
}

/** Whether the format can show a date. One with templates always can. */
function canShowDate(format: Format): boolean {
  if (format.pieces.some((piece) => typeof piece === 'function')) return true
  return dateOf(sampleOf(format.pieces), sample_ms) !== undefined
}

const sample_ms = Date.UTC(2024, 0, 1)

/** What the pieces show on 1 January 2024, with 01 for each template. */
function sampleOf(pieces: Format['pieces']): string {
  const texts = pieces.map((piece) => {
    if (typeof piece === 'object') return fieldText(piece.field, sample_ms)
    return typeof piece === 'function' ? '01' : piece
  })
  return texts.join('')
}

/** The pieces with each minus before a value as text, where they make a whole date only so. */
function withoutSubtracting(pieces: Format['pieces']): Format['pieces'] {
  const separated = pieces.flatMap((piece): Format['pieces'] => {
    const is_subtracting = typeof piece === 'object' && piece.subtracted !== undefined
    return is_subtracting ? [{ field: piece.field }, '-', piece.subtracted] : [piece]
  })
  const sample = sampleOf(separated)
  const is_date = /[0-9]{4}/.test(sample) && dateOf(sample, sample_ms) !== undefined
  return is_date && dateOf(sampleOf(pieces), sample_ms) === undefined ? separated : pieces
}

const field_start = /%([a-zA-Z]?)/y
const shift_start =
  /\+(?:[0-9]{1,9}(?![0-9])|(?=\{\{|\$\.))|-(?:[1-9][0-9]{0,8}(?![0-9])|(?=\{\{|\$\.math\())/y

function readFormat(cursor: TemplateCursor): Format {
  const start = cursor.at
  const pieces: Format['pieces'][number][] = []
  skipSpaces(cursor)
  for (;;) {
    pieces.push(...cursor.parts('%)'))
    if (cursor.text[cursor.at] !== '%') break
    const letter = matchAt(cursor, field_start)?.[1] ?? ''
    const field = fields.find((known) => known === letter)
    if (field !== undefined) {
      pieces.push({ field, ...readShift(cursor) })
    } else if (letter !== '' || !/[0-9]/.test(cursor.text[cursor.at] ?? '')) {
      cursor.warn(`"%${letter}" is none of %y %m %d %h %i %s, so it is shown as it stands`)
      pieces.push(`%${letter}`)
    }
  }
  const text = cursor.text.slice(start, cursor.at)
  expectText(cursor, ')')
  return { pieces: withoutSubtracting(pieces), text }
}

function readShift(cursor: TemplateCursor): Omit<FieldPiece, 'field'> {
  const shift = matchAt(cursor, shift_start)?.[0]
  if (shift === undefined) return {}
  if (shift.length > 1) {
    const by = Number(shift)
    return { by: () => by }
  }
  const start = cursor.at
  const term = cursor.term()
  if (term === undefined) throw mistakeAt(cursor, 'a number was expected')
  const number = wholeNumberTerm(term, cursor.text.slice(start, cursor.at))
  if (shift === '+') return { by: number }
  return { by: (expansion) => -number(expansion), subtracted: term }
}

/** The zone for one task; undefined where the expansion failed. */
type ZoneTerm = (expansion: Expansion) => Zone | undefined

const zone_start = /\.tz\(\s*(['"]?)/y
const zone_end = /\s*\)/y

function readZone(cursor: TemplateCursor): ZoneTerm {
  const start = cursor.at
  const quote = matchAt(cursor, zone_start)?.[1]
  if (quote === undefined) return () => utc
  const parts = cursor.parts(quote === '' ? ')' : quote)
  expectText(cursor, quote)
  if (matchAt(cursor, zone_end) === undefined) throw mistakeAt(cursor, '")" was expected')
  if (parts.some((part) => typeof part === 'function')) {
    return (expansion) => {
      const name = joinParts(parts, expansion)?.trim()
      if (name === undefined) return undefined
      return zoneOf(name) ?? failWith(expansion, 'convert', noZone(name))
    }
  }
  const name = parts.join('').trim()
  const zone = zoneOf(name)
  if (zone !== undefined) return () => zone
  cursor.at = start
  throw mistakeAt(cursor, noZone(name))
}

function noZone(name: string): string {
  return `"${truncated(name)}" is no time zone`
}
