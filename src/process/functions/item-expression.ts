/**
 * The expressions of `$.map` and `$.filter` over one item of a list: numbers, texts (`"a"` or
 * `<<"a">>`), `true`, `false`, the item and its members (`X.name`, also as
 * `eutils:get_value(<<"name">>, X)`), parentheses, and operators from the strongest to the weakest:
 *
 *     - + not          one operand        * / div rem and    + - or xor
 *     == /= =:= =/= < > =< >=             andalso            orelse
 *
 * Arithmetic works on doubles, as in `$.math`. An operand that is no number, a division by zero,
 * and a boolean operation on anything but booleans fail the expansion. Comparisons never fail:
 * numbers compare as doubles, texts by their code units, and values of different types are unequal
 * and have no order. `=:=` also distinguishes 1 from 1.0. A missing value equals only a missing
 * value.
 */
import { canonicalText } from '../../codec/doc-text.ts'
import { isNumberToken, numberText } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'
import { truncated } from '../report.ts'
import {
  deeper,
  type Expansion,
  expectText,
  failWith,
  matchAt,
  mistakeAt,
  type TemplateCursor,
} from '../templates/parser.ts'
import { member } from '../templates/path.ts'
import { doubleOf } from '../values.ts'

/** Evaluates to a value for one item; undefined where it is missing or the expansion failed. */
export type ItemTerm = (expansion: Expansion, item: JsonValue) => JsonValue | undefined

/** Parses one expression whose item is called `name`. */
export function readItemExpression(cursor: TemplateCursor, name: string): ItemTerm {
  return readLevel({ cursor, name }, 0)
}

export function skipBlanks(cursor: TemplateCursor): void {
  matchAt(cursor, blanks)
}

const blanks = /\s*/y

interface ItemParser {
  readonly cursor: TemplateCursor
  readonly name: string
}

type Apply = (
  expansion: Expansion,
  left: JsonValue | undefined,
  right: () => JsonValue | undefined,
) => JsonValue | undefined

/** From the weakest binding to the strongest. */
const levels: readonly { readonly pattern: RegExp; readonly is_chain: boolean }[] = [
  { pattern: /orelse\b/y, is_chain: true },
  { pattern: /andalso\b/y, is_chain: true },
  { pattern: /=:=|=\/=|==|\/=|=<|>=|<(?!<)|>/y, is_chain: false },
  { pattern: /\+|-(?!>)|(?:or|xor)\b/y, is_chain: true },
  { pattern: /\*|\/(?!=)|(?:div|rem|and)\b/y, is_chain: true },
]

const operators: Readonly<Record<string, Apply>> = {
  orelse: (expansion, left, right) =>
    truth(expansion, left) === true ? true : truth(expansion, right()),
  andalso: (expansion, left, right) =>
    truth(expansion, left) === true ? truth(expansion, right()) : false,
  or: logical((left, right) => left || right),
  xor: logical((left, right) => left !== right),
  and: logical((left, right) => left && right),
  '==': (_run, left, right) => isEqual(left, right()),
  '/=': (_run, left, right) => !isEqual(left, right()),
  '=:=': (_run, left, right) => isSame(left, right()),
  '=/=': (_run, left, right) => !isSame(left, right()),
  '<': (_run, left, right) => order(left, right()) < 0,
  '>': (_run, left, right) => order(left, right()) > 0,
  '=<': (_run, left, right) => order(left, right()) <= 0,
  '>=': (_run, left, right) => order(left, right()) >= 0,
  '+': arithmetic((left, right) => left + right),
  '-': arithmetic((left, right) => left - right),
  '*': arithmetic((left, right) => left * right),
  '/': arithmetic((left, right) => (right === 0 ? undefined : left / right)),
  div: arithmetic((left, right) => (right === 0 ? undefined : Math.trunc(left / right))),
  rem: arithmetic((left, right) => (right === 0 ? undefined : left % right)),
}

function readLevel(parser: ItemParser, level: number): ItemTerm {
  const { cursor } = parser
  const row = levels[level]
  if (row === undefined) return readUnary(parser)
  const first = readLevel(parser, level + 1)
  const rest: { apply: Apply; operand: ItemTerm }[] = []
  for (;;) {
    skipBlanks(cursor)
    const is_complete = rest.length > 0 && !row.is_chain
    const sign = is_complete ? undefined : matchAt(cursor, row.pattern)?.[0]
    if (sign === undefined) break
    rest.push({ apply: operators[sign] as Apply, operand: readLevel(parser, level + 1) })
  }
  if (rest.length === 0) return first
  return (expansion, item) => {
    let value = first(expansion, item)
    for (const { apply, operand } of rest) {
      if (expansion.failure !== undefined) return undefined
      value = apply(expansion, value, () => operand(expansion, item))
    }
    return expansion.failure === undefined ? value : undefined
  }
}

const unary = /\+|-|not\b/y

function readUnary(parser: ItemParser): ItemTerm {
  const { cursor } = parser
  const signs: string[] = []
  for (;;) {
    skipBlanks(cursor)
    const sign = matchAt(cursor, unary)?.[0]
    if (sign === undefined) break
    signs.unshift(sign)
  }
  const operand = readOperand(parser)
  if (signs.length === 0) return operand
  return (expansion, item) => {
    let value = operand(expansion, item)
    for (const sign of signs) {
      if (expansion.failure !== undefined) return undefined
      if (sign === 'not') value = truth(expansion, value) === false
      else value = number(expansion, value, (double) => (sign === '-' ? 0 - double : double))
    }
    return expansion.failure === undefined ? value : undefined
  }
}

