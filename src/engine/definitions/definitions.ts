/**
 * Reads, compiles and hashes definitions before anything is stored. One mistake refuses the whole
 * import; all mistakes are reported at once.
 */
import { createHash } from 'node:crypto'
import { canonicalText } from '../../codec/doc-text.ts'
import { isObject, parseInSlices, setMember, stringifyJson } from '../../codec/json.ts'
import { docOfPlain } from '../../codec/plain-value.ts'
import { defined } from '../../core/defined.ts'
import { fault, type Mistake } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import type { Sliced } from '../../core/slices.ts'
import { compileInSlices } from '../../process/compile-process.ts'
import {
  definition_values_max,
  export_file_bytes_max,
  nodes_max,
} from '../../process/definition-limits.ts'
import type { DefinitionItem } from '../../process/export-file.ts'
import type { Graph } from '../../process/graph.ts'
import type { DbCallKinds } from '../../process/logic.ts'
import { idText } from '../../process/values.ts'
import { hideSecret } from '../../process/webhook-lock.ts'
import type { Handlers } from '../jobs/handlers.ts'

export interface NewVersion {
  readonly conv_id: string
  /** The source, as prefix of its mistakes. */
  readonly place: string
  readonly text: string
  readonly hash: string
  readonly graph: Graph
  /** The secret of its webhook's lock, which `text` does not have. */
  readonly lock_secret: string | undefined
  readonly warnings: readonly string[]
}

/** Reads JSON text or a plain value in slices. Throws `format_error` or `bad_definition`. */
export function* readJson(given: unknown, limits: Limits): Sliced<JsonValue> {
  const { nesting_max } = limits
  const bounds = { nesting_max, values_max: Number.MAX_SAFE_INTEGER }
  if (typeof given === 'string') return yield* parseInSlices(given, bounds, export_levels)
  if (typeof given !== 'object' || given === null) {
    throw badDefinition(['a definition is one JSON object'])
  }
  const { scheme } = given as { readonly scheme?: { readonly nodes?: unknown } }
  const nodes: unknown = scheme?.nodes
  if (!Array.isArray(nodes)) return yield* readPlain(given, '', nesting_max, export_file_bytes_max)
  let chars_left = export_file_bytes_max
  const read: JsonValue[] = []
  for (const [at, node] of nodes.slice(0, nodes_max + 1).entries()) {
    const is_object = typeof node === 'object' && node !== null
    const value = is_object ? node : { node }
    const made = yield* readPlain(value, `.scheme.nodes[${at}]`, nesting_max - 3, chars_left)
    read.push(is_object ? made : null)
    chars_left -= stringifyJson(made).length
  }
  const rest = { ...given, scheme: { ...scheme, nodes: [] } }
  const value = (yield* readPlain(rest, '', nesting_max, chars_left)) as JsonObject
  setMember(value.scheme as JsonObject, 'nodes', read)
  return value
}

/** `path` leads to the object. */
function* readPlain(
  given: object,
  path: string,
  nesting_max: number,
  chars_max: number,
): Sliced<JsonValue> {
  const bounds = {
    nesting_max,
    values_max: definition_values_max,
    chars_max: Math.max(0, chars_max),
  }
  const doc = docOfPlain(given, bounds)
  if (typeof doc === 'string') throw badDefinition([doc.replace('data', `data${path}`)])
  yield
  const parsed_bounds = { nesting_max, values_max: Number.MAX_SAFE_INTEGER }
  return yield* parseInSlices(doc.text, parsed_bounds, export_levels)
}

/** Folder, children, scheme, nodes and their members. */
const export_levels = 6

/** Compiles in slices. Mistakes name their places; ids must differ. */
export function* compileAll(
  items: readonly DefinitionItem[],
  limits: Limits,
  handlers: Pick<Handlers, 'mayRun'>,
  db_call: DbCallKinds | undefined,
): Sliced<{ versions: NewVersion[]; mistakes: Mistake[]; warnings: Mistake[] }> {
  const versions: NewVersion[] = []
  const mistakes: Mistake[] = []
  const all_warnings: Mistake[] = []
  const places = new Map<string, string>()
  for (const { definition, place } of items) {
    const lock_secret = hideSecret(definition)
    const compiled = yield* compileInSlices(definition, limits, handlers.mayRun, db_call)
    const { graph, warnings } = compiled
    const named = idText(definition.obj_id)
    const of = defined({ conv_id: named })
    for (const text of compiled.mistakes) {
      mistakes.push({ text: place + text, ...of, ...compiled.mistaken_nodes.get(text) })
    }
    for (const text of warnings) all_warnings.push({ text: place + text, ...of })
    if (graph === undefined) continue
    const { conv_id } = graph
    if (conv_id === undefined) {
      mistakes.push({ text: `${place}obj_id is missing, and no id was given` })
      continue
    }
    const other = places.get(conv_id)?.replace(/: $/, '')
    if (other !== undefined) {
      mistakes.push({ text: `${place}a second one of ${conv_id}, after ${other}`, conv_id })
    }
    places.set(conv_id, place)
    const text = yield* joined(printed(definition, stringifyJson))
    const hash = createHash('sha256')
    for (const piece of printed(definition, canonicalText, true)) {
      hash.update(piece)
      yield
    }
    versions.push({ conv_id, place, text, hash: hash.digest('hex'), graph, lock_secret, warnings })
  }
  return { versions, mistakes, warnings: all_warnings }
}

/** Text in pieces, one per node; keys in their order, or sorted. */
function* printed(
  value: JsonValue,
  print: (value: JsonValue) => string,
  is_sorted = false,
  levels = definition_levels,
): Generator<string> {
  if (levels > 0 && Array.isArray(value)) {
    for (const [at, one] of value.entries()) {
      yield at === 0 ? '[' : ','
      yield* printed(one, print, is_sorted, levels - 1)
    }
    yield value.length === 0 ? '[]' : ']'
  } else if (levels > 0 && isObject(value)) {
    const keys = is_sorted ? Object.keys(value).sort() : Object.keys(value)
    for (const [at, key] of keys.entries()) {
      yield `${at === 0 ? '{' : ','}${print(key)}:`
      yield* printed(value[key] as JsonValue, print, is_sorted, levels - 1)
    }
    yield keys.length === 0 ? '{}' : '}'
  } else yield print(value)
}

const definition_levels = 3

function* joined(pieces: Iterable<string>): Sliced<string> {
  const all: string[] = []
  for (const piece of pieces) {
    all.push(piece)
    yield
  }
  return all.join('')
}

/** The version of a definition that has been compiled. */
export function versionOf(conv_id: string, definition: JsonObject, graph: Graph): NewVersion {
  const made = { conv_id, place: '', text: stringifyJson(definition), hash: hashOf(definition) }
  return { ...made, graph, lock_secret: undefined, warnings: [] }
}

/** Equal for definitions that differ only in notation. */
export function hashOf(definition: JsonValue): string {
  return createHash('sha256').update(canonicalText(definition)).digest('hex')
}

/** Its text is the first mistake; `mistakes` has all. */
export function badDefinition(found: readonly (string | Mistake)[]): Error {
  const places = found.map((one) => (typeof one === 'string' ? { text: one } : one))
  const mistakes = places.map(({ text }) => text)
  const more = mistakes.length > 1 ? `, and ${mistakes.length - 1} more` : ''
  return fault('bad_definition', `${mistakes[0]}${more}`, { mistakes, places })
}
