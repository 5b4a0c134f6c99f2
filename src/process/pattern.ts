/**
 * Regular expressions of definitions, run on the texts of callers. RE2 runs them in linear time;
 * what it does not take (look-ahead, back-references, atomic groups, possessive repeats) runs in
 * our backtracking engine in bounded steps. Pattern, program and text have limits. A pattern is
 * searched for anywhere; `$` is the end of the text or before its last line break, as in PCRE: RE2
 * lacks that, so such a text is also searched without the break, which finds the same except for
 * `$\n`.
 *
 * Compiled patterns are held in bounded memory: a pattern compiles to up to a hundred thousand
 * times its source, so the oldest are dropped and compiled again when needed. Bytes are estimates.
 */
import { RE2JS } from 're2js'
import { isFault } from '../core/faults.ts'
import { parsePattern } from './backtracking/parse.ts'
import { compileProgram } from './backtracking/program.ts'
import { search } from './backtracking/search.ts'
import {
  pattern_chars_max,
  pattern_program_max,
  pattern_text_chars_max,
  type Steps,
  takeSteps,
} from './definition-limits.ts'

/**
 * Whether the pattern is found in a text; false for a text over the limit, undefined where the
 * search takes more steps than are left.
 */
export type Pattern = (text: string, steps: Steps) => boolean | undefined

type Mistake = { readonly mistake: string }

/** Compiles a pattern, or says what is wrong with it. */
export function compilePattern(source: string): Pattern | Mistake {
  const first = compiledPattern(source)
  return 'mistake' in first ? first : first.run
}

/** The same for a pattern that is run often: how many are held in memory is bounded. */
export function keepPattern(source: string): Pattern | Mistake {
  const first = compiledPattern(source)
  if ('mistake' in first) return first
  const slot = emptySlot<Pattern>()
  // What has compiled compiles again.
  const compile = () => compiledPattern(source) as Compiled<Pattern>
  return (text, steps) => compiledIn(slot, compile, text.length)(text, steps)
}

/** Estimates, of RE2JS. */
const instruction_bytes = 100
const set_bytes = 4_500
/** Of a state that the automaton may make at a character, for each instruction. */
const state_bytes = 4

function compiledPattern(source: string): Compiled<Pattern> | Mistake {
  if (source.length > pattern_chars_max) {
    return { mistake: `the pattern is longer than ${pattern_chars_max} characters` }
  }
  const linear = linearPattern(source)
  if (linear === undefined) return backtrackingPattern(source)
  const size = linear.programSize()
  if (size > pattern_program_max) return { mistake: 'the pattern repeats too much' }
  // At worst each instruction is looked at for each character. With a look-behind that is a step:
  // there is no automaton to run.
  const has_behind = /\(\?<[=!]/.test(source)
  const char_steps = has_behind ? size : size / 8
  const may_end_before_break = source.includes('$') && !source.includes('\\z')
  const run: Pattern = (text, steps) => {
    if (text.length > pattern_text_chars_max) return false
    if (!takeSteps(steps, text.length * char_steps)) return undefined
    if (linear.test(text)) return true
    return may_end_before_break && text.endsWith('\n') && linear.test(text.slice(0, -1))
  }
  return { run, bytes: instruction_bytes * size, char_bytes: has_behind ? 0 : state_bytes * size }
}

/** Undefined where RE2 does not take the pattern. */
function linearPattern(source: string): RE2JS | undefined {
  try {
    return RE2JS.compile(source, RE2JS.LOOKBEHINDS)
  } catch {
    return undefined
  }
}

function backtrackingPattern(source: string): Compiled<Pattern> | Mistake {
  try {
    const parsed = parsePattern(source)
    const program = compileProgram(parsed)
    const run: Pattern = (text, steps) =>
      text.length <= pattern_text_chars_max && search(program, text, steps)
    const bytes = instruction_bytes * program.instructions.length + set_bytes * parsed.sets.size
    return { run, bytes, char_bytes: 0 }
  } catch (error) {
    if (!isFault(error) || error.code !== 'bad_definition') throw error
    return { mistake: `the pattern cannot be run: ${error.message}` }
  }
}

export function literalPattern(text: string): string {
  return RE2JS.quote(text)
}

export interface Compiled<Run> {
  readonly run: Run
  readonly bytes: number
  /** By which it grows with each character that it is run on. */
  readonly char_bytes: number
}

export interface Slot<Run> {
  compiled: Compiled<Run> | undefined
  bytes: number
}

const kept_bytes_max = 64 * 1024 * 1024
const slot_bytes_max = 2 * 1024 * 1024

const kept = new Set<Slot<unknown>>()
let kept_bytes = 0

export function emptySlot<Run>(): Slot<Run> {
  return { compiled: undefined, bytes: 0 }
}

/** What the slot holds, else what `compile` makes, for one run on so many characters. */
export function compiledIn<Run>(
  slot: Slot<Run>,
  compile: () => Compiled<Run>,
  text_chars: number,
): Run {
  const compiled = slot.compiled ?? compile()
  const more = compiled.char_bytes * text_chars + (slot.compiled ? 0 : compiled.bytes)
  slot.compiled = compiled
  slot.bytes += more
  kept_bytes += more
  kept.add(slot)
  if (slot.bytes > slot_bytes_max) drop(slot)
  for (const oldest of kept) {
    if (kept_bytes <= kept_bytes_max) break
    drop(oldest)
  }
  return compiled.run
}

function drop(slot: Slot<unknown>): void {
  kept.delete(slot)
  kept_bytes -= slot.bytes
  slot.compiled = undefined
  slot.bytes = 0
}
