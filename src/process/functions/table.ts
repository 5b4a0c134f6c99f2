/**
 * The table of template functions, and `$.to_string`, `$.to_number`, `$.to_array`, `$.to_object`:
 * an array or object may be written around templates; a value inside quotes cannot change its
 * structure. A call of a name without a row is text.
 */
import { truncated } from '../report.ts'
import {
  argumentOf,
  expectText,
  failWith,
  jsonTemplate,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import { convert, textOf } from '../values.ts'
import { dateFunction, unixtimeFunction } from './date.ts'
import { digestFunctions } from './digest.ts'
import type { FunctionExample, FunctionKind } from './function.ts'
import { filterFunction, mapFunction } from './list.ts'
import { mathFunction, randomFunction } from './math.ts'

const conversionFunctions: readonly FunctionKind[] = [
  conversion('string', [{ text: '$.to_string({{a}})', data: { a: [1.5] }, gives: '[1.5]' }]),
  conversion('number', [{ text: '$.to_number({{a}})', data: { a: '120' }, gives: 120 }]),
  conversion('array', [
    { text: '$.to_array({{a}})', data: { a: '[1,"a"]' }, gives: [1, 'a'] },
    { text: '$.to_array([{{a}},"{{b}}"])', data: { a: 1, b: '"' }, gives: [1, '"'] },
  ]),
  conversion('object', [{ text: '$.to_object({{a}})', data: { a: '{"b":1}' }, gives: { b: 1 } }]),
]

export const functionTable: readonly FunctionKind[] = [
  mathFunction,
  randomFunction,
  unixtimeFunction,
  dateFunction,
  ...digestFunctions,
  ...conversionFunctions,
  mapFunction,
  filterFunction,
]

function conversion(
  type: FunctionKind['result'],
  examples: readonly FunctionExample[],
): FunctionKind {
  const name = `to_${type}`
  const read = (cursor: TemplateCursor): Term => readConversion(cursor, name, type)
  return { name, syntax: [`$.${name}(value)`], result: type, examples, read }
}

function readConversion(cursor: TemplateCursor, name: string, type: FunctionKind['result']): Term {
  const parts = cursor.parts(')')
  expectText(cursor, ')')
  const is_json = (type === 'array' || type === 'object') && parts.length > 1
  const argument: Term = is_json ? jsonTemplate(parts) : argumentOf(parts)
  return (expansion) => {
    const value = argument(expansion)
    if (expansion.failure !== undefined) return undefined
    const made = convert(value, type)
    if (made !== undefined) return made
    const shown = value === undefined ? 'nothing' : truncated(textOf(value))
    return failWith(expansion, 'convert', `$.${name}: ${shown} is no ${type}`)
  }
}
