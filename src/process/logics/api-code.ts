/**
 * `api_code`: JavaScript over a global `data`, outside the transaction. Only what the code changed
 * and removed is applied to the data of the time when it ends; unchanged numbers keep their exact
 * text. Numbers are printed as doubles, and 1e400 as null, which counts as unchanged.
 *
 * Templates in code are not expanded. Code that names `__root` finds the fields of the task there;
 * they are no part of the result. executors/code.ts runs the code.
 */
import {
  docOfValue,
  isNumberToken,
  isObject,
  objectOf,
  parseJson,
  setMember,
} from '../../codec/json.ts'
import type { Doc, JsonObject, JsonValue, NumberToken } from '../../core/model.ts'
import { value_bounds } from '../definition-limits.ts'
import { type Command, type EvaluationContext, type LogicKind, rootNames } from '../logic.ts'
import { expected, quoted, type Report } from '../report.ts'
import { namedLibraries } from './code-libraries.ts'
import { fail, oversize } from './failures.ts'
import { readErrorNode } from './members.ts'

const root_name = '__root'
const job_command: Command = { command: 'job' }

export const apiCode: LogicKind = {
  type: 'api_code',
  compile(raw, report) {
    const src = readCode(raw, report)
    const { libraries } = namedLibraries(src)
    const has_root = src.includes(root_name)
    const err_node_id = readErrorNode(raw, report)
    const malformed = (description: string): Command =>
      fail('code', { tag: 'code_return_format_error', description }, err_node_id)
    return {
      err_node_id,
      run: () => job_command,
      job: {
        order: (context) => ({
          job: 'code',
          src,
          libraries,
          doc: has_root ? withRoot(context) : context.doc,
        }),
        finish(context, order, outcome) {
          if (outcome.outcome === 'failed') return fail('code', outcome, err_node_id)
          const after = parseData(outcome.text)
          if (typeof after === 'string') return malformed(after)
          const before = objectOf(order.doc)
          if (has_root) setMember(after, root_name, before[root_name] as JsonValue)
          const diff = diffData(before, after)
          const doc = docOfValue(applyDiff(objectOf(context.doc), diff))
          const too_large = oversize(doc, context.task_bytes_max)
          if (too_large !== undefined) return malformed(too_large)
          return { command: 'set', doc, err_node_id }
        },
      },
    }
  },
}

/** The data with the fields of the task as `__root`. */
function withRoot(context: EvaluationContext): Doc {
  const root: JsonObject = {}
  for (const name of rootNames) {
    const value = context.rootField(name)
    if (value !== undefined) root[name] = value
  }
  return docOfValue({ ...objectOf(context.doc), [root_name]: root })
}

/** From `src`, or from `code` as older exports have it. */
function readCode({ src, code }: JsonObject, report: Report): string {
  const text = src ?? code
  if (typeof text !== 'string') {
    expected(report, 'src', text, 'a text')
    return ''
  }
  warnOfCode(text, report)
  return text
}

/** Warns of code that is legal in a definition and will fail when it runs. */
function warnOfCode(src: string, report: Report): void {
  const { unknown, has_computed } = namedLibraries(src)
  for (const name of unknown)
    report.warning(`src requires ${quoted(name)}, which is not a library here`)
  if (has_computed) report.warning('src calls require with what is no name in quotes')
  if (/\{\{\s*(env_var|conv|node|root)\b/.test(src)) {
    report.warning('src holds a template, which is not read in code')
  }
  const mistake = syntaxMistake(src)
  if (mistake !== undefined) report.warning(`src is no JavaScript: ${mistake}`)
}

/** Compiles the code and discards it: creating a function runs nothing of it. */
function syntaxMistake(src: string): string | undefined {
  try {
    new Function(src)
    return undefined
  } catch (error) {
    // A Node process may forbid functions made from text; then nothing is checked.
    return error instanceof Error && error.name === 'SyntaxError' ? error.message : undefined
  }
}

const data_bounds = { ...value_bounds, nesting_max: value_bounds.nesting_max + 1 }

/** The object in the text, or why it cannot be a task's data. */
function parseData(text: string): JsonObject | string {
  try {
    const value = parseJson(text, data_bounds)
    return isObject(value) ? value : 'data is no object'
  } catch (error) {
    return `data: ${error instanceof Error ? error.message : String(error)}`
  }
}

export interface DataDiff {
  /** Members that are new or have another value. */
  readonly changed: JsonObject
  readonly removed: readonly string[]
}

/** From `before`, with exact numbers, to `after`, as a program with doubles printed it. */
export function diffData(before: JsonObject, after: JsonObject): DataDiff {
  const changed: JsonObject = {}
  for (const key of Object.keys(after)) {
    const old = ownMember(before, key)
    const value = withTokens(old, after[key] as JsonValue)
    if (value !== old) setMember(changed, key, value)
  }
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key))
  return { changed, removed }
}

/** Applies a diff to data that may have changed since; members outside the diff stay. */
export function applyDiff(data: JsonObject, { changed, removed }: DataDiff): JsonObject {
  const removed_keys = new Set(removed)
  const result: JsonObject = {}
  for (const key of Object.keys(data)) {
    if (!removed_keys.has(key)) setMember(result, key, data[key] as JsonValue)
  }
  for (const key of Object.keys(changed)) setMember(result, key, changed[key] as JsonValue)
  return result
}

/** `before` itself where both are equal; else `after`, with its unchanged parts from `before`. */
function withTokens(before: JsonValue | undefined, after: JsonValue): JsonValue {
  if (before === undefined || before === after) return after
  if (isNumberToken(before)) return printsAs(before, after) ? before : after
  if (Array.isArray(before)) return Array.isArray(after) ? arrayWithTokens(before, after) : after
  return isObject(before) && isObject(after) ? objectWithTokens(before, after) : after
}

/** Whether the number's double is printed as `value`. A zero loses its sign. */
function printsAs({ token }: NumberToken, value: JsonValue): boolean {
  const double = Number(token)
  return Number.isFinite(double) ? double === value : value === null
}

function arrayWithTokens(before: readonly JsonValue[], after: readonly JsonValue[]): JsonValue {
  const made = after.map((value, at) => withTokens(before[at], value))
  const is_same = before.length === made.length && made.every((value, at) => value === before[at])
  return is_same ? (before as JsonValue) : made
}

function objectWithTokens(before: JsonObject, after: JsonObject): JsonObject {
  const keys = Object.keys(after)
  const made: JsonObject = {}
  let is_same = keys.length === Object.keys(before).length
  for (const key of keys) {
    const old = ownMember(before, key)
    const value = withTokens(old, after[key] as JsonValue)
    setMember(made, key, value)
    is_same &&= value === old
  }
  return is_same ? before : made
}

function ownMember(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}
