/**
 * `api_code`: JavaScript over the task's data. The code sees a global `data` and changes it:
 * sets and deletes members, or puts another object in its place. It runs outside the
 * transaction, so its result comes back over data that may have moved on: what it changed and
 * removed is applied to the data as it then is, what it left alone is not touched, and a number
 * it left alone keeps its text.
 *
 * Code is run as it is written: a template in it is not read, and it has no libraries. Here
 * nothing runs; how the sandbox runs it is the executor's part (executors/code).
 */
import { bytesOf, docOfValue, isObject, objectOf, parseJson } from '../../codec/json.ts'
import type { Doc, JsonObject, JsonValue } from '../../core/model.ts'
import { value_bounds } from '../definition-limits.ts'
import type { Command, EvaluationContext, JobOutcome, LogicKind } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted } from '../report.ts'
import { applyDiff, diffData } from './data-diff.ts'

interface ApiCode {
  readonly src: string
  readonly err_node_id: string | undefined
}

const job: Command = { command: 'job' }

export const apiCode: LogicKind<ApiCode> = {
  type: 'api_code',
  parse(raw, report) {
    const { lang = 'js', src, err_node_id } = raw
    if (lang !== 'js') report.mistake(`lang ${quoted(lang)} is not run here, only "js" is`)
    if (typeof src !== 'string') report.mistake(`src is ${quoted(src)}, a text was expected`)
    else if (lang === 'js') warnOfCode(src, report)
    return { src: typeof src === 'string' ? src : '', err_node_id: errorNode(err_node_id, report) }
  },
  run: () => job,
  errorNode: ({ err_node_id }) => err_node_id,
  job: {
    order: ({ src }, context) => ({ job: 'code', src, doc: context.doc }),
    finish: ({ err_node_id }, context, order_doc, outcome) =>
      finishCode(err_node_id, context, order_doc, outcome),
  },
}

function errorNode(err_node_id: JsonValue | undefined, report: Report): string | undefined {
  if (err_node_id === undefined || err_node_id === null || err_node_id === '') return undefined
  return report.targetNode('err_node_id', err_node_id)
}

/** What is legal and will fail when it runs, as far as it shows in the text. */
function warnOfCode(src: string, report: Report): void {
  if (/\brequire\s*\(/.test(src)) report.warning('src calls require, and there are no libraries')
  if (/\{\{\s*(env_var|conv|node|root)\b/.test(src)) {
    report.warning('src holds a template, which is not read in code')
  }
  const mistake = syntaxMistake(src)
  if (mistake !== undefined) report.warning(`src is no JavaScript: ${mistake}`)
}

/** Compiles the code and drops it: making a function runs nothing of it. */
function syntaxMistake(src: string): string | undefined {
  try {
    new Function(src)
    return undefined
  } catch (error) {
    // A process that forbids making functions from text cannot look.
    return error instanceof Error && error.name === 'SyntaxError' ? error.message : undefined
  }
}

function finishCode(
  err_node_id: string | undefined,
  context: EvaluationContext,
  order_doc: Doc,
  outcome: JobOutcome,
): Command {
  if (outcome.outcome === 'failed') {
    const { error_type, tag, description } = outcome
    return { command: 'fail', kind: 'code', error_type, tag, description, err_node_id }
  }
  const after = objectIn(outcome.text)
  if (typeof after === 'string') return badFormat(after, err_node_id)
  const difference = diffData(objectOf(order_doc), after)
  const doc = docOfValue(applyDiff(objectOf(context.doc), difference))
  const bytes = bytesOf(doc.text)
  if (bytes <= context.task_bytes_max) return { command: 'set', doc, err_node_id }
  const size = `Your task size: ${bytes} bytes`
  const most = `Max available task size: ${context.task_bytes_max} bytes`
  return badFormat(`${size}, ${most}`, err_node_id)
}

const data_bounds = {
  nesting_max: value_bounds.nesting_max + 1,
  values_max: value_bounds.values_max,
}

/** The object of the text, or what keeps it from being a task's data. */
function objectIn(text: string): JsonObject | string {
  try {
    const value = parseJson(text, data_bounds)
    return isObject(value) ? value : 'data is no object'
  } catch (error) {
    return `data: ${error instanceof Error ? error.message : String(error)}`
  }
}

function badFormat(description: string, err_node_id: string | undefined): Command {
  return {
    command: 'fail',
    kind: 'code',
    error_type: 'software',
    tag: 'code_return_format_error',
    description,
    err_node_id,
  }
}
