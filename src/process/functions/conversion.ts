/**
 * `$.to_string`, `$.to_number`, `$.to_array` and `$.to_object`: conversions of values.ts. An array
 * or object may be written around templates; a value inside quotes cannot change its structure.
 */
import type { JsonValue } from '../../core/model.ts'
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
import type { FunctionExample, FunctionKind } from './function.ts'

export const conversionFunctions: readonly FunctionKind[] = [
  conversion('string', [{ text: '$.to_string({{a}})', data: { a: [1.5] }, gives: '[1.5]' }]),
  conversion('number', [{ text: '$.to_number({{a}})', data: { a: '120' }, gives: 120 }]),
  conversion('array', [
    { text: '$.to_array({{a}})', data: { a: '[1,"a"]' }, gives: [1, 'a'] },
    { text: '$.to_array([{{a}},"{{b}}"])', data: { a: 1, b: '"' }, gives: [1, '"'] },
  ]),
  conversion('object', [{ text: '$.to_object({{a}})', data: { a: '{"b":1}' }, gives: { b: 1 } }]),
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
    const value: JsonValue | undefined = argument(expansion)
    if (expansion.failure !== undefined) return undefined
    const shown = value === undefined ? 'nothing' : truncated(textOf(value))
    return (
      convert(value, type) ?? failWith(expansion, 'convert', `$.${name}: ${shown} is no ${type}`)
    )
  }
}
