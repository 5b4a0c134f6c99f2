/**
 * The conditions of a filter on task data (`Where` in search-api): checked once, then applied to
 * each task. A condition has no templates and no patterns, so it costs no more than parsing the
 * data.
 */
import { isNumberToken, isObject, objectOf } from '../../codec/json.ts'
import { compareNumbers } from '../../codec/number-order.ts'
import { fault } from '../../core/faults.ts'
import type { Doc, JsonObject, JsonValue, NumberToken } from '../../core/model.ts'
import { type ParamPath, readParamPath } from '../../process/compile-params.ts'
import { quoted } from '../../process/report.ts'
import { member } from '../../process/templates/path.ts'

export type Condition = (data: Doc) => boolean

type Test = (value: JsonValue | undefined) => boolean

const paths_max = 64

/** Throws `bad_filter`. A path of over `steps_max` steps would lead deeper than data goes. */
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

/** Whether it holds for the value at the path; for one of the values where `[]` is in the path. */
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
