/**
 * The conditions of a filter on the data of tasks (`Where` in search-api): checked once, then asked
 * of each task. A condition reads what it names and nothing else, has no templates and no patterns,
 * so it costs no more than the parsing of the data.
 */
import { isNumberToken, isObject, objectOf } from '../codec/json.ts'
import { compareNumbers } from '../codec/number-order.ts'
import { fault } from '../core/faults.ts'
import type { Doc, JsonObject, JsonValue, NumberToken } from '../core/model.ts'
import { type ParamPath, readParamPath } from '../process/param-path.ts'
import { member } from '../process/templates/path.ts'

export type Condition = (data: Doc) => boolean

type Test = (value: JsonValue | undefined) => boolean

const paths_max = 64

/** Throws `bad_filter`. */
export function conditionOf(where: JsonObject): Condition {
  const entries = Object.entries(where)
  if (entries.length > paths_max) throw fault('bad_filter', `where has over ${paths_max} paths`)
  const tests = entries.map(([name, wanted]) => ({
    path: readParamPath(name),
    tests: testsOf(name, wanted),
  }))
  return (data) => {
    const object = objectOf(data)
    return tests.every(({ path, tests }) => tests.every((holds) => holdsAt(object, path, holds)))
  }
}

/** Whether it holds for the value at the path; for one of the values where `[]` is in the path. */
function holdsAt(value: JsonValue | undefined, [step, ...path]: ParamPath, holds: Test): boolean {
  if (step === undefined) return holds(value)
  if (step !== null) return holdsAt(member(value, step), path, holds)
  return Array.isArray(value) && value.some((one) => holdsAt(one, path, holds))
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
  if (entries.length === 0) throw fault('bad_filter', `where "${name}" compares with nothing`)
  return entries.map(([comparison, operand]) => {
    const known = Object.keys(comparisons)
    if (!known.includes(comparison)) {
      const says = `no comparison "${comparison}"; there are ${known.join(', ')}`
      throw fault('bad_filter', `where "${name}": ${says}`)
    }
    const test = comparisons[comparison]?.(operand)
    if (test !== undefined) return test
    const takes = comparison === 'exists' ? 'true or false' : 'a number or a text'
    throw fault('bad_filter', `where "${name}": ${comparison} takes ${takes}`)
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
