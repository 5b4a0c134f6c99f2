/**
 * Regular expressions of definitions, run on callers' texts. RE2 runs them in linear time, also
 * with look-behind. What it does not take, look-ahead, back-references, atomic groups and
 * possessive repeats, runs in a backtracking engine (the folder backtracking), whose steps are
 * limited. There are limits on the pattern's length, on its compiled program and on the text. A
 * pattern is searched for anywhere in the text unless `^` and `$` anchor it, and as in PCRE `$` is
 * the end of the text or before its last line break. RE2 has no such place: there a text that ends
 * with a line break is also searched without it, which finds the same, except for a pattern that
 * goes on with that line break (`$\n`).
 *
 * No library was found for the second engine: those of PCRE and Oniguruma for WebAssembly are not
 * kept or give no limit of steps, and are loaded asynchronously.
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
} from './definition-limits.ts'
import { type Steps, takeSteps } from './steps.ts'

/**
 * Whether the pattern is found in a text; false for a text over the limit, undefined where the
 * search takes more steps than are left.
 */
export type Pattern = (text: string, steps: Steps) => boolean | undefined

/** Compiles a pattern, or says what is wrong with it. */
export function compilePattern(source: string): Pattern | { readonly mistake: string } {
  if (source.length > pattern_chars_max) {
    return { mistake: `the pattern is longer than ${pattern_chars_max} characters` }
  }
  const linear = linearPattern(source)
  if (linear === undefined) return backtrackingPattern(source)
  const size = linear.programSize()
  if (size > pattern_program_max) return { mistake: 'the pattern repeats too much' }
  // At worst each instruction is looked at for each character. With a look-behind that is a step:
  // there is no automaton to run.
  const char_steps = /\(\?<[=!]/.test(source) ? size : size / 16
  const may_end_before_break = source.includes('$') && !source.includes('\\z')
  return (text, steps) => {
    if (text.length > pattern_text_chars_max) return false
    if (!takeSteps(steps, text.length * char_steps)) return undefined
    if (linear.test(text)) return true
    return may_end_before_break && text.endsWith('\n') && linear.test(text.slice(0, -1))
  }
}

/** Undefined where RE2 does not take the pattern. */
function linearPattern(source: string): RE2JS | undefined {
  try {
    return RE2JS.compile(source, RE2JS.LOOKBEHINDS)
  } catch {
    return undefined
  }
}

function backtrackingPattern(source: string): Pattern | { readonly mistake: string } {
  try {
    const program = compileProgram(parsePattern(source))
    return (text, steps) => text.length <= pattern_text_chars_max && search(program, text, steps)
  } catch (error) {
    if (!isFault(error) || error.code !== 'bad_definition') throw error
    return { mistake: `the pattern cannot be run: ${error.message}` }
  }
}

/** The source of a pattern that finds exactly this text. */
export function literalPattern(text: string): string {
  return RE2JS.quote(text)
}
