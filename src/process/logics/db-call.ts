/**
 * `db_call`: one statement for a database that the operator gave under `instance_id`, after the
 * commit. Values are bound, never put into the SQL (sql-statement.ts). The rows come into the data
 * as `result`, with `rows_count`. A handler registered for the type runs in place of it.
 */
import { mergeDocs } from '../../codec/doc-text.ts'
import { docOfValue, isObject, objectOf } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import type { Command, DbCallKinds, EvaluationContext, LogicKind, SqlDialect } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
import { type Expansion, expansionOf, failWith, joinParts, type Term } from '../templates/parser.ts'
import { compileTemplate } from '../templates/template.ts'
import { idText, parsedValue, textOf } from '../values.ts'
import { handlerJob } from './api-callback.ts'
import { contextWith } from './api-response.ts'
import { type Assignment, assignedData, readAssignments } from './assignments.ts'
import { advice, fail, failedExpansion, oversize } from './failures.ts'
import { isAbsent, readErrorNode } from './members.ts'
import { type BoundPart, type BoundStatement, bindStatement } from './sql-statement.ts'

const kind = 'db_call'
const overflow = 'db_call_size_overflow_limit'
const tags = { convert: 'db_call_wrong_convert_param', overflow }
const job_command: Command = { command: 'job' }

/** The kinds for databases by their names. */
export function dbCallKinds(databases: ReadonlyMap<string, SqlDialect>): DbCallKinds {
  return {
    instances: [...databases.keys()],
    kind: (is_checked) => ({
      type: kind,
      compile: (raw, report) => compileDbCall(raw, report, databases, is_checked),
    }),
  }
}

function compileDbCall(
  raw: JsonObject,
  given: Report,
  databases: ReadonlyMap<string, SqlDialect>,
  is_checked: boolean,
): ReturnType<LogicKind['compile']> {
  const err_node_id = readErrorNode(raw, given)
  const mistakes: string[] = []
  const report: Report = { ...given, mistake: (text) => mistakes.push(text) }
  const instance = idText(raw.instance_id) ?? ''
  const dialect = databases.get(instance)
  const statementIn = readStatements(raw, report)
  const params = readAssignments(raw, 'params', 'params_type', report)
  const time_ms_max = readTimeout(raw.timeout, report)
  if (is_checked) {
    if (dialect === undefined) given.warning(notGiven(instance))
    const found = dialect === undefined ? undefined : statementIn(dialect)
    if (typeof found === 'string') {
      if (isEmpty(raw)) given.warning(`query: ${found}`)
      else mistakes.push(`query: ${found}`)
    }
    for (const text of mistakes) given.mistake(text)
  }
  const failed = (tag: string, description: string): Command =>
    fail(kind, { tag, description }, err_node_id)
  const handled = handlerJob(() => kind, err_node_id)
  return {
    err_node_id,
    run: () => job_command,
    job: {
      instance,
      order(context) {
        if (dialect === undefined) return failed('db_call_instance_not_found', notGiven(instance))
        const statement = statementIn(dialect)
        const mistake = mistakes[0] ?? (typeof statement === 'string' ? statement : undefined)
        if (mistake !== undefined) return failed('db_call_executing_error', mistake)
        const { text, params: bound } = statement as BoundStatement
        const expansion = withParams(context, params)
        const values = valuesOf(bound, expansion, dialect)
        if (values === undefined) return failedExpansion(kind, expansion, err_node_id, tags)
        return { job: 'db', instance, text, values, time_ms_max, doc: context.doc }
      },
      finish(context, order, outcome) {
        if (order.job === 'handler') return handled.finish(context, order, outcome)
        if (outcome.outcome === 'failed') return fail(kind, outcome, err_node_id)
        const result = parsedValue(outcome.text)
        if (!isObject(result)) return failed(overflow, `the answer has too many values${advice}`)
        const doc = mergeDocs(context.doc, docOfValue(result))
        const description = oversize(doc, context.task_bytes_max)
        if (description !== undefined) return failed(overflow, description)
        return { command: 'set', doc, err_node_id }
      },
    },
  }
}

function notGiven(instance: string): string {
  if (instance === '') return 'instance_id names no database'
  return `instance_id ${quoted(instance)} is not among the databases of this program (--databases)`
}

function isEmpty({ query }: JsonObject): boolean {
  return isAbsent(query) || (typeof query === 'string' && query.trim() === '')
}

/** The statement of each language, or why it is none. Each is scanned once. */
function readStatements(
  raw: JsonObject,
  report: Report,
): (dialect: SqlDialect) => BoundStatement | string {
  const { query } = raw
  const text = typeof query === 'string' ? query : ''
  if (!isAbsent(query) && typeof query !== 'string') {
    report.mistake(`query is ${quoted(query)}, a text was expected`)
  }
  const { parts } = compileTemplate(text, report, 'query')
  const known = new Map<SqlDialect, BoundStatement | string>()
  return (dialect) => {
    const found = known.get(dialect) ?? bindStatement(parts, dialect)
    known.set(dialect, found)
    return found
  }
}

const timeout_default_s = 30
const timeout_max_s = 86_400

function readTimeout(value: JsonValue | undefined, report: Report): number {
  if (isAbsent(value)) return timeout_default_s * 1_000
  const seconds = Number(idText(value) ?? '-')
  if (seconds > 0 && seconds <= timeout_max_s) return Math.ceil(seconds * 1_000)
  report.mistake(`timeout ${quoted(value)} is no number of seconds up to ${timeout_max_s}`)
  return timeout_default_s * 1_000
}

/** What the templates of the query see: the data, with `params` over it. */
function withParams(context: EvaluationContext, params: readonly Assignment[]): Expansion {
  const outer = expansionOf(context)
  if (params.length === 0) return outer
  const given = assignedData(params, outer)
  if (given === undefined) return outer
  const inner = contextWith(context, docOfValue({ ...objectOf(context.doc), ...given }))
  return { ...outer, context: inner }
}

/** Undefined where the expansion failed. */
function valuesOf(
  bound: readonly BoundPart[],
  expansion: Expansion,
  dialect: SqlDialect,
): (string | null)[] | undefined {
  const values: (string | null)[] = []
  for (const { parts, is_quoted } of bound) {
    if (expansion.failure !== undefined) return undefined
    const value = is_quoted
      ? joinParts(parts, expansion)
      : boundValue((parts[0] as Term)(expansion), dialect)
    if (expansion.failure !== undefined) return undefined
    expansion.left_chars -= value?.length ?? 0
    if (expansion.left_chars < 0) return failWith(expansion, 'overflow', '')
    values.push(value ?? null)
  }
  return expansion.failure === undefined ? values : undefined
}

/** A text: its type is the one that the database finds for the parameter. */
function boundValue(value: JsonValue | undefined, dialect: SqlDialect): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'boolean' && dialect === 'mysql') return value ? '1' : '0'
  return textOf(value)
}
