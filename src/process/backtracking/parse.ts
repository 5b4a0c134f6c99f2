/**
 * Parses a pattern that RE2 does not take (look-around, back-references, atomic groups, possessive
 * repeats; PCRE spelling) to a tree. RE2 compiles its classes and escapes, so both engines read
 * them alike. The first mistake is thrown as a `bad_definition` fault with its place.
 */
import { fault } from '../../core/faults.ts'
import { truncated } from '../report.ts'
import { matchAt } from '../templates/parser.ts'
import { type CharacterSet, characterSet } from './character-set.ts'

interface Outer {
  readonly of: PatternNode
}

export type PatternNode =
  | { readonly kind: 'character'; readonly code: number }
  | { readonly kind: 'set'; readonly set: CharacterSet }
  | { readonly kind: 'sequence' | 'either'; readonly parts: readonly PatternNode[] }
  /** `max` may be Infinity. */
  | (Outer & { readonly kind: 'repeat'; min: number; max: number; readonly is_greedy: boolean })
  | (Outer & { readonly kind: 'group'; readonly number: number })
  | (Outer & { readonly kind: 'look'; is_behind: boolean; is_negative: boolean; at: number })
  /** Gives nothing back of what it matched first. */
  | (Outer & { readonly kind: 'atomic' })
  /** To a group by its number or name. */
  | { readonly kind: 'reference'; readonly to: string; in_any_case: boolean; at: number }
  | { readonly kind: 'place'; readonly place: Place }

/** A condition on a place of the text. */
export type Place =
  | 'text start'
  | 'text end'
  | 'end'
  | 'line start'
  | 'line end'
  | 'edge'
  | 'no edge'

export interface ParsedPattern {
  readonly tree: PatternNode
  /** The numbers of the groups, by number and by name. */
  readonly groups: ReadonlyMap<string, number>
  /** By their sources and flags. */
  readonly sets: ReadonlyMap<string, CharacterSet>
}

interface Parser {
  readonly text: string
  at: number
  /** Letters of i, m, s and U. */
  flags: string
  readonly groups: Map<string, number>
  groups_count: number
  readonly sets: Map<string, CharacterSet>
}

export function parsePattern(text: string): ParsedPattern {
  const [groups, sets] = [new Map<string, number>(), new Map<string, CharacterSet>()]
  const parser: Parser = { text, at: 0, flags: '', groups, groups_count: 0, sets }
  const tree = readAlternatives(parser)
  if (parser.at < text.length) throw mistake(parser, '")" closes nothing')
  return { tree, groups, sets }
}

/** The fault for a mistake at an offset; characters are counted from 1. */
export function mistake({ at }: { readonly at: number }, what: string): Error {
  return fault('bad_definition', `${what} at character ${at + 1}`)
}

function readAlternatives(parser: Parser): PatternNode {
  const { flags } = parser
  const parts = [readSequence(parser)]
  while (skip(parser, '|')) parts.push(readSequence(parser))
  parser.flags = flags
  const [only] = parts
  return parts.length === 1 && only !== undefined ? only : { kind: 'either', parts }
}

function readSequence(parser: Parser): PatternNode {
  const parts: PatternNode[] = []
  while (parser.at < parser.text.length && !/[|)]/.test(parser.text[parser.at] as string)) {
    const at = parser.at
    if (matchAt(parser, quantifier) !== undefined) throw mistake({ at }, 'nothing to repeat')
    const atoms = readAtoms(parser)
    const last = atoms.pop()
    parts.push(...atoms)
    if (last !== undefined) parts.push(readRepeat(parser, last))
  }
  return { kind: 'sequence', parts }
}

