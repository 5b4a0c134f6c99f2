/**
 * Binds the templates of an SQL statement: each becomes one parameter of the database's protocol,
 * so a value is never part of the SQL. A template inside single quotes takes the whole quoted text
 * with it. Where SQL allows no value (a name, a keyword, a piece of SQL) it is a mistake, and so is
 * more than one statement.
 *
 * What follows from an error of this scanner is a statement that the database refuses: values stay
 * values.
 */
import type { SqlDialect } from '../logic.ts'
import type { Part, Term } from '../templates/parser.ts'

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

type Kind =
  | ('space' | 'comment' | 'text' | 'marked_text' | 'name' | 'dollar_text')
  | ('parameter' | 'word' | 'number' | 'template' | 'sign')
type Rows = readonly (readonly [Kind, RegExp])[]

/** Stands for a template in the scanned text. */
const mark = '\0'

const word_start = 'A-Za-z_\\u0080-\\uffff'
const word = new RegExp(`[${word_start}][${word_start}0-9$]*`, 'y')
const common: Rows = [
  ['word', word],
  ['number', /[0-9][0-9A-Za-z_.]*/y],
  ['template', /\0/y],
  ['sign', /[^'"`]/y],
]

const rows: Readonly<Record<SqlDialect, Rows>> = {
  postgres: [
    ['space', /\s+/y],
    ['comment', /--[^\n]*/y],
    ['marked_text', /e'(?:[^'\\]|''|\\.)*'/isy],
    ['marked_text', /(?:[bxn]|u&)'(?:[^']|'')*'/iy],
    ['text', /'(?:[^']|'')*'/y],
    ['name', /(?:u&)?"(?:[^"]|"")*"/iy],
    [
      'dollar_text',
      new RegExp(`\\$((?:[${word_start}][${word_start}0-9]*)?)\\$.*?\\$\\1\\$`, 'sy'),
    ],
    ['parameter', /\$[0-9]+/y],
    ...common,
  ],
  mysql: [
    ['space', /\s+/y],
    ['comment', /#[^\n]*|--(?=[\s\0]|$)[^\n]*/y],
    ['marked_text', /(?:[bxn]|_[a-z0-9]+\s*)(?:'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*")/isy],
    ['text', /'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"/sy],
    ['name', /`(?:[^`]|``)*`/y],
    ['parameter', /\?/y],
    ...common,
  ],
}

interface Token {
  readonly kind: Kind
  readonly text: string
  readonly at: number
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

const excerpt_chars = 24

function excerpt(text: string, at: number): string {
  const rest = text.slice(at).replaceAll(mark, '{{…}}')
  return JSON.stringify(rest.length > excerpt_chars ? `${rest.slice(0, excerpt_chars)}…` : rest)
}

const noValue: Readonly<Partial<Record<Kind, string>>> = {
  comment: 'is in a comment',
  marked_text: 'is in a quoted text with letters or a sign before it',
  name: 'is in a quoted name',
  dollar_text: 'is in a text between dollar signs',
}

function tokensOf(text: string, dialect: SqlDialect): Token[] | string {
  const tokens: Token[] = []
  for (let at = 0; at < text.length; ) {
    const found = text.startsWith('/*', at)
      ? blockComment(text, at, dialect === 'postgres')
      : tokenAt(text, at, rows[dialect])
    if (found === undefined) return `a quote or comment does not close: ${excerpt(text, at)}`
    tokens.push(found)
    at += found.text.length
  }
  return tokens
}

function tokenAt(text: string, at: number, of: Rows): Token | undefined {
  for (const [kind, pattern] of of) {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null) return { kind, text: match[0], at }
  }
  return undefined
}

function blockComment(text: string, at: number, nests: boolean): Token | undefined {
  const edges = nests ? /\/\*|\*\//g : /\*\//g
  edges.lastIndex = at + 2
  let depth = 1
  for (let edge = edges.exec(text); edge !== null; edge = edges.exec(text)) {
    depth += edge[0] === '/*' ? 1 : -1
    if (depth === 0) return { kind: 'comment', text: text.slice(at, edges.lastIndex), at }
  }
  return undefined
}

/** A template that touches a word, a number or another quote is a part of something. */
function besides(text: string, { at, text: own }: Token): string | undefined {
  const is_joined =
    /[\w$.@"'`\0\u0080-\uffff]/.test(text.charAt(at - 1)) ||
    /[\w$."'`\0(\u0080-\uffff]/.test(text.charAt(at + own.length))
  return is_joined ? 'is joined to what is beside it' : undefined
}

/** After these words SQL takes a value. */
const before_value = new Set(
  (
    'select distinct all where and or not like ilike rlike regexp to between in then else when ' +
    'case on having returning limit offset first next rows range div mod xor binary escape zone ' +
    'using any some variadic symmetric sounds'
  ).split(' '),
)

/** In these clauses a value in a list would be a name, or would do nothing. */
const clauses = new Set(
  'select from where order group into values set update limit having returning on join'.split(' '),
)
const names_of_clause: Readonly<Record<string, string>> = {
  order: 'is a column of ORDER BY',
  group: 'is a column of GROUP BY',
  from: 'is a table of FROM',
  join: 'is a table of JOIN',
  into: 'is a name of INTO',
  update: 'is a table of UPDATE',
  columns: 'is a column of INTO',
}

const is_from = /^from$/
const no_value_after: readonly string[] = ['.', '::', ')', ']', '{', '}']

interface Places {
  pass(token: Token): void
  /** Why no value can be here; undefined where one can. */
  wrong(dialect: SqlDialect): string | undefined
}

/** Follows the words and parentheses of a statement. */
function newPlaces(): Places {
  const nested: string[] = ['']
  let before: Token | undefined
  let two_before = ''
  const wordOf = (token: Token | undefined): string =>
    token?.kind === 'word' ? token.text.toLowerCase() : ''

  /** That of `is distinct from`, or of `substring(… from …)`. */
  function isOtherFrom(): boolean {
    return wordOf(before) === 'distinct' || nested.at(-1) === 'call'
  }

  function after(dialect: SqlDialect): string | undefined {
    const [last, clause = ''] = [wordOf(before), nested.at(-1)]
    const in_list = last === clause || last === 'by' || before?.text === ','
    const name = clause in names_of_clause ? names_of_clause[clause] : undefined
    const is_other = is_from.test(last) && (two_before === 'distinct' || clause === 'call')
    if (is_other) return undefined
    if (clause === 'columns' || (in_list && name !== undefined)) return name
    if (last === 'for' && clause === 'call') return undefined
    if (last === 'interval' && dialect === 'mysql') return undefined
    if (before_value.has(last)) return undefined
    if (before?.kind === 'sign' && !no_value_after.includes(before.text)) return undefined
    return before === undefined ? 'begins the statement' : `comes after ${quotedToken(before)}`
  }

  return {
    pass(token) {
      const name = wordOf(token)
      if (token.text === '(') {
        const is_columns = nested.at(-1) === 'into'
        const is_call = wordOf(before) !== '' && !clauses.has(wordOf(before))
        nested.push(is_columns ? 'columns' : is_call ? 'call' : '')
      } else if (token.text === ')' && nested.length > 1) nested.pop()
      else if (clauses.has(name) && !(is_from.test(name) && isOtherFrom())) {
        nested[nested.length - 1] = name
      }
      const is_cast = before?.text === ':' && token.text === ':'
      two_before = wordOf(before)
      before = is_cast ? { ...token, text: '::' } : token
    },
    wrong: after,
  }
}

function quotedToken({ kind, text }: Token): string {
  return kind === 'text' ? 'another value' : `"${text.slice(0, 40)}"`
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
