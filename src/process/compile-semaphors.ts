/**
 * Compiles the semaphors of a node.
 *
 * A time semaphor has a number, or a text of digits: seconds from the time the task begins to wait
 * (`dimension` is only how editors show it). Or it has a template, which gives an absolute Unix
 * second: a past one fires at once, a missing or malformed one fails the task in its node. A count
 * semaphor has a number of tasks; one that names no node does nothing.
 */
import { isNumberToken, numberText } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { unix_seconds_max } from './definition-limits.ts'
import type { CountSemaphor, DueTime, TimeSemaphor } from './graph.ts'
import type { EvaluationContext } from './logic.ts'
import { isAbsent, mapObjects } from './logics/members.ts'
import { quoted, type Report, reportAt, truncated } from './report.ts'
import { expansionOf } from './templates/parser.ts'
import { compileTemplate } from './templates/template.ts'
import { doubleOf, textOf } from './values.ts'

export interface Semaphors {
  readonly time_semaphors: TimeSemaphor[]
  readonly count_semaphors: CountSemaphor[]
}

export function compileSemaphors(list: readonly JsonValue[], report: Report): Semaphors {
  const semaphors: Semaphors = { time_semaphors: [], count_semaphors: [] }
  mapObjects(list, 'semaphors', report, (raw, place) => {
    if (raw.type === 'time') {
      semaphors.time_semaphors.push(compileTimeSemaphor(raw, reportAt(report, `${place} time`)))
    } else if (raw.type === 'count') {
      const semaphor = compileCountSemaphor(raw, reportAt(report, `${place} count`))
      if (semaphor !== undefined) semaphors.count_semaphors.push(semaphor)
    } else report.mistake(`${place} type ${quoted(raw.type)} is neither "time" nor "count"`)
  })
  return semaphors
}

/** A shorter wait that is shown in minutes or more was probably meant in them. */
const short_wait_s = 30

/** The value is a whole number of tasks, or a text of digits. */
function compileCountSemaphor(raw: JsonObject, report: Report): CountSemaphor | undefined {
  const value = typeof raw.value === 'string' ? Number(raw.value) : raw.value
  const is_count = typeof value === 'number' && Number.isSafeInteger(value) && value > 0
  if (!is_count) report.mistake(`value ${quoted(raw.value)} is no number of tasks`)
  if (isAbsent(raw.esc_node_id)) {
    report.warning('has no esc_node_id and does nothing')
    return undefined
  }
  const esc_node_id = report.targetNode('esc_node_id', raw.esc_node_id) ?? ''
  return { value: is_count ? value : 1, esc_node_id }
}

function compileTimeSemaphor(raw: JsonObject, report: Report): TimeSemaphor {
  const to_node_id = report.targetNode('to_node_id', raw.to_node_id) ?? ''
  const seconds = secondsOf(raw.value)
  if (seconds !== undefined) {
    if (!(seconds >= 0 && seconds <= unix_seconds_max)) {
      report.mistake(`value ${quoted(raw.value)} is no number of seconds from 0`)
    }
    const { dimension } = raw
    if (seconds < short_wait_s && !isAbsent(dimension) && dimension !== 'sec') {
      const shown = `dimension ${quoted(dimension)} is only how editors show it`
      report.warning(`value ${quoted(raw.value)} counts seconds, ${shown}`)
    }
    const wait_ms = Math.ceil(seconds * 1_000)
    return { to_node_id, due: (context) => ({ due_ms: context.now_ms + wait_ms }) }
  }
  return { to_node_id, due: dueAt(raw.value, report) }
}

function secondsOf(value: JsonValue | undefined): number | undefined {
  if (typeof value === 'number') return value
  if (isNumberToken(value)) return Number(numberText(value))
  return typeof value === 'string' && /^[0-9]+$/.test(value) ? Number(value) : undefined
}

function dueAt(
  raw: JsonValue | undefined,
  report: Report,
): (context: EvaluationContext) => DueTime {
  const text = typeof raw === 'string' ? raw : ''
  const template = compileTemplate(text, report, 'value')
  if (typeof raw !== 'string' || template.constant === text) {
    report.mistake(`value ${quoted(raw)} is neither seconds nor a template`)
  }
  return (context) => {
    const expansion = expansionOf(context)
    const value = template.value(expansion)
    const seconds = expansion.failure === undefined ? doubleOf(value) : undefined
    if (seconds !== undefined && seconds <= unix_seconds_max) {
      return { due_ms: Math.max(Math.ceil(seconds * 1_000), 0) }
    }
    const found = value === undefined ? 'missing' : truncated(textOf(value))
    const why = expansion.failure?.description ?? `Value: ${found}, Try convert to: Unix time`
    return { tag: 'semaphor_wrong_convert_param', description: `time semaphor: ${why}` }
  }
}
