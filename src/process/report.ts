/**
 * Mistakes, which refuse a definition, and warnings, each with its place. Quoted values are cut at
 * 128 characters, and quoting never throws.
 */
import { isNumberToken, isObject, numberText } from '../codec/json.ts'
import type { JsonValue } from '../core/model.ts'

export interface Report {
  mistake(text: string): void
  warning(text: string): void
  /** The node id that `member` names. Reports a mistake and gives undefined where it is no node. */
  targetNode(member: string, to_node_id: JsonValue | undefined): string | undefined
  /** Notes a process that the definition names. */
  targetProcess(conv_id: string): void
  /** Notes a variable that the definition names, without its `@`. */
  variable(name: string): void
}

export type MistakeReport = Pick<Report, 'mistake'>

/** The same report with `place` before each text, except those of `targetNode`. */
export function reportAt(report: Report, place: string): Report {
  return {
    ...report,
    mistake: (text) => report.mistake(`${place}: ${text}`),
    warning: (text) => report.warning(`${place}: ${text}`),
  }
}

/** The mistakes of a report, with `before` in front of each text. */
export function mistakesAt(report: MistakeReport, before: string): MistakeReport {
  return { mistake: (text) => report.mistake(before + text) }
}

/** Reports a value of another form than `wanted`. */
export function expected(
  report: MistakeReport,
  what: string,
  value: unknown,
  wanted: string,
): undefined {
  report.mistake(`${what} is ${quoted(value)}, ${wanted} was expected`)
  return undefined
}

const quoted_chars_max = 128

/** A text in quotes; any other value by its kind, and numbers by their exact text. */
export function quoted(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(truncated(value))
  if (value === undefined) return 'nothing'
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number' || isNumberToken(value)) return truncated(numberText(value))
  if (Array.isArray(value)) return 'an array'
  return isObject(value) ? 'an object' : typeof value
}

export function truncated(text: string): string {
  if (text.length <= quoted_chars_max) return text
  const points = [...text.slice(0, 2 * quoted_chars_max + 2)]
  if (points.length <= quoted_chars_max) return text
  return `${points.slice(0, quoted_chars_max).join('')}…`
}
