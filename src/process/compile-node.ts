/**
 * Compiles one node: its logics by logics/table.ts, and its semaphors. Those of an end node are not
 * read.
 *
 * The value of a time semaphor is a number, seconds from the start of the wait (`dimension` is for
 * editors only), or a template for an absolute Unix second: a past one fires at once, a missing or
 * malformed one fails the task in its node. A count semaphor without a node does nothing.
 */
import { isNumberToken, isObject, numberText } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { type NodeHead, nodeType, parsedOptions } from './compile-head.ts'
import {
  limit_count_max,
  limit_key_chars_max,
  node_parts_max,
  unix_seconds_max,
} from './definition-limits.ts'
import type { CountSemaphor, DueTime, GraphNode, NodeLimit, TimeSemaphor } from './graph.ts'
import type { DbCallKinds, EvaluationContext, Logic, LogicKind } from './logic.ts'
import { handlerKind } from './logics/api-callback.ts'
import { sumNames } from './logics/api-sum.ts'
import { fail } from './logics/failures.ts'
import { isAbsent, mapObjects } from './logics/members.ts'
import { stubOf } from './logics/stub.ts'
import { kindOf, whyNotRun } from './logics/table.ts'
import { expected, quoted, type Report, reportAt, truncated } from './report.ts'
import { expansionOf } from './templates/parser.ts'
import { compileTemplate } from './templates/template.ts'
import { doubleOf, textOf } from './values.ts'
import { readLock } from './webhook-lock.ts'

export interface HandlerRules {
  /** Whether the embedder has a handler for a logic type, or for a title. */
  isHandled(name: string): boolean
  /**
   * Reports a logic that nothing runs: a mistake if a task can reach the node. `handler_type` is
   * the type of the handler that would run it.
   */
  notRun(text: string, handler_type: string | undefined): void
  /** Whether a task can reach the node. Known once all nodes are compiled. */
  isReachable(): boolean
  /** The kinds of `db_call`, where there are databases. */
  readonly db_call: DbCallKinds | undefined
}

/** Compiles a node. `report` is one that adds the place of the node to each text. */
export function compileNode(head: NodeHead, report: Report, rules: HandlerRules): GraphNode {
  const { id, kind, title, raw } = head
  const options = optionsOf(raw.options, report)
  const condition = kind === 'end' ? {} : conditionOf(raw.condition, report)
  const raw_logics = listIn(condition, 'logics', report)
  const is_stub = nodeType(raw.obj_type) === 4
  const stub = is_stub ? stubOf(condition.stub) : undefined
  const logics = compileLogics(raw_logics, report, rules, stub)
  const limits = compileLimits(raw, raw_logics, logics, report)
  if (kind === 'end' && limits !== undefined) report.mistake('an end has no limit')
  const semaphors = listIn(condition, 'semaphors', report)
  const { time_semaphors, count_semaphors } = compileSemaphors(semaphors, report)
  if (kind === 'start' && logics.length === 0) report.mistake('the start leads nowhere')
  else if (kind !== 'end' && time_semaphors.length === 0) {
    warnOfWait(logics, rules.isHandled(title), report)
  }
  // Written out, without a spread, and alike for all nodes, which keeps running them fast.
  return {
    id,
    kind,
    title,
    logics,
    limits,
    time_semaphors,
    count_semaphors,
    sum_names: sumNames(raw_logics),
    save_task: options.save_task === true,
    direct_url: options.direct_url === true,
    lock: kind === 'start' ? readLock(options, report) : undefined,
    is_stub: is_stub && logics.some(({ type }) => type === 'api_rpc'),
  }
}

const mistaken = { tag: 'bad_definition', description: 'the node has a mistake in its definition' }

/** A node with a mistake, which no task can reach: one that an import moves here fails. */
export function brokenNode(node: GraphNode): GraphNode {
  const failure = fail('node', mistaken, undefined)
  const none = { waits_for: undefined, err_node_id: undefined, job: undefined, callback: undefined }
  const logics: Logic[] = [{ type: 'mistake', ...none, run: () => failure }]
  return { ...node, logics, limits: undefined, time_semaphors: [], count_semaphors: [] }
}

/** A handler answers in bounded time, or the task fails. */
function warnOfWait(logics: readonly Logic[], is_handled: boolean, report: Report): void {
  if (logics.some(({ waits_for }) => waits_for === 'callback')) {
    if (!is_handled) report.warning('waits for a callback without a time limit')
  } else if (logics.at(-1)?.type !== 'go') {
    report.warning('a task that no logic sends on rests here without a time limit')
  }
}

function optionsOf(options: JsonValue | undefined, report: Report): JsonObject {
  if (options === undefined || options === null || options === '') return {}
  const read = parsedOptions(options)
  if (isObject(read)) return read
  // An empty map comes as an array from some editors.
  if (read === null || (Array.isArray(read) && read.length === 0)) return {}
  expected(report, 'options', options, 'an object')
  return {}
}

