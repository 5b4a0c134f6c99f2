/** Reads times and durations of the command line. Each throws a usage fault. */
import { usageError } from './exit-codes.ts'

const unit_ms: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `90s`, `15m`, `24h`, `7d` in milliseconds. */
export function durationMs(given: string): number {
  const [, digits, unit] = /^([0-9]{1,9})([smhd])$/.exec(given) ?? []
  if (digits === undefined || unit === undefined) {
    throw usageError('a time is a whole number and s, m, h or d, such as 24h')
  }
  return Number(digits) * (unit_ms[unit] as number)
}

/**
 * In milliseconds since 1970: a date, a date and time with an offset (without one it would be the
 * time of this machine), milliseconds, `24h` ago, or `+24h` from now. `what` is the flag.
 */
export function timeMs(what: string, given: string, now_ms: number): number {
  if (/^[0-9]+$/.test(given)) return Number(given)
  if (/^\+?[0-9]+[smhd]$/.test(given)) {
    const ms = durationMs(given.replace('+', ''))
    return given.startsWith('+') ? now_ms + ms : now_ms - ms
  }
  const is_time = /^\d{4}-\d{2}-\d{2}(T[0-9:.]+(Z|[+-]\d{2}:?\d{2}))?$/.test(given)
  const ms = is_time ? Date.parse(given) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  const forms = 'such as 2026-01-31T08:05:00Z, or 24h for a day ago, or +24h'
  throw usageError(`${what} is a time and its offset, ${forms}`)
}
