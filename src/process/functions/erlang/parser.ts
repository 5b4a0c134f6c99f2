/**
 * Parses a fun, up to and with its `end`, to a tree. Chains of operators, matches and statements
 * are lists, so long texts do not nest. Beyond Erlang: `X.a.b` for members, `"text"` for a binary,
 * a lower-case parameter name.
 */
import { template_depth_max } from '../../definition-limits.ts'
import { truncated } from '../../report.ts'
import { deeper, type TemplateCursor } from '../../templates/parser.ts'
import { functionOf } from './functions.ts'
import {
  expectToken,
  isNext,
  type Lexer,
  mistakeOn,
  peek,
  skip,
  type Token,
  take,
} from './lexer.ts'
import { bigintOf, termOf } from './numbers.ts'
import { type Apply, operatorLevels, prefixOperators } from './operators.ts'
import type { Clause, Expression, MapEntry, Qualifier } from './syntax.ts'
import { atomOf, type ErlangTerm } from './terms.ts'

/** Parses `fun(P) when G -> B; … end`, which begins at the cursor. */
export function readFun(cursor: TemplateCursor): readonly Clause[] {
  const lexer: Lexer = { cursor, next: undefined }
  expectToken(lexer, 'fun')
  return readClauses(lexer, () => {
    expectToken(lexer, '(')
    const pattern = readExpression(lexer)
    expectToken(lexer, ')')
    const is_name = pattern.kind === 'word' && !/^(?:true|false|null|undefined)$/.test(pattern.name)
    return is_name ? { ...pattern, kind: 'variable' } : pattern
  })
}

function readClauses(lexer: Lexer, readPattern: (() => Expression) | undefined): readonly Clause[] {
  const clauses: Clause[] = []
  do {
    const pattern = readPattern?.()
    const guards: (readonly Expression[])[] = []
    if (readPattern === undefined || skip(lexer, 'when')) {
      do guards.push(readList(lexer))
      while (skip(lexer, ';'))
    }
    expectToken(lexer, '->')
    clauses.push({ pattern, guards, body: readList(lexer) })
  } while (skip(lexer, ';'))
  expectToken(lexer, 'end')
  return clauses
}

/** One or more, separated by commas. */
function readList(lexer: Lexer): readonly Expression[] {
  const made: Expression[] = []
  do made.push(readExpression(lexer))
  while (skip(lexer, ','))
  return made
}

/** None or more, separated by commas, up to `end`, which is consumed. */
function readParts(lexer: Lexer, end: string): readonly Expression[] {
  if (skip(lexer, end)) return []
  const parts = readList(lexer)
  expectToken(lexer, end)
  return parts
}

function readExpression(lexer: Lexer): Expression {
  const patterns: Expression[] = []
  let value = readLevel(lexer, 0)
  while (skip(lexer, '=')) {
    patterns.push(value)
    value = readLevel(lexer, 0)
  }
  return patterns.length === 0 ? value : { kind: 'match', patterns, value, at: value.at }
}

function readLevel(lexer: Lexer, number: number): Expression {
  const level = operatorLevels[number]
  if (level === undefined) return readPrefixed(lexer)
  const first = readLevel(lexer, number + 1)
  const rest: { sign: string; operand: Expression }[] = []
  while (rest.length === 0 || level.order !== 'once') {
    if (!isOperator(peek(lexer), level.operators)) break
    rest.push({ sign: take(lexer).text, operand: readLevel(lexer, number + 1) })
  }
  return rest.length === 0 ? first : { kind: 'chain', level, first, rest, at: first.at }
}

function isOperator({ kind, text }: Token, operators: Readonly<Record<string, Apply>>): boolean {
  return (kind === 'sign' || kind === 'word') && Object.hasOwn(operators, text)
}

function readPrefixed(lexer: Lexer): Expression {
  const { at } = peek(lexer)
  const signs: string[] = []
  while (isOperator(peek(lexer), prefixOperators)) signs.push(take(lexer).text)
  const value = readPrimary(lexer)
  return signs.length === 0 ? value : { kind: 'prefixed', signs, value, at }
}

function readPrimary(lexer: Lexer): Expression {
  const token = take(lexer)
  const { kind, text, at } = token
  if (kind === 'number') return { kind: 'literal', value: readNumber(lexer, token), at }
  if (kind === 'text') return { kind: 'literal', value: text, at }
  if (kind === 'atom') return { kind: 'literal', value: atomOf(text), at }
  if (kind === 'variable') return readMembers(lexer, { kind, name: text, at })
  return deeper(lexer.cursor, () => {
    if (kind === 'word') return readWord(lexer, token)
    if (text === '(') return readParentheses(lexer)
    if (text === '{') return readTuple(lexer, at)
    if (text === '[') return readBrackets(lexer, at)
    if (text === '<<') return readBinary(lexer, at)
    if (text === '#' && kind === 'sign') return readMap(lexer, at)
    throw mistakeOn(lexer, token, 'an expression was expected')
  })
}

function readNumber(lexer: Lexer, token: Token): ErlangTerm {
  const number = /^[0-9]+$/.test(token.text) ? bigintOf(token.text) : Number(token.text)
  const term = number === undefined ? undefined : termOf(number)
  if (term === undefined) throw mistakeOn(lexer, token, `${truncated(token.text)} is too large`)
  return term
}

