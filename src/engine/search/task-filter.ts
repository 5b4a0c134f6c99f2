/**
 * Checks a filter (search-api) and matches tasks. Cursors and bulk jobs name their filter by its
 * identity; search-scope resolves processes and nodes. Conditions on data (`Where`) have no
 * templates or patterns, so they cost no more than parsing the data.
 */
import { canonicalText } from '../../codec/doc-text.ts'
import { isDoc, isNumberToken, isObject, objectOf, stringifyJson } from '../../codec/json.ts'
import { compareNumbers } from '../../codec/number-order.ts'
import { isName } from '../../codec/op.ts'
import { docOfPlain, plainBounds } from '../../codec/plain-value.ts'
import { is_live, statuses, type TaskRecord } from '../../codec/task-record.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { Doc, JsonObject, JsonValue, NumberToken, Status } from '../../core/model.ts'
import { type ParamPath, readParamPath } from '../../process/compile-params.ts'
import { quoted } from '../../process/report.ts'
import { member } from '../../process/templates/path.ts'
import { filter_members, filter_times, type SortedBy, type TaskFilter } from '../api/search-api.ts'

export interface TimeRange {
  readonly since: number
  readonly until: number
}

export interface CheckedFilter {
  readonly text: string
  /** Equal for equal filters. */
  readonly identity: string
  readonly conv_id: string | undefined
  readonly node: string | undefined
  readonly statuses: readonly Status[]
  readonly ref_prefix: string
  readonly created: TimeRange
  readonly changed: TimeRange
  readonly ended: TimeRange
  readonly due_before_ms: number | undefined
  readonly where: Condition | undefined
  readonly sorted_by: SortedBy
}

const status_groups: Readonly<Record<string, readonly Status[]>> = {
  live: statuses.filter((status) => is_live[status]),
  ended: statuses.filter((status) => !is_live[status]),
  any: statuses,
}

export function checkFilter(given: TaskFilter, limits: Limits): CheckedFilter {
  const values = plainMembers(given, limits)
  for (const name of Object.keys(values)) {
    if (!filter_members.includes(name as keyof TaskFilter)) {
      throw badFilter(`there is no ${quoted(name)}; a filter has ${filter_members.join(', ')}`)
    }
  }
  for (const name of filter_times) checkTime(name, values[name])
  const { conv_id, node_id, ref_prefix, where } = values
  const has_ended_time = values.ended_since_ms !== undefined || values.ended_until_ms !== undefined
  const named = values.status ?? (has_ended_time ? 'ended' : 'live')
  const wanted = statusesOf(named)
  if (has_ended_time && wanted.some((status) => is_live[status])) {
    throw badFilter(`tasks with status ${quoted(named)} need not have ended: leave out the status`)
  }
  const { due_before_ms } = given
  if (due_before_ms !== undefined && !wanted.some((status) => is_live[status])) {
    throw badFilter('ended tasks have no timer, so none is due')
  }
  if (where !== undefined && !isObject(where)) throw badFilter('where is no object')
  return {
    text: stringifyJson(values),
    identity: canonicalText(values),
    conv_id: conv_id === undefined ? undefined : convIdOf(conv_id, limits),
    node: textOf('node_id', node_id),
    statuses: wanted,
    ref_prefix: textOf('ref_prefix', ref_prefix) ?? '',
    created: rangeOf(given.created_since_ms, given.created_until_ms),
    changed: rangeOf(given.changed_since_ms, given.changed_until_ms),
    ended: rangeOf(given.ended_since_ms, given.ended_until_ms),
    due_before_ms,
    where: where === undefined ? undefined : conditionOf(where, limits.nesting_max),
    sorted_by: sortOf(ref_prefix, due_before_ms, wanted),
  }
}

/** Of a whole filter: it is compared with each task read. */
const chars_max = 65_536

/** The defined members, as exact JSON values. */
function plainMembers(given: TaskFilter, limits: Limits): JsonObject {
  if (typeof given !== 'object' || given === null || Array.isArray(given) || isDoc(given)) {
    throw badFilter('it is no object')
  }
  const doc = docOfPlain(given, plainBounds(limits))
  if (typeof doc === 'string') throw badFilter(doc.replace(/^data\.?/, ''))
  if (doc.text.length > chars_max) throw badFilter(`it is over ${chars_max} characters long`)
  return objectOf(doc)
}

function checkTime(name: string, value: JsonValue | undefined): void {
  if (value === undefined || (typeof value === 'number' && value >= 0)) return
  throw badFilter(`${name} is no time in milliseconds since 1970`)
}

function statusesOf(name: JsonValue): readonly Status[] {
  const known = statuses.find((status) => status === name)
  if (known !== undefined) return [known]
  const group = typeof name === 'string' && Object.hasOwn(status_groups, name)
  if (group) return status_groups[name] as readonly Status[]
  const choices = [...statuses, ...Object.keys(status_groups)].join(', ')
  throw badFilter(`there is no status ${quoted(name)}; there are ${choices}`)
}

function convIdOf(value: JsonValue, limits: Limits): string {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text === 'string' && isName(text, limits.conv_id_chars_max)) return text
  throw badFilter('conv_id is no id of a process')
}

function textOf(name: string, value: JsonValue | undefined): string | undefined {
  if (value === undefined || (typeof value === 'string' && value !== '')) return value
  throw badFilter(`${name} is no text`)
}

const rangeOf = (since = 0, until = Number.POSITIVE_INFINITY): TimeRange => ({ since, until })

function sortOf(
  ref_prefix: JsonValue | undefined,
  due_before_ms: number | undefined,
  wanted: readonly Status[],
): SortedBy {
  if (ref_prefix !== undefined) return 'ref'
  if (due_before_ms !== undefined) return 'due'
  if (wanted.every((status) => status === 'failed')) return 'failed'
  return wanted.every((status) => !is_live[status]) ? 'ended' : 'created'
}

