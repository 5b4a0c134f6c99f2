/**
 * Compiles one node of a process: its logics by the table of logics/table.ts, and its semaphors.
 * The logics and semaphors of an end node are not read.
 */
import { isObject, parseJson } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { compileSemaphors } from './compile-semaphors.ts'
import { node_parts_max } from './definition-limits.ts'
import type { GraphNode, NodeKind } from './graph.ts'
import type { Logic, LogicKind } from './logic.ts'
import { sumNames } from './logics/api-sum.ts'
import { fail } from './logics/failures.ts'
import { handlerKind } from './logics/handler.ts'
import { mapObjects } from './logics/members.ts'
import { kindOf, whyNotRun } from './logics/table.ts'
import { quoted, type Report, reportAt } from './report.ts'

/** What is known of logics that this program does not run. */
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
}

/** By `obj_type`. The public editor can answer nodes of 4 from a stub; here they are run. */
export const node_kinds: readonly NodeKind[] = ['logic', 'start', 'end', 'escalation', 'logic']

/** What is read of all nodes before any logics are compiled, so that targets are known. */
export interface NodeHead {
  readonly id: string
  readonly kind: NodeKind
  readonly title: string
  readonly raw: JsonObject
}

/** Compiles a node. `report` is one that adds the place of the node to each text. */
export function compileNode(head: NodeHead, report: Report, rules: HandlerRules): GraphNode {
  const { id, kind, title, raw } = head
  const options = optionsOf(raw.options, report)
  const condition = kind === 'end' ? {} : conditionOf(raw.condition, report)
  const raw_logics = listIn(condition, 'logics', report)
  const logics = compileLogics(raw_logics, report, rules)
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
    time_semaphors,
    count_semaphors,
    sum_names: sumNames(raw_logics),
    save_task: options.save_task === true,
    direct_url: options.direct_url === true,
  }
}

const mistaken = { tag: 'bad_definition', description: 'the node has a mistake in its definition' }

/** A node with a mistake, which no task can reach: one that an import moves here fails. */
export function brokenNode(node: GraphNode): GraphNode {
  const failure = fail('node', mistaken, undefined)
  const none = { waits_for: undefined, err_node_id: undefined, job: undefined, callback: undefined }
  const logics: Logic[] = [{ type: 'mistake', ...none, run: () => failure }]
  return { ...node, logics, time_semaphors: [], count_semaphors: [] }
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
  const read = typeof options === 'string' ? parsed(options) : options
  if (isObject(read)) return read
  // An empty map comes as an array from some editors.
  if (read === null || (Array.isArray(read) && read.length === 0)) return {}
  report.mistake(`options is ${quoted(options)}, an object was expected`)
  return {}
}

function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

function conditionOf(condition: JsonValue | undefined, report: Report): JsonObject {
  if (condition === undefined || condition === null) return {}
  if (isObject(condition)) return condition
  report.mistake(`condition is ${quoted(condition)}, an object was expected`)
  return {}
}

function listIn(condition: JsonObject, name: string, report: Report): readonly JsonValue[] {
  const list = condition[name]
  if (list === undefined || list === null) return []
  if (Array.isArray(list) && list.length <= node_parts_max) return list
  if (Array.isArray(list)) {
    report.mistake(`${name}: ${list.length} of them are more than ${node_parts_max}`)
    return []
  }
  report.mistake(`${name} is ${quoted(list)}, an array was expected`)
  return []
}

function compileLogics(list: readonly JsonValue[], report: Report, rules: HandlerRules): Logic[] {
  return mapObjects(list, 'logics', report, (raw, place) => {
    const kind = kindOf(raw) ?? handlerKindOf(raw, place, rules)
    return compileLogic(kind, raw, reportAt(report, `${place} ${kind.type}`))
  })
}

/** Also of a type that nothing runs: a task that an import moves to such a node fails there. */
function handlerKindOf(raw: JsonObject, place: string, rules: HandlerRules): LogicKind {
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
