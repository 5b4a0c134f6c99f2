/**
 * Numbers and times as words, for all views alike. Pure: no document, no clock. Times are
 * milliseconds since 1970 (UTC); exact ones are in the reader's own time zone.
 */
import type { Status } from '../../../core/model.ts'

/** What the page calls a status, in the order in which an operator asks. */
export const status_words: Readonly<Record<Status, string>> = {
  failed: 'failed',
  delayed: 'waiting',
  processing: 'running',
  processed: 'done',
  canceled: 'canceled',
}
export const statuses = Object.keys(status_words) as readonly Status[]

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

/** With a capital and a full stop, as the reasons of a server have neither. */
export function sentenceText(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** What turns the direction of writing, as the escape that JSON has for it. */
export function shownText(text: string): string {
  return text.replaceAll(
    /[\u202a-\u202e\u2066-\u2069]/g,
    (turn) => `\\u${turn.charCodeAt(0).toString(16)}`,
  )
}

/** `12 345`, with narrow spaces that no reader takes for a decimal point. */
export const countText = (count: number): string => grouped.format(count).replaceAll(',', '\u202f')

export function tasksText(count: number): string {
  return count === 1 ? '1 task' : `${countText(count)} tasks`
}

/** At most one digit after the point: `0.4`, `12`, `1 200`. */
export function rateText(per_s: number): string {
  return countText(per_s < 10 ? Math.round(per_s * 10) / 10 : Math.round(per_s))
}

/** A duration by its two greatest units: `4 s`, `3 min 20 s`, `2 d 4 h`. */
export function durationText(ms: number): string {
  const s = Math.floor(Math.max(0, ms) / 1000)
  const units = [
    [Math.floor(s / 86_400), 'd'],
    [Math.floor(s / 3600) % 24, 'h'],
    [Math.floor(s / 60) % 60, 'min'],
    [s % 60, 's'],
  ] as const
  const first = units.findIndex(([count]) => count > 0)
  if (first === -1) return '0 s'
  return units
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ')
}

/** By its greatest unit alone: `now`, `20 s ago`, `3 min ago`, `in 2 h`. */
export function agoText(at_ms: number, now_ms: number): string {
  const away_ms = Math.abs(now_ms - at_ms)
  if (away_ms < 2_000) return 'now'
  const text = durationText(away_ms).split(' ').slice(0, 2).join(' ')
  return at_ms > now_ms ? `in ${text}` : `${text} ago`
}

/** What a timer says: `in 3 min 20 s`, `late by 4 s`. */
export function dueText(due_ms: number, now_ms: number): string {
  const left_ms = due_ms - now_ms
  if (left_ms > 0) return `in ${durationText(left_ms + 999)}`
  return left_ms > -1_000 ? 'now' : `late by ${durationText(-left_ms)}`
}

/** `2026-01-31 08:05:12.345`, which sorts and has one reading everywhere. */
export function exactText(ms: number): string {
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) return String(ms)
  const part = (value: number, digits = 2) => String(value).padStart(digits, '0')
  const day = [date.getFullYear(), part(date.getMonth() + 1), part(date.getDate())].join('-')
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map((n) => part(n)).join(':')
  return `${day} ${time}.${part(date.getMilliseconds(), 3)}`
}

/** `1.5 GB`, by thousands as disks are sold. */
export function bytesText(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  const at = bytes < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(bytes) / 3))
  return `${rateText(bytes / 1000 ** at)} ${units[at]}`
}
