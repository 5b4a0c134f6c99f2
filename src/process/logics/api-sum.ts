/**
 * `api_sum`: adds to running sums of its node, which `{{node[id].name}}` reads by name or id. A
 * missing value adds nothing; one that is no finite number fails the logic, and nothing is added.
 */
import { isNumberToken, isObject, numberText } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { id_chars_max } from '../definition-limits.ts'
import type { LogicKind } from '../logic.ts'
import { expected, type Report } from '../report.ts'
import { compileTemplate, type Template } from '../templates/template.ts'
import { doubleOf, idText } from '../values.ts'
import { expanding, failConversion } from './failures.ts'
import { isAbsent, mapObjects, readErrorNode } from './members.ts'

interface Addend {
  readonly name: string
  readonly value: Template
  readonly text: string
}

export const apiSum: LogicKind = {
  type: 'api_sum',
  compile(raw, report) {
    const addends = readAddends(raw, report)
    const err_node_id = readErrorNode(raw, report)
    return expanding('sum', err_node_id, (expansion) => {
      const terms: { name: string; value: number }[] = []
      for (const { name, value: template, text } of addends) {
        const given = template.value(expansion)
        if (expansion.failure !== undefined) return undefined
        if (isAbsent(given)) continue
        const value = doubleOf(given)
        if (value === undefined) return failConversion(expansion, name, given ?? text, 'number')
        terms.push({ name, value })
      }
      return { command: 'sum', terms }
    })
  },
}

export function sumNames(logics: readonly JsonValue[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const logic of logics) {
    if (!isObject(logic) || logic.type !== 'api_sum' || !Array.isArray(logic.extra)) continue
    for (const sum of logic.extra) {
      const id = isObject(sum) ? idText(sum.id) : undefined
      if (id !== undefined && isObject(sum) && typeof sum.name === 'string') names.set(id, sum.name)
    }
  }
  return names
}

function readAddends({ extra }: JsonObject, report: Report): readonly Addend[] {
  const list = extra ?? []
  if (Array.isArray(list)) {
    return mapObjects(list, 'extra', report, (raw, place) => readAddend(raw, report, place)).flat()
  }
  expected(report, 'extra', list, 'an array')
  return []
}

/** Empty where the entry has a mistake. */
function readAddend({ name, value }: JsonObject, report: Report, place: string): Addend[] {
  if (typeof name !== 'string' || name === '' || name.length > id_chars_max) {
    expected(report, `${place} name`, name, `a text of 1 to ${id_chars_max} characters`)
    return []
  }
  const is_number = typeof value === 'number' || isNumberToken(value)
  const text = is_number ? numberText(value) : value
  if (typeof text !== 'string') {
    expected(report, `${place} value`, value, 'a number or a template')
    return []
  }
  return [{ name, value: compileTemplate(text, report, `${place} value`), text }]
}
