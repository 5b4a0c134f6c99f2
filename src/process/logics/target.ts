/**
 * Reads `conv_id`, `ref` and `node_id`, by which a logic acts beyond its own task; all become
 * texts. A process that the definition names is reported to the compiler and used with the
 * definition's permissions; one that a template gives is not (`TargetProcess` in logic.ts).
 */
import type { JsonObject } from '../../core/model.ts'
import { id_chars_max } from '../definition-limits.ts'
import type { TargetProcess } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
import type { Expansion } from '../templates/parser.ts'
import { compileTemplate } from '../templates/template.ts'
import { idText, isIdLength, processId, textOf } from '../values.ts'
import { failConversion } from './failures.ts'
import { isAbsent } from './members.ts'

/** The process for one task; undefined where the expansion failed. */
export type TargetProcessTerm = (expansion: Expansion) => TargetProcess | undefined

/** A ref or a node id for one task; undefined where it is missing or the expansion failed. */
export type IdTerm = (expansion: Expansion) => string | undefined

/** Reads `conv_id`. A template that gives no process id fails the expansion. */
export function readTargetProcess({ conv_id }: JsonObject, report: Report): TargetProcessTerm {
  const text = idText(conv_id)
  if (text === undefined) {
    report.mistake(`conv_id is ${quoted(conv_id)}, the id of a process was expected`)
    return () => undefined
  }
  const template = compileTemplate(text, report, 'conv_id')
  if (template.constant !== undefined) {
    const target = { conv_id: template.constant, is_from_template: false }
    if (processId(text) !== undefined) report.targetProcess(text)
    else report.mistake(`conv_id ${quoted(text)} is no id of a process`)
    return () => target
  }
  return (expansion) => {
    const value = template.value(expansion)
    if (expansion.failure !== undefined) return undefined
    const id = processId(value)
    if (id === undefined) return failConversion(expansion, 'conv_id', value ?? text, 'conv_id')
    return { conv_id: id, is_from_template: true }
  }
}

/** Reads a ref or a node id. One that is too long fails the expansion. */
export function readId(raw: JsonObject, member: string, report: Report): IdTerm {
  const given = raw[member]
  if (isAbsent(given)) return () => undefined
  const text = idText(given)
  if (text === undefined) {
    report.mistake(`${member} is ${quoted(given)}, a text was expected`)
    return () => undefined
  }
  const template = compileTemplate(text, report, member)
  if (template.constant !== undefined && !isIdLength(text)) {
    report.mistake(`${member} ${quoted(text)} is longer than ${id_chars_max} characters`)
  }
  return (expansion) => {
    const value = template.value(expansion)
    if (expansion.failure !== undefined || isAbsent(value)) return undefined
    const id = textOf(value)
    return isIdLength(id) ? id : failConversion(expansion, member, id, member)
  }
}