const number_literal = /[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const text_literal = /(<<)?"((?:[^"\\]|\\["\\])*)"(>>)?/y
const word = /[A-Za-z_][A-Za-z0-9_]*/y
const get_value = /(?:eutils|proplists):get_value\(/y

function readOperand(parser: ItemParser): ItemTerm {
  const { cursor } = parser
  const { text, at } = cursor
  if (text[at] === '(') {
    cursor.at++
    return deeper(cursor, () => {
      const inner = readLevel(parser, 0)
      skipBlanks(cursor)
      expectText(cursor, ')')
      return inner
    })
  }
  const literal = readLiteral(cursor)
  if (literal !== undefined) return () => literal
  if (matchAt(cursor, get_value) !== undefined) return readGetValue(parser)
  const name = matchAt(cursor, word)?.[0]
  if (name === 'true' || name === 'false') return () => name === 'true'
  if (name === parser.name) return readMembers(cursor)
  cursor.at = at
  throw mistakeAt(cursor, `a number, a text or ${truncated(parser.name)} was expected`)
}

function readLiteral(cursor: TemplateCursor): JsonValue | undefined {
  const start = cursor.at
  const digits = matchAt(cursor, number_literal)?.[0]
  if (digits !== undefined) {
    const double = Number(digits)
    if (Number.isFinite(double)) return double
    cursor.at = start
    throw mistakeAt(cursor, `${truncated(digits)} is too large`)
  }
  const match = matchAt(cursor, text_literal)
  if (match === undefined) return undefined
  if ((match[1] === undefined) !== (match[3] === undefined)) {
    cursor.at = start
    throw mistakeAt(cursor, 'a text is written "a" or <<"a">>')
  }
  return (match[2] as string).replace(/\\(["\\])/g, '$1')
}

/** `X.a.b`: own members; missing where there is none. */
function readMembers(cursor: TemplateCursor): ItemTerm {
  const keys: string[] = []
  while (cursor.text[cursor.at] === '.') {
    cursor.at++
    const key = matchAt(cursor, word)?.[0]
    if (key === undefined) throw mistakeAt(cursor, 'a name was expected')
    keys.push(key)
  }
  if (keys.length === 0) return (_run, item) => item
  return (_run, item) => {
    let value: JsonValue | undefined = item
    for (const key of keys) value = member(value, key)
    return value
  }
}

function readGetValue(parser: ItemParser): ItemTerm {
  const { cursor } = parser
  skipBlanks(cursor)
  const key = readLiteral(cursor)
  if (typeof key !== 'string') throw mistakeAt(cursor, 'a text was expected')
  skipBlanks(cursor)
  expectText(cursor, ',')
  const from = deeper(cursor, () => readLevel(parser, 0))
  skipBlanks(cursor)
  expectText(cursor, ')')
  return (expansion, item) => member(from(expansion, item), key)
}

function truth(expansion: Expansion, value: JsonValue | undefined): boolean | undefined {
  if (typeof value === 'boolean') return value
  return failWith(expansion, 'convert', `${shown(value)} is neither true nor false`)
}

function logical(apply: (left: boolean, right: boolean) => boolean): Apply {
  return (expansion, left, right) => {
    const one = truth(expansion, left)
    const other = expansion.failure === undefined ? truth(expansion, right()) : undefined
    return one === undefined || other === undefined ? undefined : apply(one, other)
  }
}

function arithmetic(apply: (left: number, right: number) => number | undefined): Apply {
  return (expansion, left, right) =>
    number(expansion, left, (one) =>
      number(expansion, right(), (other) => {
        const result = apply(one, other)
        if (result === undefined) return failWith(expansion, 'convert', 'division by zero')
        if (!Number.isFinite(result)) return failWith(expansion, 'convert', 'no finite number')
        return result === 0 ? 0 : result
      }),
    )
}

function number<Made>(
  expansion: Expansion,
  value: JsonValue | undefined,
  use: (double: number) => Made,
): Made | undefined {
  const double = doubleOf(value)
  if (expansion.failure !== undefined) return undefined
  if (double !== undefined) return use(double)
  return failWith(expansion, 'convert', `${shown(value)} is no number`)
}

function shown(value: JsonValue | undefined): string {
  return value === undefined ? 'what is missing' : truncated(canonicalText(value))
}

function isNumber(value: JsonValue | undefined): value is number {
  return typeof value === 'number' || isNumberToken(value)
}

function isEqual(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (left === undefined || right === undefined) return left === right
  if (isNumber(left) && isNumber(right)) return doubleOf(left) === doubleOf(right)
  return canonicalText(left) === canonicalText(right)
}

function isSame(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  const both = isNumber(left) && isNumber(right)
  return isEqual(left, right) && (!both || isWhole(left) === isWhole(right))
}

function isWhole(value: number): boolean {
  return /^-?[0-9]+$/.test(numberText(value))
}

/** Negative where `left` comes before `right`, 0 where equal; NaN where they have no order. */
function order(left: JsonValue | undefined, right: JsonValue | undefined): number {
  if (isNumber(left) && isNumber(right)) return (doubleOf(left) ?? NaN) - (doubleOf(right) ?? NaN)
  if (typeof left !== 'string' || typeof right !== 'string') return NaN
  return left === right ? 0 : left < right ? -1 : 1
}
