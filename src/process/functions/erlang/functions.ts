/**
 * The functions that a fun may call, by name and arity; built-in ones also with `erlang:`.
 * Undefined means that the arguments do not fit, which fails the evaluation.
 */
import { stringifyJson } from '../../../codec/json.ts'
import { parsedValue } from '../../values.ts'
import { jsonOf } from './json.ts'
import { bigintOf, isInteger, numericOf, termOf } from './numbers.ts'
import type { Apply } from './operators.ts'
import { getValue, proplistFunctions } from './proplists.ts'
import {
  atomName,
  charsOf,
  type ErlangTerm,
  type Evaluation,
  isAtom,
  isList,
  isMap,
  isNumber,
  listOf,
  type Result,
  remainder,
  sized,
  spend,
  tooLong,
  undefined_atom,
} from './terms.ts'

function is(holds: (term: ErlangTerm) => boolean): Apply {
  return (_evaluation, term) => holds(term)
}

function onText(apply: (evaluation: Evaluation, text: string) => Result): Apply {
  return (evaluation, text) => {
    if (typeof text !== 'string' || !spend(evaluation, text.length)) return undefined
    return apply(evaluation, text)
  }
}

/** Unlike proplists:get_value, the atom undefined also for what is no list. */
function memberOf(evaluation: Evaluation, key: ErlangTerm, list: ErlangTerm): ErlangTerm {
  return (isList(list) ? getValue(evaluation, key, list) : undefined) ?? undefined_atom
}

function jsonText(evaluation: Evaluation, term: ErlangTerm): Result {
  const json = jsonOf(evaluation, term)
  return json === undefined ? undefined : sized(evaluation, stringifyJson(json))
}

const base64_text = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

interface Base64Options {
  readonly is_urlsafe: boolean
  readonly has_padding: boolean
}

/** Of `#{mode => urlsafe, padding => false}`; undefined where a member is not known. */
function base64Options(options: ErlangTerm | undefined): Base64Options | undefined {
  const of = { is_urlsafe: false, has_padding: true }
  if (options === undefined) return of
  if (!isMap(options)) return undefined
  for (const [key, value] of options.pairs) {
    const [name, choice] = [key, value].map((term) => (isAtom(term) ? atomName(term) : ''))
    if (name === 'mode' && (choice === 'standard' || choice === 'urlsafe')) {
      of.is_urlsafe = choice === 'urlsafe'
    } else if (name === 'padding' && typeof value === 'boolean') {
      of.has_padding = value
    } else {
      return undefined
    }
  }
  return of
}

function onBase64(apply: (text: string, options: Base64Options) => Result): Apply {
  return (evaluation, text, options) => {
    const of = base64Options(options)
    if (typeof text !== 'string' || of === undefined) return undefined
    return spend(evaluation, text.length) ? apply(text, of) : undefined
  }
}

function encoded(text: string, { is_urlsafe, has_padding }: Base64Options): string {
  const letters = Buffer.from(text).toString('base64')
  const made = is_urlsafe ? letters.replaceAll('+', '-').replaceAll('/', '_') : letters
  return has_padding ? made : made.replace(/=+$/, '')
}

/** Undefined where the text is no base64, or its bytes are no text. */
function decoded(text: string, { is_urlsafe, has_padding }: Base64Options): string | undefined {
  let letters = text.replace(/[ \t\r\n]/g, '')
  if (is_urlsafe) {
    if (/[+/]/.test(letters)) return undefined
    letters = letters.replaceAll('-', '+').replaceAll('_', '/')
  }
  if (!has_padding) letters = letters.padEnd(4 * Math.ceil(letters.length / 4), '=')
  if (!base64_text.test(letters)) return undefined
  const bytes = Buffer.from(letters, 'base64')
  const made = bytes.toString()
  return Buffer.from(made).equals(bytes) ? made : undefined
}

const splitText: Apply = (evaluation, text, pattern, options = []) => {
  const names = optionsOf(evaluation, options, ['global', 'trim', 'trim_all'])
  const parts = names && partsBetween(evaluation, text, pattern, names.includes('global'))
  if (names === undefined || parts === undefined) return undefined
  if (names.includes('trim_all')) return parts.filter((part) => part !== '')
  while (names.includes('trim') && parts.at(-1) === '') parts.pop()
  return parts
}

const replacedText: Apply = (evaluation, text, pattern, replacement, options = []) => {
  const names = optionsOf(evaluation, options, ['global'])
  const parts = names && partsBetween(evaluation, text, pattern, names.includes('global'))
  if (parts === undefined || typeof replacement !== 'string') return undefined
  const added = (parts.length - 1) * replacement.length
  if (added > evaluation.size_max) return tooLong(evaluation)
  return sized(evaluation, parts.join(replacement))
}

