/**
 * Limits on definitions: they bound the cost of compiling and running a definition by its length.
 * They are no options, so every installation accepts the same definitions.
 */
import { dataBounds } from '../codec/json.ts'
import { limitTable } from '../core/limits.ts'

export const nodes_max = 10_000
/** Logics, and semaphors, of one node: a task's record holds the number of its logic. */
export const node_parts_max = 1_000
/** Tasks, seconds and bursts of a limit. */
export const limit_count_max = 1_000_000
/** Characters of the key of a limit, and of a value of it. */
export const limit_key_chars_max = 128
/** Nesting of templates, functions and parentheses. */
export const template_depth_max = 32
/** Index of an array in the key of an assignment. */
export const key_index_max = 100
/** Characters of a pattern, and instructions of the program it compiles to. */
export const pattern_chars_max = 1_000
export const pattern_program_max = 2_000
/** Characters a pattern is run on; a longer text matches nothing. */
export const pattern_text_chars_max = 100_000
/** Steps of one logic: what its funs, patterns and digests compute. About 0.1 s. */
export const steps_max = 1_000_000
/** Characters of a process id, node id or ref that a definition or a template gives. */
export const id_chars_max = limitTable.ref_chars_max.value
/** Characters of an alias: with its `@` it is no longer than a conv_id. */
export const alias_chars_max = limitTable.conv_id_chars_max.max - 1
/** Keys and values of definitions that are given as values, not as text. */
export const definition_values_max = 1_000_000
/** Files of one import, bytes of one of them, and of all of them. */
export const export_files_max = 10_000
export const export_file_bytes_max = 16 * 1024 * 1024
export const export_bytes_max = 32 * 1024 * 1024
/** Entries of an archive, or of a folder and what is in it, also those that are not read. */
export const export_entries_max = 100_000
/** Levels of folders in a folder. */
export const export_depth_max = 32
/** Archives in one another: an export of a stage is packed twice or more. */
export const export_zips_max = 4
/** How many times its packed size a file of an archive may take, unless it is small. */
export const export_ratio_max = 250
/** Attempts of a call that asks for more than one, and the pause after the first. */
export const retry_attempts_max = 100
export const retry_backoff_ms_max = 300_000
/** The last second that a JavaScript date can represent. */
export const unix_seconds_max = 8.64e12

const data_bounds = dataBounds({
  nesting_max: limitTable.nesting_max.value,
  values_max: limitTable.body_values_max.value,
})

/** Bounds of one value of a task's data, which is nested one level deeper than the data itself. */
export const value_bounds = {
  nesting_max: data_bounds.nesting_max - 1,
  values_max: limitTable.body_values_max.value,
}

/**
 * The steps of one logic: its funs, patterns and digests count what the data makes them compute.
 * Spent steps also count as moves of the transaction.
 */
export interface Steps {
  /** Below zero once more was asked for. */
  left: number
}

export const steps_passed = `more than ${steps_max} steps`

/** Takes steps; false where there are not so many left. */
export function takeSteps(steps: Steps, count: number): boolean {
  steps.left -= count
  return steps.left >= 0
}
