/**
 * What templates give, for the model: a value, nothing, or a failure, which is thrown.
 */
import { createHash } from 'node:crypto'
import {
  type Assignment,
  type Data,
  type Expression,
  type Json,
  type Term,
  termText,
  textOf,
} from './plan.ts'
import { convert, isObject, numberOf, textOfValue } from './values.ts'

/** What a template may read. */
export interface Reads {
  readonly data: Data
  readonly now_ms: number
  readonly bytes_max: number
  root(name: string): Json | undefined
  /** Whether the task may read that process; a template gave its id, or the definition. */
  canRead(conv: string, is_from_template: boolean): boolean
  count(node: string, conv: string | undefined): number
  sum(node: string, name: string, conv: string | undefined): number | undefined
  taskData(conv: string, ref: string): Data | undefined
  variable(name: string, key: string): Json | undefined
}

/** Why an expansion has failed. */
export interface Failed {
  readonly failed: 'convert' | 'denied' | 'overflow'
  readonly says: string
}

export const isFailed = (thrown: unknown): thrown is Failed =>
  typeof thrown === 'object' && thrown !== null && 'failed' in thrown

const shown = (text: string): string => {
  const points = [...text]
  return points.length <= 128 ? text : `${points.slice(0, 128).join('')}…`
}

export function conversion(param: string, value: Json, type: string): Failed {
  const says = `Param: ${shown(param)}, Value: ${shown(textOfValue(value))}, Try convert to: ${type}`
  return { failed: 'convert', says }
}

const failed = (says: string): Failed => ({ failed: 'convert', says })

/** What every chance gives: the middle. */
export const fraction = 0.5

/** `left` bounds the texts in it too, such as the ref of another task. */
export function evaluate(expression: Expression, given: Reads, left: number): Json | undefined {
  const reads = left === given.bytes_max ? given : { ...given, bytes_max: left }
  const [only] = expression
  if (expression.length === 1 && typeof only === 'object') return termValue(only, reads)
  if (expression.every((part) => typeof part === 'string')) return expression.join('')
  let text = ''
  for (const part of expression) {
    const value = typeof part === 'string' ? part : termValue(part, reads)
    const piece = value === undefined ? '' : textOfValue(value)
    if (text.length + piece.length > left) throw { failed: 'overflow', says: '' } satisfies Failed
    text += piece
  }
  return text
}

export function termValue(term: Term, reads: Reads): Json | undefined {
  switch (term.is) {
    case 'path':
      return follow(reads.data as Json, term.keys)
    case 'root':
      return reads.root(term.name)
    case 'count':
      requireRead(reads, term.conv, false)
      return reads.count(term.node, term.conv)
    case 'sum':
      requireRead(reads, term.conv, false)
      return reads.sum(term.node, term.name, term.conv)
    case 'other': {
      const conv = idOf(term.conv, reads)
      if (conv === undefined || conv === '') return undefined
      requireRead(reads, conv, typeof term.conv[0] === 'object')
      const ref = idOf(term.ref, reads)
      return ref === undefined ? undefined : member(reads.taskData(conv, ref) as Json, term.key)
    }
    case 'variable':
      return reads.variable(term.name, term.key)
    case 'math':
      return mathOf(term, reads)
    case 'random':
      return Math.floor(fraction * (term.max + 1))
    case 'unixtime':
      return Math.floor(reads.now_ms / 1_000)
    case 'digest': {
      const text = textIn(term.of, reads)
      return createHash(term.name.slice(0, -4)).update(text).digest('hex')
    }
    case 'base64':
      return Buffer.from(textIn(term.of, reads)).toString('base64')
    case 'to': {
      const value = termValue(term.of, reads)
      const made = convert(value, term.type)
      if (made !== undefined) return made
      const what = value === undefined ? 'nothing' : shown(textOfValue(value))
      throw failed(`$.to_${term.type}: ${what} is no ${term.type}`)
    }
    case 'map':
      return numbersOf(term.of, reads, 'map').map((one) => one + term.add)
    case 'filter':
      return numbersOf(term.of, reads, 'filter').filter((one) => one > term.more)
  }
}

