/**
 * Evaluation contexts, reports and compilers for tests of process definitions. The time is
 * 2024-02-29 12:30:15.250 UTC and chance is 0.5, as in the examples of functions.
 */
import { docOfText, parseJson, stringifyJson } from '../../src/codec/json.ts'
import { limitsWith } from '../../src/core/limits.ts'
import type { JsonObject, JsonValue } from '../../src/core/model.ts'
import { compileProcess } from '../../src/process/compile-process.ts'
import { steps_max } from '../../src/process/definition-limits.ts'
import type { CompileResult } from '../../src/process/graph.ts'
import type { Command, EvaluationContext } from '../../src/process/logic.ts'
import { logicTable } from '../../src/process/logics/table.ts'
import type { Report } from '../../src/process/report.ts'
import { expansionOf } from '../../src/process/templates/parser.ts'
import { compileTemplate } from '../../src/process/templates/template.ts'

export const now_ms = Date.UTC(2024, 1, 29, 12, 30, 15, 250)

const root_fields: Record<string, JsonValue> = {
  ref: 'order-1',
  conv_id: '1234',
  create_time: 1700,
}

/** `data` is JSON text, or an object that is written as JSON. */
export function contextOf(
  data: string | JsonObject,
  more: Partial<EvaluationContext> = {},
): EvaluationContext {
  return {
    doc: docOfText(typeof data === 'string' ? data : stringifyJson(data)),
    now_ms,
    fraction: () => 0.5,
    rootField: (name) => root_fields[name],
    task_bytes_max: 131_072,
    steps: { left: steps_max },
    canRead: () => true,
    taskData: () => undefined,
    nodeCount: () => 0,
    nodeSum: () => undefined,
    callbackUrl: () => undefined,
    variable: () => undefined,
    ...more,
  }
}

/** A context whose data must not be read. */
export function unreadableContext(): EvaluationContext {
  const doc = {
    get text(): string {
      throw new Error('the data was read')
    },
    get memo(): undefined {
      throw new Error('the data was read')
    },
    set memo(_value) {
      throw new Error('the data was read')
    },
  }
  return { ...contextOf('{}'), doc }
}

/** A report that knows the nodes `a` and `b` and collects what it is given. */
export function notes(): Report & {
  mistakes: string[]
  warnings: string[]
  target_conv_ids: string[]
} {
  const mistakes: string[] = []
  const warnings: string[] = []
  const target_conv_ids: string[] = []
  return {
    mistakes,
    warnings,
    target_conv_ids,
    targetProcess: (conv_id) => target_conv_ids.push(conv_id),
    variable() {},
    mistake: (text) => mistakes.push(text),
    warning: (text) => warnings.push(text),
    targetNode(member, id) {
      if (id === 'a' || id === 'b') return id
      mistakes.push(`${member} is no node`)
      return undefined
    },
  }
}

/** The value of `template` over `data` as JSON text, `fails: …` or `absent`. */
export function expanded(
  template: string,
  data: string | JsonObject = '{}',
  more: Partial<EvaluationContext> = {},
): string {
  const report = notes()
  const compiled = compileTemplate(template, report, 'text')
  if (report.mistakes.length > 0) return `mistake: ${report.mistakes.join('; ')}`
  const run = expansionOf(contextOf(data, more))
  const value = compiled.value(run)
  if (run.failure !== undefined) return `fails: ${run.failure.description}`
  return value === undefined ? 'absent' : stringifyJson(value)
}

/** The mistake of a text, which must have one. */
export function mistakeOf(template: string): string {
  const report = notes()
  compileTemplate(template, report, 'text')
  return report.mistakes.join('; ')
}

/** The command of a logic (JSON text); for a set, the data as text. */
export function runLogic(
  logic: string,
  data: string | JsonObject,
  more: Partial<EvaluationContext> = {},
): unknown {
  const { command, mistakes } = compiledLogic(logic, contextOf(data, more))
  if (mistakes.length > 0) return { mistakes }
  if (command?.command === 'set') return command.doc.text
  return command
}

export function compiledLogic(
  logic: string,
  context: EvaluationContext,
): {
  command: Command | undefined
  mistakes: string[]
  warnings: string[]
  target_conv_ids: string[]
} {
  const raw = parseJson(logic) as JsonObject
  const report = notes()
  const row = logicTable.find(({ type }) => type === raw.type)
  if (row === undefined) throw new Error(`no kind ${String(raw.type)}`)
  const compiled = row.compile(raw, report)
  const { mistakes, warnings, target_conv_ids } = report
  const command = mistakes.length > 0 ? undefined : compiled.run(context)
  return { command, mistakes, warnings, target_conv_ids }
}

export function compiledText(definition: string): CompileResult {
  return compileProcess(parseJson(definition) as JsonObject, limitsWith())
}