function conditionOf(condition: JsonValue | undefined, report: Report): JsonObject {
  if (isObject(condition)) return condition
  if (condition === undefined || condition === null) return {}
  expected(report, 'condition', condition, 'an object')
  return {}
}

function listIn(condition: JsonObject, name: string, report: Report): readonly JsonValue[] {
  const list = condition[name]
  if (list === undefined || list === null) return []
  if (Array.isArray(list) && list.length <= node_parts_max) return list
  if (Array.isArray(list)) {
    report.mistake(`${name}: ${list.length} of them are more than ${node_parts_max}`)
  } else {
    expected(report, name, list, 'an array')
  }
  return []
}

function compileLogics(
  list: readonly JsonValue[],
  report: Report,
  rules: HandlerRules,
  stub: LogicKind | undefined,
): Logic[] {
  return mapObjects(list, 'logics', report, (raw, place) => {
    const is_stub = raw.type === stub?.type
    const kind = (is_stub ? stub : kindOf(raw)) ?? otherKindOf(raw, place, rules)
    return compileLogic(kind, raw, reportAt(report, `${place} ${kind.type}`))
  })
}

/** Also of a type that nothing runs: a task that an import moves to such a node fails there. */
function otherKindOf(raw: JsonObject, place: string, rules: HandlerRules): LogicKind {
  if (raw.type === 'db_call' && rules.db_call !== undefined) {
    return rules.db_call.kind(!rules.isHandled('db_call'))
  }
  const { text, may_be_handled } = whyNotRun(raw)
  const type = typeof raw.type === 'string' ? raw.type : quoted(raw.type)
  const is_handled = may_be_handled && rules.isHandled(type)
  if (!is_handled) rules.notRun(`${place} ${text}`, may_be_handled ? type : undefined)
  return handlerKind(type, rules.isReachable)
}

/** All logics have the same members in the same order, which keeps running them fast. */
function compileLogic(
  { type, waits_for, compile }: LogicKind,
  raw: JsonObject,
  report: Report,
): Logic {
  const { err_node_id, run, job, callback } = compile(raw, report)
  return { type, waits_for, err_node_id, run, job, callback }
}

/** Those of the node itself, `limit` beside its `condition`, then those in its logics. */
function compileLimits(
  node: JsonObject,
  raw_logics: readonly JsonValue[],
  logics: readonly Logic[],
  report: Report,
): readonly NodeLimit[] | undefined {
  const found: NodeLimit[] = []
  const add = (raw: JsonObject, logic_at: number, place: string): void => {
    if (raw.limit === undefined) return
    for (const [at, one] of listIn(raw, 'limit', reportAt(report, place)).entries()) {
      const of = reportAt(report, `${place} limit[${at}]`)
      const { key, ...how } = isObject(one) ? one : {}
      const count = compileCount(how, of)
      if (typeof key !== 'string' || key.length > limit_key_chars_max) {
        expected(of, 'key', key, `a text of at most ${limit_key_chars_max} characters`)
      } else if (count !== undefined) {
        const name = count.rate === undefined ? key : `rate ${key}`
        if (found.some((other) => other.name === name)) {
          of.mistake(`key ${quoted(key)} is of another limit of the node`)
        }
        const template = compileTemplate(key, of, 'key')
        const err_node_id = place === 'node' ? undefined : logics[logic_at]?.err_node_id
        found.push({ logic_at, name, text: key, key: template, ...count, err_node_id })
      }
    }
  }
  add(node, 0, 'node')
  for (const [at, raw] of raw_logics.entries()) if (isObject(raw)) add(raw, at, `logics[${at}]`)
  return found.length === 0 ? undefined : found
}

/** Either `at_once`, or `rate` with `per_s` (1) and `burst` (the rate). */
function compileCount(
  raw: JsonObject,
  report: Report,
): Pick<NodeLimit, 'at_once' | 'rate'> | undefined {
  const counts: number[] = []
  const read = (name: string, otherwise: number): number => {
    const value = raw[name] ?? otherwise
    const count = isNumberToken(value) ? Number(numberText(value)) : value
    const is_count = typeof count === 'number' && Number.isSafeInteger(count) && count >= 1
    if (is_count && count <= limit_count_max) counts.push(count)
    else expected(report, name, raw[name], `a whole number from 1 to ${limit_count_max}`)
    return is_count ? count : 1
  }
  if (raw.rate === undefined) {
    const at_once = read('at_once', 0)
    return counts.length === 1 ? { at_once, rate: undefined } : undefined
  }
  if (raw.at_once !== undefined) report.mistake('it has both at_once and rate: write two limits')
  const rate = read('rate', 0)
  const all = { rate, per_s: read('per_s', 1), burst: read('burst', rate) }
  return counts.length === 3 ? { at_once: Number.POSITIVE_INFINITY, rate: all } : undefined
}

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
