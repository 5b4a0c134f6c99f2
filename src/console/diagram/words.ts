/**
 * The words of a drawing: what a node does, and when an edge is taken. Read from the
 * logics and semaphors of a definition as they are written; the text is that of the definition and
 * is no markup, so who draws it escapes it.
 */
import { isObject } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { comparisonTable } from '../../process/logics/comparisons.ts'
import { handler_types } from '../../process/logics/table.ts'
import { textOf } from '../../process/values.ts'
import { cut } from './text.ts'

/** By type: what a node with the logic does, and what its error edge says. */
const logic_words: Readonly<Record<string, readonly [does: string, fails: string]>> = {
  set_param: ['set', 'set fails'],
  api_callback: ['callback', 'handler fails'],
  api: ['call', 'call fails'],
  api_code: ['code', 'code fails'],
  api_copy: ['create a task', 'create fails'],
  api_rpc: ['call a process', 'called task fails'],
  api_rpc_reply: ['reply', 'reply fails'],
  api_queue: ['queue', 'queue fails'],
  api_get_task: ['take from a queue', 'nothing taken'],
  api_sum: ['sum', 'sum fails'],
  ...Object.fromEntries(handler_types.map((type) => [type, [`handler ${type}`, 'handler fails']])),
  db_call: ['query a database', 'query fails'],
}

/** `is_stub`: the node answers its calls from a stub. */
export function doesOf(
  { type, mode, throw_exception }: JsonObject,
  is_stub: boolean,
): string | undefined {
  if (type === 'api_rpc' && is_stub) return 'answer from a stub'
  if (type === 'go' || type === 'go_if_const') return undefined
  if (type === 'api_copy' && mode === 'modify') return 'modify a task'
  if (type === 'api_rpc_reply' && String(throw_exception) === 'true') return 'reply an exception'
  return wordsOf(type)?.[0] ?? String(type)
}

export function failsOf({ type, mode }: JsonObject): string {
  if (type === 'api_copy' && mode === 'modify') return 'modify fails'
  return wordsOf(type)?.[1] ?? `${String(type)} fails`
}

function wordsOf(type: JsonValue | undefined): readonly [string, string] | undefined {
  return Object.hasOwn(logic_words, String(type)) ? logic_words[String(type)] : undefined
}

/** When a `go_if_const` is taken. Older definitions have one condition, in the logic itself. */
export function conditionsOf(logic: JsonObject): string {
  const { conditions, fun } = logic
  const list = Array.isArray(conditions) ? conditions : fun === undefined ? [] : [logic]
  const texts = list.filter(isObject).map(conditionOf)
  return texts.length === 0 ? 'always' : texts.join(' and ')
}

/** `amount > 1000`, `status = "paid"`, `name ~ ^[A-Z]`. */
function conditionOf({ param, fun, cast, const: constant }: JsonObject): string {
  const row = comparisonTable.find((one) => one.fun === fun)
  const sign = row?.syntax.split(' ')[1] ?? text(fun)
  const is_text = cast === undefined || cast === null || cast === '' || cast === 'string'
  const wanted = text(constant)
  const shown = is_text && fun !== 'regexp' && !isTemplate(wanted) ? JSON.stringify(wanted) : wanted
  return `${bare(text(param))} ${sign} ${bare(shown)}`
}

const seconds: readonly (readonly [unit: string, s: number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

/** `after 3 days`, `at {{due}}`, `over 100 tasks`. */
export function semaphorText({ type, value }: JsonObject): string {
  const shown = text(value)
  if (type !== 'time') return `over ${shown} ${shown === '1' ? 'task' : 'tasks'}`
  const s = Number(shown)
  if (shown === '' || !Number.isFinite(s) || s < 0) return `at ${shown}`
  const [unit, unit_s] = seconds.find(([, each]) => s > 0 && s % each === 0) ?? ['second', 1]
  const count = s / unit_s
  return `after ${count} ${unit}${count === 1 ? '' : 's'}`
}

const part_chars_max = 100

function text(value: JsonValue | undefined): string {
  return value === undefined || value === null ? '' : cut(textOf(value), part_chars_max)
}

const whole_template = /^\s*\{\{\s*([^{}]+?)\s*\}\}\s*$/

const isTemplate = (value: string): boolean => whole_template.test(value)

const bare = (value: string): string => whole_template.exec(value)?.[1] ?? value
