/**
 * Time semaphors. A number, or a text of digits alone, counts seconds from coming to rest;
 * `dimension` is how an editor shows it. A text with a template gives an absolute Unix second: one
 * that is past rings at once, one that is missing or no number fails the node.
 */
import { isNumberToken, numberText } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { unix_seconds_max } from './definition-limits.ts'
import type { DueTime, TimeSemaphor } from './graph.ts'
import type { EvaluationContext } from './logic.ts'
import type { Report } from './report.ts'
import { quoted, truncated } from './report.ts'
import { expansionOf } from './templates/parser.ts'
import { compileTemplate } from './templates/template.ts'
import { doubleOf, textOf } from './values.ts'

/** Reads a semaphor of type `time`. */
export function compileTimeSemaphor(raw: JsonObject, report: Report): TimeSemaphor {
  const to_node_id = report.targetNode('to_node_id', raw.to_node_id) ?? ''
  const seconds = secondsOf(raw.value)
  if (seconds !== undefined) {
    if (!(seconds >= 0 && seconds <= unix_seconds_max)) {
      report.mistake(`value ${quoted(raw.value)} is no number of seconds from 0`)
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
    const run = expansionOf(context)
    const value = template.value(run)
    const seconds = run.failure === undefined ? doubleOf(value) : undefined
    if (seconds !== undefined && seconds <= unix_seconds_max) {
      return { due_ms: Math.max(Math.ceil(seconds * 1_000), 0) }
    }
    const found = value === undefined ? 'missing' : truncated(textOf(value))
    const why = run.failure?.description ?? `Value: ${found}, Try convert to: Unix time`
    return { tag: 'semaphor_wrong_convert_param', description: `time semaphor: ${why}` }
  }
}
