/**
 * Time zones: the wall-clock time of an instant, and the instant of a wall-clock time. A time that
 * a clock shows twice is the earlier instant; a time it skips is read with the offset before the
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
