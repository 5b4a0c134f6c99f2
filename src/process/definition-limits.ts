/**
 * What bounds a definition, besides the table of limits: these hold when a process is compiled, so
 * that no definition, however made, costs more than its length. They are no options: a definition
 * that one installation takes, another takes too.
 */
import { dataBounds } from '../codec/json.ts'
import { limitTable } from '../core/limits.ts'

/** Nodes of one process. */
export const nodes_max = 10_000
/** Logics, and semaphors, of one node: their number is part of a task's record. */
export const node_parts_max = 1_000
/** Templates, functions and parentheses inside each other. */
export const template_depth_max = 32
/** Characters of a pattern, and steps of the program it compiles to. */
export const pattern_chars_max = 1_000
export const pattern_program_max = 2_000
/** Characters a pattern is run on; a longer text matches nothing. */
export const pattern_text_chars_max = 100_000
/** Characters of a process's or a node's id, or of a ref, that a definition or template gives. */
export const name_chars_max = limitTable.ref_chars_max.value
/** The last second a date can tell. */
export const unix_seconds_max = 8.64e12

/** What a value of a task's data may be: one level below the data object. */
export const value_bounds = {
  nesting_max:
    dataBounds({
      nesting_max: limitTable.nesting_max.value,
      values_max: limitTable.body_values_max.value,
    }).nesting_max - 1,
  values_max: limitTable.body_values_max.value,
}
