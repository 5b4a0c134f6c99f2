/**
 * Reads one node of a process. Every mistake is noted with the node it stands in; where it leads is
 * noted too, so that the graph can tell which nodes nothing leads to. The logics and semaphors of
 * an end are not looked at.
 */
import { isObject, parseJson } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { compileTimeSemaphor } from './compile-semaphors.ts'
import { node_parts_max } from './definition-limits.ts'
import type { CountSemaphor, GraphNode, NodeKind, TimeSemaphor } from './graph.ts'
import type { Logic } from './logic.ts'
import { handler_types, handlerRow, type LogicRow, logicTable } from './logics/table.ts'
import type { Report } from './report.ts'
import { quoted } from './report.ts'

/** Whether the embedder has a handler for a logic type. */
export type IsHandled = (type: string) => boolean

/** By `obj_type`; 4 is a call that the public editor can answer from a stub, and calls here. */
export const node_kinds: readonly NodeKind[] = ['logic', 'start', 'end', 'escalation', 'logic']

/** What is known of a node before its logics are read. */
export interface NodeHead {
  readonly id: string
  readonly kind: NodeKind
  readonly title: string
  readonly raw: JsonObject
}

/**
 * Notes for one node; `report` puts the node's place before each text. `isHandled` tells of which
 * logic types not run here the embedder runs.
 */
export function compileNode(head: NodeHead, report: Report, isHandled: IsHandled): GraphNode {
  const { id, kind, title, raw } = head
  const node = { id, kind, title, save_task: saveTask(raw.options, report) }
  if (kind === 'end') return { ...node, logics: [], time_semaphors: [], count_semaphors: [] }
  const condition = conditionOf(raw.condition, report)
  const logics = compileLogics(listIn(condition, 'logics', report), report, isHandled)
  const semaphors = listIn(condition, 'semaphors', report)
  const { time_semaphors, count_semaphors } = compileSemaphors(semaphors, report)
  if (kind === 'start' && logics.length === 0) report.mistake('the start leads nowhere')
  else if (time_semaphors.length === 0) warnOfRest(logics, report)
  return { ...node, logics, time_semaphors, count_semaphors }
}

function warnOfRest(logics: readonly Logic[], report: Report): void {
  if (logics.some(({ waits_for }) => waits_for === 'callback')) {
    report.warning('waits for a callback without a time limit')
  } else if (logics.at(-1)?.type !== 'go') {
    report.warning('a task that no logic sends on rests here without a time limit')
  }
}

function saveTask(options: JsonValue | undefined, report: Report): boolean {
  if (options === undefined || options === null || options === '') return false
  const read = typeof options === 'string' ? parsed(options) : options
  if (isObject(read)) return read.save_task === true
  // An empty map comes as an array from some editors.
  if (read === null || (Array.isArray(read) && read.length === 0)) return false
  report.mistake(`options is ${quoted(options)}, an object was expected`)
  return false
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

function compileLogics(list: readonly JsonValue[], report: Report, isHandled: IsHandled): Logic[] {
  const logics: Logic[] = []
  for (const [at, raw] of list.entries()) {
    const place = `logics[${at}]`
    if (!isObject(raw)) {
      report.mistake(`${place} is ${quoted(raw)}, an object was expected`)
      continue
    }
    const row = logicTable.find(({ type }) => type === raw.type) ?? handledBy(raw.type, isHandled)
    if (row !== undefined) logics.push(row.compile(raw, behind(report, `${place} ${row.type}`)))
    else if (handler_types.some((type) => type === raw.type)) {
      report.mistake(`${place} type ${quoted(raw.type)} is not run here`)
    } else report.mistake(`${place} type ${quoted(raw.type)} is no logic of this release`)
  }
  return logics
}

function handledBy(type: JsonValue | undefined, isHandled: IsHandled): LogicRow | undefined {
  const known = handler_types.find((one) => one === type)
  return known !== undefined && isHandled(known) ? handlerRow(known) : undefined
}

function compileSemaphors(
  list: readonly JsonValue[],
  report: Report,
): Pick<GraphNode, 'time_semaphors' | 'count_semaphors'> {
  const time_semaphors: TimeSemaphor[] = []
  const count_semaphors: CountSemaphor[] = []
  for (const [at, raw] of list.entries()) {
    const place = `semaphors[${at}]`
    if (!isObject(raw)) report.mistake(`${place} is ${quoted(raw)}, an object was expected`)
    else if (raw.type === 'time') {
      time_semaphors.push(compileTimeSemaphor(raw, behind(report, `${place} time`)))
    } else if (raw.type === 'count') {
      count_semaphors.push(compileCountSemaphor(raw, behind(report, `${place} count`)))
    } else report.mistake(`${place} type ${quoted(raw.type)} is neither "time" nor "count"`)
  }
  return { time_semaphors, count_semaphors }
}

/** A whole number of tasks, or a text of digits. */
function compileCountSemaphor(raw: JsonObject, report: Report): CountSemaphor {
  const value = typeof raw.value === 'string' ? Number(raw.value) : raw.value
  const is_count = typeof value === 'number' && Number.isSafeInteger(value) && value > 0
  if (!is_count) report.mistake(`value ${quoted(raw.value)} is no number of tasks`)
  const esc_node_id = report.targetNode('esc_node_id', raw.esc_node_id) ?? ''
  return { value: is_count ? value : 1, esc_node_id }
}

/** A target's mistake names the member and the node alone, so it needs no place within the node. */
function behind(report: Report, place: string): Report {
  return {
    mistake: (text) => report.mistake(`${place}: ${text}`),
    warning: (text) => report.warning(`${place}: ${text}`),
    targetNode: report.targetNode,
    targetProcess: report.targetProcess,
  }
}
