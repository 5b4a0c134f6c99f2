/**
 * The tokens of an SQL statement in the language of its database: quoted texts and names, comments,
 * words, numbers and signs. A character 0 stands in for each template.
 */
import type { SqlDialect } from '../logic.ts'

export type Kind =
  | ('space' | 'comment' | 'text' | 'marked_text' | 'name' | 'dollar_text')
  | ('parameter' | 'word' | 'number' | 'template' | 'sign')
type Rows = readonly (readonly [Kind, RegExp])[]

/** Stands for a template in the scanned text. */
export const mark = '\0'

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

export interface Token {
  readonly kind: Kind
  readonly text: string
  readonly at: number
}

/** Or what does not close. */
export function tokensOf(text: string, dialect: SqlDialect): Token[] | string {
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

const excerpt_chars = 24

/** The beginning of the rest, in quotes. */
export function excerpt(text: string, at: number): string {
  const rest = text.slice(at).replaceAll(mark, '{{…}}')
  return JSON.stringify(rest.length > excerpt_chars ? `${rest.slice(0, excerpt_chars)}…` : rest)
}