/** One atom, all characters of `\Q…\E`, or none for flags or a comment. */
function readAtoms(parser: Parser): PatternNode[] {
  const quoted = matchAt(parser, /\\Q([\s\S]*?)(?:\\E|$)/y)?.[1]
  if (quoted !== undefined) return [...quoted].map((char) => readCharacter(parser, char))
  const char = String.fromCodePoint(parser.text.codePointAt(parser.at) as number)
  if (char === '(') return readGroup(parser)
  if (char === '\\') return [readEscape(parser)]
  if (char === '[') return [readSet(parser, class_pattern, 'missing "]"')]
  if (char === '.') return [readSet(parser, /\./y, '')]
  parser.at += char.length
  const is_lines = parser.flags.includes('m')
  if (char === '^') return [{ kind: 'place', place: is_lines ? 'line start' : 'text start' }]
  if (char === '$') return [{ kind: 'place', place: is_lines ? 'line end' : 'end' }]
  return [readCharacter(parser, char)]
}

const class_pattern = /\[\^?\]?(?:\\[\s\S]|\[:\^?[a-z]+:\]|[^\]\\])*\]/y

function readCharacter(parser: Parser, char: string): PatternNode {
  const code = char.codePointAt(0) as number
  const has_case = parser.flags.includes('i') && /[^\x00-\x40\x5b-\x60\x7b-\x7f]/.test(char)
  return has_case ? setNode(parser, char, parser.at) : { kind: 'character', code }
}

function readSet(parser: Parser, pattern: RegExp, missing: string): PatternNode {
  const { at } = parser
  const source = matchAt(parser, pattern)?.[0]
  if (source === undefined) throw mistake({ at }, missing)
  return setNode(parser, source, at)
}

function setNode({ flags, sets }: Parser, source: string, at: number): PatternNode {
  const set_flags = flags.replace(/[mU]/g, '')
  const name = `${set_flags}:${source}`
  try {
    const set = sets.get(name) ?? characterSet(source, set_flags)
    sets.set(name, set)
    return { kind: 'set', set }
  } catch (error) {
    const why = error instanceof Error ? error.message.replace('error parsing regexp: ', '') : ''
    throw mistake({ at }, why)
  }
}

/** To a number or a name after g or k, or to a number alone. */
const reference_pattern =
  /\\(?:g(-?[0-9]+)|g\{(-?\w+)\}|k\{(\w+)\}|k<(\w+)>|k'(\w+)'|([1-9][0-9]*))/y
const escape_pattern = /\\(?:x\{[^}]*\}|x[^{}]{2}|[pP]\{[^}]*\}|[pP].|[0-7]{1,3}|[\s\S])/uy

function readEscape(parser: Parser): PatternNode {
  const { text, at } = parser
  const place = places[text.slice(at, at + 2)]
  if (place !== undefined) {
    parser.at += 2
    return { kind: 'place', place }
  }
  const found = matchAt(parser, reference_pattern)
  if (found !== undefined) {
    const to = found.slice(1).find((one) => one !== undefined) as string
    // As in PCRE, a longer number is an octal character while there are fewer groups.
    const is_octal = found[6] !== undefined && to.length > 1 && Number(to) > parser.groups_count
    if (!is_octal) return reference(parser, to, at)
    parser.at = at
  }
  return readSet(parser, escape_pattern, 'a "\\" stands alone')
}

const places: Readonly<Record<string, Place>> = {
  '\\A': 'text start',
  '\\z': 'text end',
  '\\Z': 'end',
  '\\b': 'edge',
  '\\B': 'no edge',
}

function reference({ flags, groups_count }: Parser, to: string, at: number): PatternNode {
  const is_relative = to.startsWith('-')
  const number = is_relative ? String(groups_count + 1 + Number(to)) : to
  return { kind: 'reference', to: number, in_any_case: flags.includes('i'), at }
}

const group_openings: Readonly<Record<string, (of: PatternNode, at: number) => PatternNode>> = {
  '(?:': (of) => of,
  '(?>': (of) => ({ kind: 'atomic', of }),
  '(?=': (of, at) => ({ kind: 'look', of, is_behind: false, is_negative: false, at }),
  '(?!': (of, at) => ({ kind: 'look', of, is_behind: false, is_negative: true, at }),
  '(?<=': (of, at) => ({ kind: 'look', of, is_behind: true, is_negative: false, at }),
  '(?<!': (of, at) => ({ kind: 'look', of, is_behind: true, is_negative: true, at }),
}

