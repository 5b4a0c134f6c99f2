/**
 * The tokens of a fun, read from the cursor of the template around it, never beyond its `end`.
 * Blanks and `%` comments separate tokens.
 */
import { matchAt, mistakeAt, type ParseFault, type TemplateCursor } from '../../templates/parser.ts'

export type TokenKind = 'number' | 'text' | 'variable' | 'word' | 'atom' | 'sign' | 'end of text'

export interface Token {
  readonly kind: TokenKind
  /** As it is written; a text or an atom in quotes without its quotes and escapes. */
  readonly text: string
  readonly at: number
  readonly end: number
}

export interface Lexer {
  readonly cursor: TemplateCursor
  next: Token | undefined
}

const blanks = /\s*/y
const comment = /%[^\n]*\n/y
const tokens: readonly (readonly [TokenKind, RegExp])[] = [
  ['number', /[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y],
  ['text', /"((?:[^"\\]|\\[\s\S])*)"/y],
  ['atom', /'((?:[^'\\]|\\[\s\S])*)'/y],
  ['variable', /[A-Z_][A-Za-z0-9_@]*/y],
  ['word', /[a-z][A-Za-z0-9_@]*/y],
  // `=<` is no sign before a quote: `A=<<"a">>` is a match.
  ['sign', /=:=|=\/=|==|\/=|=<(?!<")|->|<-|=>|:=|\+\+|--|\|\||<<|>>|>=|[-+*/<>=(){}[\],;:|.#]/y],
]

/** The next token, which is not consumed. */
export function peek(lexer: Lexer): Token {
  lexer.next ??= readToken(lexer.cursor)
  return lexer.next
}

export function take(lexer: Lexer): Token {
  const token = peek(lexer)
  lexer.cursor.at = token.end
  lexer.next = undefined
  return token
}

/** Whether the next token is this sign or word. */
export function isNext(lexer: Lexer, text: string): boolean {
  const token = peek(lexer)
  return token.text === text && (token.kind === 'sign' || token.kind === 'word')
}

/** Consumes the sign or word if it is next. */
export function skip(lexer: Lexer, text: string): boolean {
  if (!isNext(lexer, text)) return false
  take(lexer)
  return true
}

export function expectToken(lexer: Lexer, text: string): void {
  if (!skip(lexer, text)) throw mistakeOn(lexer, peek(lexer), `"${text}" was expected`)
}

export function mistakeOn(lexer: Lexer, { at }: { readonly at: number }, what: string): ParseFault {
  lexer.cursor.at = at
  return mistakeAt(lexer.cursor, what)
}

export function skipBlanks(cursor: TemplateCursor): void {
  do matchAt(cursor, blanks)
  while (matchAt(cursor, comment) !== undefined)
}

function readToken(cursor: TemplateCursor): Token {
  const from = cursor.at
  skipBlanks(cursor)
  const { at } = cursor
  for (const [kind, pattern] of tokens) {
    const match = matchAt(cursor, pattern)
    if (match === undefined) continue
    const [text, quoted] = match
    const end = cursor.at
    cursor.at = from
    return { kind, text: quoted === undefined ? text : unescaped(quoted), at, end }
  }
  if (at < cursor.text.length) throw mistakeAt(cursor, 'this is no Erlang')
  cursor.at = from
  return { kind: 'end of text', text: '', at, end: at }
}

const escapes: Readonly<Record<string, string>> = {
  b: '\b',
  d: '\x7f',
  e: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  s: ' ',
  t: '\t',
  v: '\v',
}
const escape_pattern = /\\(?:x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|([0-7]{1,3})|([\s\S]))/gu

function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(escape_pattern, (_all, braced, hex, octal, char: string | undefined) => {
    if (char !== undefined) return escapes[char] ?? char
    const code = Number.parseInt(octal ?? braced ?? hex, octal === undefined ? 16 : 8)
    const is_character = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
    return is_character ? String.fromCodePoint(code) : '\ufffd'
  })
}