/** Only lists of numbers are asked for. */
function numbersOf(of: Term, reads: Reads, name: string): number[] {
  const value = termValue(of, reads)
  if (Array.isArray(value) && value.every((one) => typeof one === 'number'))
    return value as number[]
  throw failed(`$.${name} of what is no list of numbers`)
}

/** Whether a list of numbers stands there, which alone `map` and `filter` are tried with. */
export function textIn(of: Expression, reads: Reads): string {
  const value = evaluate(of, reads, reads.bytes_max)
  return value === undefined ? '' : textOfValue(value)
}

function idOf(of: Expression, reads: Reads): string | undefined {
  const value = evaluate(of, reads, reads.bytes_max)
  const text = value === undefined ? undefined : textOfValue(value)
  if (text !== undefined && text.length > reads.bytes_max) {
    throw { failed: 'overflow', says: '' } satisfies Failed
  }
  return text
}

function requireRead(reads: Reads, conv: string | undefined, is_from_template: boolean): void {
  if (conv === undefined || reads.canRead(conv, is_from_template)) return
  const user = textOfValue(reads.root('user_id') ?? '-')
  throw { failed: 'denied', says: `User: ${user}, Conv_id: ${conv}` } satisfies Failed
}

function mathOf({ left, sign, right }: Extract<Term, { is: 'math' }>, reads: Reads): number {
  const one = operand(left, reads)
  const other = typeof right === 'number' ? right : operand(right, reads)
  if (sign === '/' && other === 0) throw failed('$.math: division by zero')
  const made =
    sign === '+'
      ? one + other
      : sign === '-'
        ? one - other
        : sign === '*'
          ? one * other
          : one / other
  if (!Number.isFinite(made)) throw failed('the result is no finite number')
  return made === 0 ? 0 : made
}

function operand(term: Term, reads: Reads): number {
  const value = termValue(term, reads)
  const number = numberOf(value)
  if (number !== undefined) return number
  const why = value === undefined ? 'missing' : 'no number'
  throw failed(`$.math: ${shown(termText(term))} is ${why}`)
}

function follow(value: Json, keys: readonly string[]): Json | undefined {
  let found: Json | undefined = value
  for (const key of keys) found = member(found, key)
  return found
}

export function member(value: Json | undefined, key: string): Json | undefined {
  if (Array.isArray(value)) return /^(0|[1-9][0-9]*)$/.test(key) ? value[Number(key)] : undefined
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

/** A copy of `base` with the values set; all of them see the data as it was before. */
export function assigned(set: readonly Assignment[], reads: Reads, base: Data): Data {
  const data: Record<string, Json> = { ...base }
  let left = reads.bytes_max
  for (const assignment of set) {
    const [key = '', ...deeper] = textOf(assignment.key).split('.')
    const value = assignedValue(assignment, reads, left)
    if (value === undefined) continue
    left -= key.length + charsOf(value)
    if (left < 0) throw { failed: 'overflow', says: '' } satisfies Failed
    if (deeper.length === 0) data[key] = value
    else setWithin(data, key, deeper[0] as string, value)
  }
  return data
}

function assignedValue(
  { key, value, type }: Assignment,
  reads: Reads,
  left: number,
): Json | undefined {
  const name = textOf(key)
  try {
    const found = evaluate(value, reads, left)
    if (type === undefined) return found
    const made = convert(found, type)
    if (made === undefined) throw conversion(name, found ?? textOf(value), type)
    return made
  } catch (thrown) {
    if (!isFailed(thrown) || thrown.failed !== 'denied') throw thrown
    // What may not be read is told with the key that asks for it.
    throw { ...thrown, says: `Param: ${name.split('.')[0]}, ${thrown.says}` } satisfies Failed
  }
}

function setWithin(data: Record<string, Json>, key: string, name: string, value: Json): void {
  const found = data[key] ?? null
  if (found !== null && !isObject(found)) throw conversion(key, found, 'object')
  data[key] = { ...found, [name]: value }
}

function charsOf(value: Json): number {
  if (typeof value === 'string') return value.length
  return typeof value === 'object' && value !== null ? JSON.stringify(value).length : 1
}
