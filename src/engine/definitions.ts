/**
 * Reads, compiles and hashes definitions before anything is stored. One mistake refuses all
 * definitions of an import, and all mistakes are named at once.
 */
import { createHash } from 'node:crypto'
import { canonicalText } from '../codec/doc-text.ts'
import { parseJson, stringifyJson } from '../codec/json.ts'
import { docOfPlain } from '../codec/plain-value.ts'
import { fault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { compileProcess } from '../process/compile-process.ts'
import type { Graph } from '../process/graph.ts'

/** A compiled definition, ready to be stored. */
export interface NewVersion {
  readonly conv_id: string
  readonly text: string
  readonly hash: string
  readonly graph: Graph
  readonly warnings: readonly string[]
}

/** A definition and its number in its file, from 1. */
export interface NumberedDefinition {
  readonly definition: JsonObject
  readonly at: number
}

/** JSON text, or a plain value, as JSON. Throws `format_error` or `bad_definition`. */
export function readJson(given: unknown, limits: Limits): JsonValue {
  const bounds = { nesting_max: limits.nesting_max, values_max: Number.MAX_SAFE_INTEGER }
  if (typeof given === 'string') return parseJson(given, bounds)
  if (typeof given !== 'object' || given === null) {
    throw badDefinition(['a definition is one JSON object'])
  }
  const doc = docOfPlain(given, limits.nesting_max)
  if (typeof doc === 'string') throw badDefinition([doc])
  return parseJson(doc.text, bounds)
}

/**
 * Compiles definitions of one file. If there are several, each mistake names its definition, and
 * every definition needs an id of its own.
 */
export function compileAll(
  given: readonly NumberedDefinition[],
  given_id: string | number | undefined,
  limits: Limits,
  isHandled: (type: string) => boolean,
): { versions: NewVersion[]; mistakes: string[] } {
  const versions: NewVersion[] = []
  const mistakes: string[] = []
  const is_one = given.length === 1
  if (!is_one && given_id !== undefined) {
    mistakes.push('the file holds several definitions, so none can be given an id')
  }
  for (const { definition: value, at } of given) {
    const compiled = compileProcess(value, limits, isHandled)
    const { graph, warnings } = compiled
    const location = is_one ? '' : `definition ${at}: `
    for (const mistake of compiled.mistakes) mistakes.push(location + mistake)
    if (graph === undefined) continue
    const conv_id = String(given_id ?? graph.conv_id ?? '')
    if (versions.some((other) => other.conv_id === conv_id)) {
      mistakes.push(`${location}a second one of ${conv_id}`)
    }
    if (conv_id === '') mistakes.push(`${location}obj_id is missing, and no id was given`)
    const text = stringifyJson(value)
    const hash = createHash('sha256').update(canonicalText(value)).digest('hex')
    versions.push({ conv_id, text, hash, graph, warnings })
  }
  return { versions, mistakes }
}

/** A fault whose text is the first mistake; `mistakes` has all. */
export function badDefinition(mistakes: readonly string[]): Error {
  const more = mistakes.length > 1 ? `, and ${mistakes.length - 1} more` : ''
  return fault('bad_definition', `${mistakes[0]}${more}`, { mistakes })
}
