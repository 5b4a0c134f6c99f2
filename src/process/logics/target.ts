/**
 * The names by which a logic reaches beyond its task: `conv_id`, `ref` and `node_id` of a
 * definition. A process may be a number, a text of digits or an alias (`@name`), all of them text
 * from here on. One that is written is told to the report and acts by the definition's right; one
 * that a template gives does not (process/logic `ConvReach`).
 */
import type { JsonObject } from '../../core/model.ts'
import { id_chars_max } from '../definition-limits.ts'
import type { TargetProcess } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted } from '../report.ts'
import type { Expansion } from '../templates/parser.ts'
import { compileTemplate } from '../templates/template.ts'
import { idText, isIdLength, processId, textOf } from '../values.ts'
import { failConversion } from './assignments.ts'

/** A name as it comes out for one task; undefined where it is missing or the run failed. */
export type TargetName = (run: Expansion) => string | undefined

/** Reads `conv_id`. What a template gives and is no name fails the run. */
export function readTargetProcess(
  raw: JsonObject,
  report: Report,
): (run: Expansion) => TargetProcess | undefined {
  const { conv_id } = raw
  const text = idText(conv_id)
  if (text === undefined) {
    report.mistake(`conv_id is ${quoted(conv_id)}, the id of a process was expected`)
    return () => undefined
  }
  const template = compileTemplate(text, report, 'conv_id')
  if (template.constant !== undefined) {
    const reach = { conv_id: template.constant, is_from_template: false }
    if (processId(text) !== undefined) report.targetProcess(text)
    else report.mistake(`conv_id ${quoted(text)} is no id of a process`)
    return () => reach
  }
  return (run) => {
    const value = template.value(run)
    if (run.failure !== undefined) return undefined
    const name = processId(value)
    if (name === undefined) return failConversion(run, 'conv_id', value ?? text, 'conv_id')
    return { conv_id: name, is_from_template: true }
  }
}

/**
 * Reads a ref or a node id. An absent or empty one gives undefined; one that is too long or no name
 * fails the run.
 */
export function readTargetName(raw: JsonObject, member: string, report: Report): TargetName {
  const given = raw[member]
  if (given === undefined || given === null || given === '') return () => undefined
  const text = idText(given)
  if (text === undefined) {
    report.mistake(`${member} is ${quoted(given)}, a text was expected`)
    return () => undefined
  }
  const template = compileTemplate(text, report, member)
  if (template.constant !== undefined && !isIdLength(text)) {
    report.mistake(`${member} ${quoted(text)} is longer than ${id_chars_max} characters`)
  }
  return (run) => {
    const value = template.value(run)
    if (run.failure !== undefined || value === undefined) return undefined
    if (value === null || value === '') return undefined
    const name = textOf(value)
    return isIdLength(name) ? name : failConversion(run, member, name, member)
  }
}
