/**
 * The calendar of date formats: wall-clock times of zones, fields, shifts, and parsing of dates. A
 * time that a clock shows twice is the earlier instant; a skipped one has the offset before the
 * skip.
 */
/** A wall-clock time, as the Unix milliseconds at which a UTC clock shows the same. */
export type WallMs = number

export interface Zone {
  wallOf(instant_ms: number): WallMs
  instantOf(wall_ms: WallMs): number
}

export const utc: Zone = { wallOf: (instant_ms) => instant_ms, instantOf: (wall_ms) => wall_ms }

/** Cache by lower-case name: a date format of a zone is expensive to create. */
const known_zones = new Map<string, Zone>()

/** The zone of a name such as `Europe/Kyiv`; undefined for an unknown name. */
export function zoneOf(name: string): Zone | undefined {
  const key = name.toLowerCase()
  const known = known_zones.get(key)
  if (known !== undefined) return known
  const made = makeZone(name)
  if (made !== undefined) known_zones.set(key, made)
  return made
}

function makeZone(name: string): Zone | undefined {
  if (!/^[A-Za-z0-9_+/-]{1,64}$/.test(name)) return undefined
  try {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      era: 'narrow',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    return zoneWith((instant_ms) => shownBy(format, instant_ms))
  } catch {
    return undefined
  }
}

function zoneWith(wallOf: (instant_ms: number) => WallMs): Zone {
  return {
    wallOf,
    instantOf(wall_ms) {
      const before_ms = wallOf(wall_ms - day_ms) - (wall_ms - day_ms)
      const after_ms = wallOf(wall_ms + day_ms) - (wall_ms + day_ms)
      const early_ms = wall_ms - before_ms
      const late_ms = wall_ms - after_ms
      if (wallOf(early_ms) === wall_ms) return early_ms
      return wallOf(late_ms) === wall_ms ? late_ms : early_ms
    },
  }
}

const day_ms = 86_400_000

function shownBy(format: Intl.DateTimeFormat, instant_ms: number): WallMs {
  const shown = { year: 0, month: 1, day: 1, hour: 0, minute: 0, second: 0 }
  let is_before_christ = false
  for (const { type, value } of format.formatToParts(instant_ms)) {
    if (type === 'era') is_before_christ = value.startsWith('B')
    else if (Object.hasOwn(shown, type)) shown[type as keyof typeof shown] = Number(value)
  }
  const year = is_before_christ ? 1 - shown.year : shown.year
  const fraction_ms = ((instant_ms % 1_000) + 1_000) % 1_000
  const wall = new Date(0)
  wall.setUTCFullYear(year, shown.month - 1, shown.day)
  return wall.setUTCHours(shown.hour, shown.minute, shown.second, fraction_ms)
}

export const fields = ['y', 'm', 'd', 'h', 'i', 's'] as const
export type Field = (typeof fields)[number]

export interface Shift {
  readonly field: Field
  readonly by: number
}

const years_max = 9_999
const elapsed_ms = { h: 3_600_000, i: 60_000, s: 1_000 } as const

/** A field as text: the year in four digits, the others in two. */
export function fieldText(field: Field, wall_ms: WallMs): string {
  return new Date(wall_ms).toISOString().slice(...places[field])
}

/** In `2024-02-29T12:30:15`. */
const places = { y: [0, 4], m: [5, 7], d: [8, 10], h: [11, 13], i: [14, 16], s: [17, 19] } as const

/**
 * An instant shifted by years, months and days on the zone's calendar, then by elapsed time. A day
 * that the month does not have becomes its last day. Undefined outside the years 1000 to 9998.
 */
export function shifted(
  zone: Zone,
  instant_ms: number,
  shifts: readonly Shift[],
): WallMs | undefined {
  if (shifts.length === 0) return zone.wallOf(instant_ms)
  const by = { y: 0, m: 0, d: 0, h: 0, i: 0, s: 0 }
  for (const shift of shifts) by[shift.field] += shift.by
  const is_on_calendar = by.y !== 0 || by.m !== 0 || by.d !== 0
  const wall_ms = is_on_calendar ? onCalendar(zone.wallOf(instant_ms), by) : 0
  if (!isShowable(wall_ms)) return undefined
  const moved_ms =
    (is_on_calendar ? zone.instantOf(wall_ms) : instant_ms) +
    by.h * elapsed_ms.h +
    by.i * elapsed_ms.i +
    by.s * elapsed_ms.s
  return isShowable(moved_ms) ? zone.wallOf(moved_ms) : undefined
}

/** Whether the year is 1000 to 9998: every zone's clock shows it in four digits. */
function isShowable(wall_ms: WallMs): boolean {
  return wall_ms > showable_from_ms && wall_ms < showable_to_ms
}

const showable_from_ms = Date.UTC(1_000, 0, 2)
const showable_to_ms = Date.UTC(years_max, 0, 1)

const day_text = /(?:(?:([0-9]{4})-)?([0-9]{1,2})-([0-9]{1,2}))?/.source
/** `31.12.2024`, the day first. */
const day_first = /^(\s*)([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})(?![0-9])/
const time_text = /(?:(?:^\s*|[ T]+)([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2}))?)?/.source
const date_text = new RegExp(`^\\s*${day_text}${time_text}\\s*$`)

/**
 * `2024-02-29`, `2024-02-29 12:30` or `2024-02-29 12:30:15` as a moment, the date also as
 * `29.02.2024`; undefined otherwise. The year, or the whole date, may be left out: it is that of
 * `base_ms`.
 */
export function dateOf(text: string, base_ms: WallMs): WallMs | undefined {
  if (text.length > 64) return undefined
  const match = date_text.exec(text.replace(day_first, '$1$4-$3-$2'))
  if (match === null || match.slice(2).every((part) => part === undefined)) return undefined
  const given = fields.map((field, at) => {
    const part = match[at + 1]
    const is_shown = part !== undefined || at > 2
    return Number(is_shown ? (part ?? 0) : fieldText(field, base_ms))
  })
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = given
  const wall_ms = Date.UTC(year, month - 1, day, hour, minute, second)
  const is_date = fields.every((field, at) => Number(fieldText(field, wall_ms)) === given[at])
  return is_date ? wall_ms : undefined
}

function onCalendar(wall_ms: WallMs, by: Readonly<Record<Field, number>>): WallMs {
  const wall = new Date(wall_ms)
  const months = wall.getUTCFullYear() * 12 + wall.getUTCMonth() + by.y * 12 + by.m
  const year = Math.floor(months / 12)
  const month = months - year * 12
  const month_end = new Date(Date.UTC(2000 + (((year % 400) + 400) % 400), month + 1, 0))
  const day = Math.min(wall.getUTCDate(), month_end.getUTCDate()) + by.d
  return wall.setUTCFullYear(year, month, day)
}
