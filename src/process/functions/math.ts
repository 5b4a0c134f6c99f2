/**
 * `$.math`: + - * / and parentheses over doubles; operands are numbers, templates and functions. It
 * fails where an operand is missing or no number, at a division by zero, and on an infinite result.
 * Sums and products are parsed as lists, so long expressions do not nest.
 *
 * `$.random`: a double in [0, 1), or a whole number from 0 to a maximum, from a negative number to
 * -1, or of a range with both ends.
 */
import type { JsonValue } from '../../core/model.ts'
import { truncated } from '../report.ts'
import {
  deeper,
  type Expansion,
  expectText,
  failWith,
  matchAt,
  mistakeAt,
  skipSpaces,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import { doubleOf } from '../values.ts'
import { type FunctionKind, type NumberTerm, numberResult, readWholeNumber } from './function.ts'

export const mathFunction: FunctionKind = {
  name: 'math',
  syntax: ['$.math(expression)'],
  result: 'number',
  fails_when_run: true,
  examples: [
    { text: '$.math(1+1)', gives: 2 },
    { text: '$.math(10/4)', gives: 2.5 },
    { text: '$.math(2 + 3 * -(4 - 1))', gives: -7 },
    { text: '$.math({{price}}*{{count}})', data: { price: '2.5', count: 4 }, gives: 10 },
    { text: '$.math($.math({{n}}+1)-1)', data: { n: 7 }, gives: 7 },
  ],
  read(cursor) {
    const sum = readSum(cursor)
    expectText(cursor, ')')
    return (expansion) => numberResult(expansion, sum(expansion))
  },
}

interface Operation {
  readonly sign: string
  readonly operand: NumberTerm
}

function readSum(cursor: TemplateCursor): NumberTerm {
  return readChain(cursor, '+-', readProduct)
}

function readProduct(cursor: TemplateCursor): NumberTerm {
  return readChain(cursor, '*/', readFactor)
}

function readChain(
  cursor: TemplateCursor,
  signs: string,
  readOperand: (cursor: TemplateCursor) => NumberTerm,
): NumberTerm {
  const first = readOperand(cursor)
  const rest: Operation[] = []
  for (;;) {
    skipSpaces(cursor)
    const sign = cursor.text[cursor.at]
    if (sign === undefined || !signs.includes(sign)) break
    cursor.at++
    rest.push({ sign, operand: readOperand(cursor) })
  }
  if (rest.length === 0) return first
  return (expansion) => {
    let result = first(expansion)
    for (const { sign, operand } of rest) {
      if (expansion.failure !== undefined) return Number.NaN
      result = applied(expansion, result, sign, operand(expansion))
    }
    return result
  }
}

function applied(expansion: Expansion, left: number, sign: string, right: number): number {
  if (sign === '+') return left + right
  if (sign === '-') return left - right
  if (sign === '*') return left * right
  if (right === 0) failWith(expansion, 'convert', '$.math: division by zero')
  return left / right
}

const number_literal = /[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+/y

function readFactor(cursor: TemplateCursor): NumberTerm {
  let is_negative = false
  for (;;) {
    skipSpaces(cursor)
    const char = cursor.text[cursor.at]
    if (char !== '-' && char !== '+') break
    is_negative = is_negative !== (char === '-')
    cursor.at++
  }
  const operand = readOperand(cursor)
  return is_negative ? (expansion) => -operand(expansion) : operand
}

function readOperand(cursor: TemplateCursor): NumberTerm {
  const start = cursor.at
  if (cursor.text[start] === '(') {
    cursor.at++
    return deeper(cursor, () => {
      const sum = readSum(cursor)
      expectText(cursor, ')')
      return sum
    })
  }
  const term = cursor.term()
  if (term !== undefined) return operandOf(term, truncated(cursor.text.slice(start, cursor.at)))
  const digits = matchAt(cursor, number_literal)?.[0]
  if (digits === undefined) throw mistakeAt(cursor, 'a number or a template was expected')
  const number = Number(digits)
  if (Number.isFinite(number)) return () => number
  cursor.at = start
  throw mistakeAt(cursor, `${truncated(digits)} is too large`)
}

function operandOf(term: Term, label: string): NumberTerm {
  return (expansion) => {
    const value: JsonValue | undefined = term(expansion)
    if (expansion.failure !== undefined) return Number.NaN
    const double = doubleOf(value)
    if (double !== undefined) return double
    failWith(
      expansion,
      'convert',
      `$.math: ${label} is ${value === undefined ? 'missing' : 'no number'}`,
    )
    return Number.NaN
  }
}

export const randomFunction: FunctionKind = {
  name: 'random',
  syntax: ['$.random()', '$.random(max)', '$.random(min,max)'],
  result: 'number',
  fails_when_run: true,
  examples: [
    { text: '$.random()', gives: 0.5 },
    { text: '$.random(10)', gives: 5 },
    { text: '$.random(0)', gives: 0 },
    { text: '$.random(-10)', gives: -5 },
    { text: '$.random(50, {{max}})', data: { max: 100 }, gives: 75 },
  ],
  read: readRandom,
}

function readRandom(cursor: TemplateCursor): Term {
  skipSpaces(cursor)
  if (cursor.text[cursor.at] === ')') {
    cursor.at++
    return (expansion) => numberResult(expansion, expansion.context.fraction())
  }
  const first = readWholeNumber(cursor, ',)')
  if (cursor.text[cursor.at] !== ',') {
    expectText(cursor, ')')
    return (expansion) => {
      const bound = first(expansion)
      if (expansion.failure !== undefined) return undefined
      const fraction = expansion.context.fraction()
      return numberResult(
        expansion,
        bound < 0 ? draw(fraction, bound, -1) : draw(fraction, 0, bound),
      )
    }
  }
  cursor.at++
  const second = readWholeNumber(cursor, ')')
  expectText(cursor, ')')
  return (expansion) => {
    const min = first(expansion)
    const max = second(expansion)
    if (expansion.failure !== undefined) return undefined
    if (max < min || !Number.isSafeInteger(max - min + 1)) {
      return failWith(expansion, 'convert', `$.random: from ${min} to ${max} is no range`)
    }
    return numberResult(expansion, draw(expansion.context.fraction(), min, max))
  }
}

function draw(fraction: number, min: number, max: number): number {
  return Math.min(min + Math.floor(fraction * (max - min + 1)), max)
}
