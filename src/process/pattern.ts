/**
 * Regular expressions of definitions, run on callers' texts by RE2: linear in time, with limits on
 * the pattern's length, on its compiled program and on the text. A pattern is searched for anywhere
 * in the text unless `^` and `$` anchor it.
 */
import { RE2JS } from 're2js'
import {
  pattern_chars_max,
  pattern_program_max,
  pattern_text_chars_max,
} from './definition-limits.ts'

/** Whether the pattern is found in a text; false for a text over the limit. */
export type Pattern = (text: string) => boolean

/** Compiles a pattern, or says what is wrong with it. */
export function compilePattern(source: string): Pattern | { readonly mistake: string } {
  if (source.length > pattern_chars_max) {
    return { mistake: `the pattern is longer than ${pattern_chars_max} characters` }
  }
  try {
    const compiled = RE2JS.compile(source)
    if (compiled.programSize() > pattern_program_max) {
      return { mistake: 'the pattern repeats too much' }
    }
    return (text) => text.length <= pattern_text_chars_max && compiled.test(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { mistake: `the pattern cannot be run: ${why.replace('error parsing regexp: ', '')}` }
  }
}

/** The source of a pattern that finds exactly this text. */
export function literalPattern(text: string): string {
  return RE2JS.quote(text)
}
