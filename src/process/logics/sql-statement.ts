/**
 * Binds the templates of an SQL statement: each becomes one parameter of the database's protocol,
 * so a value is never part of the SQL. A template inside single quotes takes the whole quoted text
 * with it. Where SQL allows no value (a name, a keyword, a piece of SQL) it is a mistake, and so is
 * more than one statement.
 *
 * What follows from an error of the scanner is a statement that the database refuses: values stay
 * values.
 */
import type { SqlDialect } from '../logic.ts'
import type { Part, Term } from '../templates/parser.ts'
import { besides, newPlaces } from './sql-places.ts'
import { excerpt, mark, type Token, tokensOf } from './sql-tokens.ts'

/** What one parameter is made of: a lone template outside quotes, or the parts of a quoted text. */
export interface BoundPart {
  readonly parts: readonly Part[]
  readonly is_quoted: boolean
}

export interface BoundStatement {
  /** With `$1` or `?` in place of the templates. */
  readonly text: string
  readonly params: readonly BoundPart[]
}

/** The statement with its parameters, or why it cannot be one. */
export function bindStatement(
  parts: readonly Part[],
  dialect: SqlDialect,
): BoundStatement | string {
  const terms = parts.filter((part): part is Term => typeof part !== 'string')
  if (parts.some((part) => typeof part === 'string' && part.includes(mark))) {
    return 'a character 0 is in it'
  }
  const text = parts.map((part) => (typeof part === 'string' ? part : mark)).join('')
  const tokens = tokensOf(text, dialect)
  if (typeof tokens === 'string') return tokens
  const places = newPlaces()
  const params: BoundPart[] = []
  let made = ''
  let taken = 0
  let is_ended = false
  for (const token of tokens) {
    const { kind } = token
    if (kind === 'space' || (kind === 'comment' && !token.text.includes(mark))) {
      made += token.text
      continue
    }
    if (token.text === ';') is_ended = true
    else if (is_ended) return `more than one statement: a second one is ${excerpt(text, token.at)}`
    if (kind === 'parameter') {
      return `${token.text} is a parameter of its own: write a template there`
    }
    const count = token.text.split(mark).length - 1
    if (count === 0) {
      made += token.text
      places.pass(token)
      continue
    }
    const why = kind === 'template' || kind === 'text' ? undefined : noValue[kind]
    const wrong = why ?? besides(text, token) ?? places.wrong(dialect)
    if (wrong !== undefined) return `template ${taken + 1} ${wrong}, so no value can be bound there`
    params.push(boundOf(token, terms.slice(taken, taken + count), dialect))
    taken += count
    made += dialect === 'postgres' ? `$${params.length}` : '?'
    places.pass({ ...token, kind: 'text' })
  }
  if (tokens.every(({ kind, text }) => kind === 'space' || kind === 'comment' || text === ';')) {
    return 'it is empty'
  }
  return { text: made, params }
}

const noValue: Readonly<Partial<Record<Token['kind'], string>>> = {
  comment: 'is in a comment',
  marked_text: 'is in a quoted text with letters or a sign before it',
  name: 'is in a quoted name',
  dollar_text: 'is in a text between dollar signs',
}

function boundOf(token: Token, terms: readonly Part[], dialect: SqlDialect): BoundPart {
  if (token.kind === 'template') return { parts: terms, is_quoted: false }
  const literals = token.text.slice(1, -1).split(mark)
  const sign = token.text.charAt(0)
  const parts = literals.flatMap((literal, at): Part[] => {
    const plain = unquoted(literal, sign, dialect)
    const before = at === 0 ? undefined : terms[at - 1]
    return [...(before === undefined ? [] : [before]), ...(plain === '' ? [] : [plain])]
  })
  return { parts, is_quoted: true }
}

const escapes: Readonly<Record<string, string>> = {
  '0': '\0',
  b: '\b',
  n: '\n',
  r: '\r',
  t: '\t',
  Z: '\x1a',
  '%': '\\%',
  _: '\\_',
}

/** What a quoted text says. */
function unquoted(literal: string, sign: string, dialect: SqlDialect): string {
  if (dialect === 'postgres') return literal.replaceAll("''", "'")
  return literal.replaceAll(/\\(.)|''|""/gs, (pair, escaped: string | undefined) => {
    if (escaped !== undefined) return escapes[escaped] ?? escaped
    return pair === sign + sign ? sign : pair
  })
}