/** `X.a.b`; the item itself where no dot follows. */
function readMembers(lexer: Lexer, of: Expression): Expression {
  const keys: string[] = []
  while (skip(lexer, '.')) {
    const key = take(lexer)
    if (key.kind !== 'word' && key.kind !== 'variable') {
      throw mistakeOn(lexer, key, 'a name was expected')
    }
    keys.push(key.text)
  }
  return keys.length === 0 ? of : { kind: 'members', of, keys, at: of.at }
}

/** Erlang's words that no expression begins with here. */
const reserved_words = new Set(
  [
    'after and andalso band bor bsl bsr bxor catch cond div else end fun let maybe of or orelse',
    'receive rem try when xor',
  ].flatMap((line) => line.split(' ')),
)

function readWord(lexer: Lexer, token: Token): Expression {
  const { text, at } = token
  if (text === 'begin') {
    const parts = readList(lexer)
    expectToken(lexer, 'end')
    return { kind: 'block', parts, at }
  }
  if (text === 'if') {
    return { kind: 'cases', subject: undefined, clauses: readClauses(lexer, undefined), at }
  }
  if (text === 'case') {
    const subject = readExpression(lexer)
    expectToken(lexer, 'of')
    return { kind: 'cases', subject, clauses: readClauses(lexer, () => readExpression(lexer)), at }
  }
  if (reserved_words.has(text)) throw mistakeOn(lexer, token, `"${text}" was not expected`)
  const name = skip(lexer, ':') ? `${text}:${take(lexer).text}` : text
  if (name === text && !isNext(lexer, '(')) return readMembers(lexer, { kind: 'word', name, at })
  expectToken(lexer, '(')
  const parts = readParts(lexer, ')')
  const apply = functionOf(name, parts.length)
  if (apply !== undefined) return { kind: 'call', name, apply, parts, at }
  const called = truncated(`${name}/${parts.length}`)
  throw mistakeOn(lexer, token, `$.map and $.filter have no function ${called}`)
}

function readParentheses(lexer: Lexer): Expression {
  const inner = readExpression(lexer)
  expectToken(lexer, ')')
  return inner
}

const template_pattern = /\{\{[^{},"]*\}\}/y

function readTuple(lexer: Lexer, at: number): Expression {
  template_pattern.lastIndex = at
  if (template_pattern.test(lexer.cursor.text)) {
    throw mistakeOn(lexer, { at }, 'a template cannot stand in a fun')
  }
  return { kind: 'tuple', parts: readParts(lexer, '}'), at }
}

/** A list, with or without a tail, or a comprehension. */
function readBrackets(lexer: Lexer, at: number): Expression {
  if (skip(lexer, ']')) return { kind: 'list', parts: [], at }
  const parts = readList(lexer)
  const [item] = parts
  if (parts.length === 1 && item !== undefined && skip(lexer, '||')) {
    return { kind: 'comprehension', item, qualifiers: readQualifiers(lexer), at }
  }
  const tail = skip(lexer, '|') ? readExpression(lexer) : undefined
  expectToken(lexer, ']')
  return tail === undefined ? { kind: 'list', parts, at } : { kind: 'list', parts, tail, at }
}

function readQualifiers(lexer: Lexer): readonly Qualifier[] {
  const qualifiers: Qualifier[] = []
  do {
    const token = peek(lexer)
    const first = readExpression(lexer)
    const is_generator = skip(lexer, '<-')
    qualifiers.push(
      is_generator
        ? { pattern: first, value: readExpression(lexer) }
        : { pattern: undefined, value: first },
    )
    if (qualifiers.length > template_depth_max) {
      throw mistakeOn(lexer, token, `more than ${template_depth_max} parts of a comprehension`)
    }
  } while (skip(lexer, ','))
  expectToken(lexer, ']')
  return qualifiers
}

/** `<<"text", Variable/binary>>`. */
function readBinary(lexer: Lexer, at: number): Expression {
  const parts: Expression[] = []
  while (!skip(lexer, '>>')) {
    if (parts.length > 0) expectToken(lexer, ',')
    const token = peek(lexer)
    const part = readPrimary(lexer)
    const type = skip(lexer, '/') ? take(lexer).text : 'utf8'
    const is_text = part.kind === 'literal' && typeof part.value === 'string'
    if (type !== (is_text ? 'utf8' : 'binary')) {
      throw mistakeOn(lexer, token, 'a part of a binary is a text in quotes or ends in /binary')
    }
    parts.push(part)
  }
  const [only = { kind: 'literal', value: '', at } as const] = parts
  const is_literal = parts.length <= 1 && only.kind === 'literal'
  return is_literal ? only : { kind: 'binary', parts, at }
}

/** `#{Key => Value}`, in a pattern `#{Key := Pattern}`. */
function readMap(lexer: Lexer, at: number): Expression {
  expectToken(lexer, '{')
  const entries: MapEntry[] = []
  let sign = '=>'
  while (!skip(lexer, '}')) {
    if (entries.length > 0) expectToken(lexer, ',')
    const key = readExpression(lexer)
    if (isNext(lexer, ':=')) sign = ':='
    expectToken(lexer, sign)
    entries.push([key, readExpression(lexer)])
  }
  return { kind: 'map', sign, entries, at }
}
