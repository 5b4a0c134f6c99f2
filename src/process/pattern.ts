/**
 * Regular expressions of definitions, run on callers' text: linear in time, and bounded in the size
 * of the pattern, of what it compiles to and of the text. A pattern is searched for; `^` and `$`
 * anchor it.
 */
import { RE2JS } from 're2js'
import {
  pattern_chars_max,
  pattern_program_max,
  pattern_text_chars_max,
} from './definition-limits.ts'

/** Whether the pattern is found in a text. A text over the bound matches nothing. */
export type Pattern = (text: string) => boolean

/** The pattern, or what is wrong with its source. */
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