function readGroup(parser: Parser): PatternNode[] {
  const { at } = parser
  if (matchAt(parser, /\(\?#[^)]*\)/y) !== undefined) return []
  const named = matchAt(parser, /\(\?P=([A-Za-z_]\w*)\)/y)?.[1]
  if (named !== undefined) return [reference(parser, named, at)]
  const opening = matchAt(parser, /\(\?(?:[:>=!]|<[=!])/y)?.[0]
  if (opening !== undefined) {
    const make = group_openings[opening] as (of: PatternNode, at: number) => PatternNode
    return [make(readGroupBody(parser, at), at)]
  }
  const flags = matchAt(parser, /\(\?([imsU]*)(?:-([imsU]+))?([:)])/y)
  if (flags !== undefined) return readFlags(parser, flags, at)
  const opened = matchAt(parser, /\((?:\?P?<([A-Za-z_]\w*)>|\?'([A-Za-z_]\w*)'|(?!\?|\*))/y)
  if (opened === undefined) {
    throw mistake(parser, `${truncated(parser.text.slice(at, at + 4))}… is not taken`)
  }
  const number = ++parser.groups_count
  const name = opened[1] ?? opened[2]
  if (name !== undefined && parser.groups.has(name)) {
    throw mistake({ at }, `a second group ${truncated(name)}`)
  }
  for (const one of name === undefined ? [String(number)] : [String(number), name]) {
    parser.groups.set(one, number)
  }
  return [{ kind: 'group', number, of: readGroupBody(parser, at) }]
}

function readGroupBody(parser: Parser, at: number): PatternNode {
  const of = readAlternatives(parser)
  if (!skip(parser, ')')) throw mistake({ at }, 'missing ")" of the group')
  return of
}

/** `(?i)` for the rest of the group, `(?i:…)` for its own. */
function readFlags(
  parser: Parser,
  [, on = '', off = '', end]: RegExpExecArray,
  at: number,
): PatternNode[] {
  const before = parser.flags
  parser.flags = [...new Set(before + on)].filter((flag) => !off.includes(flag)).join('')
  if (end === ')') return []
  const of = readGroupBody(parser, at)
  parser.flags = before
  return [of]
}

const quantifier = /[*+?]|\{(?=[0-9]|,[0-9])([0-9]*)(?:(,)([0-9]*))?\}/y
const repeats_max = 1_000

function readRepeat(parser: Parser, of: PatternNode): PatternNode {
  const { at } = parser
  const found = matchAt(parser, quantifier)
  if (found === undefined) return of
  const [sign, from, comma, to] = found
  const min = sign === '+' ? 1 : Number(from ?? 0)
  const last = comma === undefined ? min : to === '' ? Infinity : Number(to)
  const max = from === undefined ? (sign === '?' ? 1 : Infinity) : last
  if (min > max) throw mistake({ at }, `${sign} repeats from more to less`)
  if (min > repeats_max || (max > repeats_max && max !== Infinity)) {
    throw mistake({ at }, `${sign} is more than ${repeats_max} times`)
  }
  const is_lazy = skip(parser, '?')
  const is_possessive = !is_lazy && skip(parser, '+')
  if (matchAt(parser, quantifier) !== undefined) throw mistake({ at }, 'a repeat of a repeat')
  const is_greedy = is_possessive || is_lazy === parser.flags.includes('U')
  const repeat: PatternNode = { kind: 'repeat', of, min, max, is_greedy }
  return is_possessive ? { kind: 'atomic', of: repeat } : repeat
}

function skip(parser: Parser, char: string): boolean {
  if (parser.text[parser.at] !== char) return false
  parser.at++
  return true
}