/** The names of options; undefined where one is not known. */
function optionsOf(
  evaluation: Evaluation,
  options: ErlangTerm,
  known: readonly string[],
): readonly string[] | undefined {
  const names = listOf(evaluation, options)?.map((one) => (isAtom(one) ? atomName(one) : ''))
  return names?.every((name) => known.includes(name)) ? names : undefined
}

/** The text split where the first, and of these the longest, pattern is found: once or always. */
function partsBetween(
  evaluation: Evaluation,
  text: ErlangTerm,
  pattern: ErlangTerm,
  is_global: boolean,
): string[] | undefined {
  const patterns = typeof pattern === 'string' ? [pattern] : listOf(evaluation, pattern)
  if (typeof text !== 'string' || !patterns?.every((one) => typeof one === 'string'))
    return undefined
  if (patterns.length === 0 || patterns.includes('')) return undefined
  const pattern_steps = patterns.length + charsOf(patterns) / 64
  if (!spend(evaluation, pattern_steps + text.length * pattern_steps)) return undefined
  const found = patterns.map((one) => text.indexOf(one))
  const parts: string[] = []
  let from = 0
  for (;;) {
    let at = -1
    let end = -1
    for (const [number, one] of patterns.entries()) {
      let place = found[number] as number
      if (place !== -1 && place < from) place = found[number] = text.indexOf(one, from)
      const is_better = place < at || (place === at && place + one.length > end)
      if (place !== -1 && (at === -1 || is_better)) [at, end] = [place, place + one.length]
    }
    if (at !== -1) parts.push(text.slice(from, at))
    if (at !== -1) from = end
    if (at === -1 || !is_global) return sized(evaluation, [...parts, text.slice(from)])
  }
}

function floatOf(text: string): Result {
  return /^[+-]?[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?$/.test(text) ? termOf(Number(text)) : undefined
}

function integerOf(text: string): Result {
  const integer = /^[+-]?[0-9]+$/.test(text) ? bigintOf(text.replace('+', '')) : undefined
  return integer === undefined ? undefined : termOf(integer)
}

const integerText: Apply = (_evaluation, integer, base = 10) => {
  const number = numericOf(integer)
  const radix = numericOf(base)
  if (typeof number !== 'bigint' || typeof radix !== 'bigint') return undefined
  return radix < 2n || radix > 36n ? undefined : number.toString(Number(radix)).toUpperCase()
}

/** To the nearest integer, halves away from zero. */
function rounded(_evaluation: Evaluation, term: ErlangTerm): Result {
  const number = numericOf(term)
  if (typeof number !== 'number') return number === undefined ? undefined : term
  return termOf(BigInt(Math.sign(number) * Math.round(Math.abs(number))))
}

function tail(evaluation: Evaluation, list: ErlangTerm): Result {
  const items = listOf(evaluation, list)
  if (items === undefined || items.length === 0) return undefined
  return sized(evaluation, remainder(list, items.slice(1)))
}

/** Options change nothing: what is read is a list of pairs and a map at once. */
const fromJson: Apply = (evaluation, text, options = []) => {
  if (typeof text !== 'string' || !isList(options)) return undefined
  return spend(evaluation, text.length) ? parsedValue(text) : undefined
}

/** By name with its module and number of arguments. */
export const erlangFunctions: ReadonlyMap<string, Apply> = new Map<string, Apply>([
  ...proplistFunctions,
  ['eutils:get_value/2', memberOf],
  ['eutils:from_json/1', fromJson],
  ['eutils:from_json/2', fromJson],
  ['eutils:to_json/1', jsonText],
  ['base64:encode/1', onBase64(encoded)],
  ['base64:encode/2', onBase64(encoded)],
  ['base64:decode/1', onBase64(decoded)],
  ['base64:decode/2', onBase64(decoded)],
  ['binary:split/2', splitText],
  ['binary:split/3', splitText],
  ['binary:replace/3', replacedText],
  ['binary:replace/4', replacedText],
  ['binary_to_float/1', onText((_evaluation, text) => floatOf(text))],
  ['binary_to_integer/1', onText((_evaluation, text) => integerOf(text))],
  ['integer_to_binary/1', integerText],
  ['integer_to_binary/2', integerText],
  ['round/1', rounded],
  ['is_integer/1', is((term) => isNumber(term) && isInteger(term))],
  ['is_float/1', is((term) => isNumber(term) && !isInteger(term))],
  ['is_number/1', is(isNumber)],
  ['is_binary/1', is((term) => typeof term === 'string')],
  ['is_list/1', is(isList)],
  ['is_boolean/1', is((term) => typeof term === 'boolean')],
  ['hd/1', (evaluation, list) => listOf(evaluation, list)?.[0]],
  ['tl/1', tail],
])

/** The function of a name with its module; undefined where there is none. */
export function functionOf(name: string, arity: number): Apply | undefined {
  return erlangFunctions.get(`${name.replace(/^erlang:/, '')}/${arity}`)
}