/** Throws `bad_filter`. */
export function readWhere(read: () => Doc): Doc {
  try {
    return read()
  } catch (error) {
    if (!isFault(error)) throw error
    throw badFilter(`where is no JSON object: ${error.message}`)
  }
}

export function badFilter(says: string): Fault {
  return fault('bad_filter', `filter: ${says}`)
}

/** Whether the task matches, apart from process and node. */
export function isWanted(filter: CheckedFilter, task: TaskRecord): boolean {
  const { statuses, ref_prefix, created, changed, ended, due_before_ms, where } = filter
  return (
    statuses.includes(task.status) &&
    (ref_prefix === '' || task.ref?.text.startsWith(ref_prefix) === true) &&
    isWithin(created, createdTime(task)) &&
    isWithin(changed, task.change_ms) &&
    (is_live[task.status] || isWithin(ended, task.change_ms)) &&
    (due_before_ms === undefined || (task.due_ms !== 0 && task.due_ms < due_before_ms)) &&
    (where === undefined || where(task.doc))
  )
}

function isWithin({ since, until }: TimeRange, ms: number): boolean {
  return since <= ms && ms < until
}

/** The creation time, or the id's seconds where the clock was set back: the order is by id. */
function createdTime({ obj_id, create_ms }: TaskRecord): number {
  return Math.max(create_ms, 1_000 * secondsOfId(obj_id))
}

export function secondsOfId(obj_id: string): number {
  return Number.parseInt(obj_id.slice(0, 8), 16)
}

export type Condition = (data: Doc) => boolean

type Test = (value: JsonValue | undefined) => boolean

const paths_max = 64

/** Throws `bad_filter`. A path of over `steps_max` steps is deeper than data. */
export function conditionOf(where: JsonObject, steps_max: number): Condition {
  const entries = Object.entries(where)
  if (entries.length > paths_max) throw fault('bad_filter', `where has over ${paths_max} paths`)
  const tests = entries.map(([name, wanted]) => {
    const path = readParamPath(name)
    if (path.length <= steps_max) return { path, tests: testsOf(name, wanted) }
    throw fault('bad_filter', `where ${quoted(name)}: a path has at most ${steps_max} steps`)
  })
  return (data) => {
    const object = objectOf(data)
    return tests.every(({ path, tests }) => tests.every((holds) => holdsAt(object, path, 0, holds)))
  }
}

/** Whether it holds for the value at the path, or for one of those at `[]`. */
function holdsAt(value: JsonValue | undefined, path: ParamPath, at: number, holds: Test): boolean {
  const step = path[at]
  if (step === undefined) return holds(value)
  if (step !== null) return holdsAt(member(value, step), path, at + 1, holds)
  return Array.isArray(value) && value.some((one) => holdsAt(one, path, at + 1, holds))
}

const comparisons: Readonly<Record<string, (wanted: JsonValue) => Test | undefined>> = {
  eq: (wanted) => (value) => isEqual(value, wanted),
  ne: (wanted) => (value) => !isEqual(value, wanted),
  gt: (wanted) => ordered(wanted, (order) => order > 0),
  gte: (wanted) => ordered(wanted, (order) => order >= 0),
  lt: (wanted) => ordered(wanted, (order) => order < 0),
  lte: (wanted) => ordered(wanted, (order) => order <= 0),
  exists: (wanted) =>
    typeof wanted === 'boolean' ? (value) => (value !== undefined) === wanted : undefined,
}

function testsOf(name: string, wanted: JsonValue): Test[] {
  if (!isObject(wanted)) return [(value) => isEqual(value, wanted)]
  const entries = Object.entries(wanted)
  if (entries.length === 0) throw fault('bad_filter', `where ${quoted(name)} compares with nothing`)
  return entries.map(([comparison, operand]) => {
    const known = Object.keys(comparisons)
    if (!known.includes(comparison)) {
      const says = `no comparison ${quoted(comparison)}; there are ${known.join(', ')}`
      throw fault('bad_filter', `where ${quoted(name)}: ${says}`)
    }
    const test = comparisons[comparison]?.(operand)
    if (test !== undefined) return test
    const takes = comparison === 'exists' ? 'true or false' : 'a number or a text'
    throw fault('bad_filter', `where ${quoted(name)}: ${comparison} takes ${takes}`)
  })
}

function ordered(wanted: JsonValue, isWanted: (order: number) => boolean): Test | undefined {
  if (typeof wanted === 'string') {
    return (value) =>
      typeof value === 'string' && isWanted(value < wanted ? -1 : value > wanted ? 1 : 0)
  }
  if (!isNumber(wanted)) return undefined
  return (value) => isNumber(value) && isWanted(compareNumbers(value, wanted))
}

function isNumber(value: JsonValue | undefined): value is number | NumberToken {
  return typeof value === 'number' || isNumberToken(value)
}

function isEqual(value: JsonValue | undefined, wanted: JsonValue): boolean {
  if (isNumber(value) && isNumber(wanted)) return compareNumbers(value, wanted) === 0
  if (Array.isArray(value)) {
    if (!Array.isArray(wanted) || value.length !== wanted.length) return false
    return value.every((one, at) => isEqual(one, wanted[at] as JsonValue))
  }
  if (!isObject(value) || !isObject(wanted)) return value === wanted
  const names = Object.keys(wanted)
  if (names.length !== Object.keys(value).length) return false
  return names.every(
    (name) => Object.hasOwn(value, name) && isEqual(value[name], wanted[name] as JsonValue),
  )
}
