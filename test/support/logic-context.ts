/**
 * Scopes, reports and compilers for tests of the logic floor. The moment is 2024-02-29 12:30:15.250
 * UTC and chance is 0.5, as the worked examples of functions have it.
 */
import { docOfText, parseJson, stringifyJson } from '../../src/codec/json.ts'
import { limitsWith } from '../../src/core/limits.ts'
import type { JsonObject, JsonValue } from '../../src/core/model.ts'
import { compileProcess } from '../../src/process/compile-process.ts'
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

/** `data` is JSON text, or an object that JSON text is made of. */
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
    taskData: () => undefined,
    nodeCount: () => 0,
    nodeSum: () => undefined,
    variable: () => undefined,
    ...more,
  }
}

/** A scope whose data may not be looked at. */
export function unreadableContext(): EvaluationContext {
  const doc = {
    get text(): string {
      throw new Error('the data was looked at')
    },
    get memo(): undefined {
      throw new Error('the data was looked at')
    },
    set memo(_value) {
      throw new Error('the data was looked at')
    },
  }
  return { ...contextOf('{}'), doc }
}

/** Knows the nodes `a` and `b`, and collects what is noted. */
export function notes(): Report & { mistakes: string[]; warnings: string[]; reaches: string[] } {
  const mistakes: string[] = []
  const warnings: string[] = []
  const reaches: string[] = []
  return {
    mistakes,
    warnings,
    reaches,
    targetProcess: (conv_id) => reaches.push(conv_id),
    mistake: (text) => mistakes.push(text),
    warning: (text) => warnings.push(text),
    targetNode(member, id) {
      if (id === 'a' || id === 'b') return id
      mistakes.push(`${member} is no node`)
      return undefined
    },
  }
}

/** A value of `template` over `data` as JSON text; `fails: …` and `absent` for the other two. */
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

/** The mistake of a text that must have one. */
export function mistakeOf(template: string): string {
  const report = notes()
  compileTemplate(template, report, 'text')
  return report.mistakes.join('; ')
}

/** Compiles the logic (JSON text) and runs it. A set gives its data as text. */
export function moved(
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
  scope: EvaluationContext,
): { command: Command | undefined; mistakes: string[]; warnings: string[]; reaches: string[] } {
  const raw = parseJson(logic) as JsonObject
  const report = notes()
  const row = logicTable.find(({ type }) => type === raw.type)
  if (row === undefined) throw new Error(`no kind ${String(raw.type)}`)
  const compiled = row.compile(raw, report)
  const { mistakes, warnings, reaches } = report
  const command = mistakes.length > 0 ? undefined : compiled.run(scope)
  return { command, mistakes, warnings, reaches }
}

export function compiledText(definition: string): CompileResult {
  return compileProcess(parseJson(definition) as JsonObject, limitsWith())
}
