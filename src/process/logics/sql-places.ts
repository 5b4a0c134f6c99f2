/**
 * Where a value can be in an SQL statement, by the words and signs before it: after an operator, a
 * comma or `WHERE`, and not where SQL has a name or a piece of itself.
 */
import type { SqlDialect } from '../logic.ts'
import type { Token } from './sql-tokens.ts'

/** A template that touches a word, a number or another quote is a part of something. */
export function besides(text: string, { at, text: own }: Token): string | undefined {
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

export interface Places {
  pass(token: Token): void
  /** Why no value can be here; undefined where one can. */
  wrong(dialect: SqlDialect): string | undefined
}

/** Follows the words and parentheses of a statement. */
export function newPlaces(): Places {
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
