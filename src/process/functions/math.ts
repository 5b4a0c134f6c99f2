/**
 * `$.math`: + - * / and parentheses over doubles. An operand is a number, a template or a function;
 * a value that is missing, no number or of no finite double fails the run, as do division by zero
 * and a result without end. Sums and products are lists, so a long expression is not a deep one.
 */
import type { JsonValue } from '../../core/model.ts'
import { cut } from '../quoted.ts'
import {
  deeper,
  type Expansion,
  expectText,
  failWith,
  mistakeAt,
  type Source,
  skipSpaces,
  type Term,
} from '../templates/parser.ts'
import { doubleOf } from '../values.ts'
import { type FunctionKind, type NumberTerm, numberResult } from './function.ts'

export const mathFunction: FunctionKind = {
  name: 'math',
  syntax: ['$.math(expression)'],
  result: 'number',
  examples: [
    { text: '$.math(1+1)', gives: 2 },
    { text: '$.math(10/4)', gives: 2.5 },
    { text: '$.math(2 + 3 * -(4 - 1))', gives: -7 },
    { text: '$.math({{price}}*{{count}})', data: { price: '2.5', count: 4 }, gives: 10 },
    { text: '$.math($.math({{n}}+1)-1)', data: { n: 7 }, gives: 7 },
  ],
  read(source) {
    const sum = readSum(source)
    expectText(source, ')')
    return (run) => numberResult(run, sum(run))
  },
}

interface Operation {
  readonly sign: string
  readonly operand: NumberTerm
}

function readSum(source: Source): NumberTerm {
  return readChain(source, '+-', readProduct)
}

function readProduct(source: Source): NumberTerm {
  return readChain(source, '*/', readFactor)
}

function readChain(
  source: Source,
  signs: string,
  readOperand: (source: Source) => NumberTerm,
): NumberTerm {
  const first = readOperand(source)
  const rest: Operation[] = []
  for (;;) {
    skipSpaces(source)
    const sign = source.text[source.at]
    if (sign === undefined || !signs.includes(sign)) break
    source.at++
    rest.push({ sign, operand: readOperand(source) })
  }
  if (rest.length === 0) return first
  return (run) => {
    let result = first(run)
    for (const { sign, operand } of rest) {
      if (run.failure !== undefined) return Number.NaN
      result = applied(run, result, sign, operand(run))
    }
    return result
  }
}

function applied(run: Expansion, left: number, sign: string, right: number): number {
  if (sign === '+') return left + right
  if (sign === '-') return left - right
  if (sign === '*') return left * right
  if (right === 0) failWith(run, 'convert', '$.math: division by zero')
  return left / right
}

const number_literal = /[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+/y

function readFactor(source: Source): NumberTerm {
  let is_negative = false
  for (;;) {
    skipSpaces(source)
    const char = source.text[source.at]
    if (char !== '-' && char !== '+') break
    is_negative = is_negative !== (char === '-')
    source.at++
  }
  const operand = readOperand(source)
  return is_negative ? (run) => -operand(run) : operand
}

function readOperand(source: Source): NumberTerm {
  const start = source.at
  if (source.text[start] === '(') {
    source.at++
    return deeper(source, () => {
      const sum = readSum(source)
      expectText(source, ')')
      return sum
    })
  }
  const term = source.term()
  if (term !== undefined) return operandOf(term, cut(source.text.slice(start, source.at)))
  number_literal.lastIndex = start
  const match = number_literal.exec(source.text)
  if (match === null) throw mistakeAt(source, 'a number or a template was expected')
  const number = Number(match[0])
  if (!Number.isFinite(number)) throw mistakeAt(source, `${cut(match[0])} is too large`)
  source.at += match[0].length
  return () => number
}

function operandOf(term: Term, label: string): NumberTerm {
  return (run) => {
    const value: JsonValue | undefined = term(run)
    if (run.failure !== undefined) return Number.NaN
    const double = doubleOf(value)
    if (double !== undefined) return double
    failWith(run, 'convert', `$.math: ${label} is ${value === undefined ? 'missing' : 'no number'}`)
    return Number.NaN
  }
}
