/**
 * Reads what a definition says of the process itself (id, title, kind and status), and of its nodes
 * before their logics. Null and an empty text give the defaults of kind and status.
 */
import { isNumberToken, isObject, numberText, parseJson } from '../codec/json.ts'
import { isName } from '../codec/op.ts'
import type { Limits } from '../core/limits.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { nodes_max } from './definition-limits.ts'
import type { Graph, NodeKind, NodeName } from './graph.ts'
import { isAbsent, readWord } from './logics/members.ts'
import { expected, type MistakeReport, quoted, truncated } from './report.ts'

export type GraphLimits = Pick<Limits, 'node_id_chars_max' | 'conv_id_chars_max'>

export function readHead(
  definition: JsonObject,
  limits: GraphLimits,
  { mistakes, warnings }: { readonly mistakes: string[]; readonly warnings: string[] },
): Pick<Graph, 'conv_id' | 'title' | 'status' | 'kind'> {
  const { obj_type, obj_id, status } = definition
  const report: MistakeReport = { mistake: (text) => mistakes.push(`process: ${text}`) }
  if (!isAbsent(obj_type) && obj_type !== 1 && obj_type !== '1') {
    expected(report, 'obj_type', obj_type, '1')
  }
  const kind = readWord(definition, 'conv_type', ['process', 'state'], report)
  const title = readTitle(definition, report)
  const conv_id = convId(obj_id, limits, report)
  return { conv_id, title, status: statusOf(status, report, warnings), kind }
}

function convId(
  obj_id: JsonValue | undefined,
  limits: GraphLimits,
  report: MistakeReport,
): string | undefined {
  if (obj_id === undefined || obj_id === null) return undefined
  const is_number = typeof obj_id === 'number' || isNumberToken(obj_id)
  const text = is_number ? numberText(obj_id) : obj_id
  const is_id =
    typeof text === 'string' &&
    (!is_number || /^-?[0-9]+$/.test(text)) &&
    isName(text, limits.conv_id_chars_max)
  if (is_id) return text
  const wanted = `a whole number or a text of 1 to ${limits.conv_id_chars_max} characters`
  return expected(report, 'obj_id', obj_id, wanted)
}

/** Exports write `active`; the other spellings are of older exports. */
const active_words = ['active', 'actived']
const paused_words = ['paused', 'pause', 'inactive', 'blocked', 'debug']

/** Any other word, as `deleted`, pauses the process. */
function statusOf(
  status: JsonValue | undefined,
  report: MistakeReport,
  warnings: string[],
): Graph['status'] {
  if (isAbsent(status)) return 'active'
  const text = `status ${quoted(status)} is neither "active" nor "paused"`
  if (typeof status !== 'string') report.mistake(text)
  else if (active_words.includes(status)) return 'active'
  else if (!paused_words.includes(status)) {
    warnings.push(`process: ${text}: it is stored as paused`)
  }
  return 'paused'
}

function readTitle({ title }: JsonObject, report: MistakeReport): string {
  if (typeof title === 'string') return title
  if (title !== undefined && title !== null) expected(report, 'title', title, 'a text')
  return ''
}

/** By `obj_type`. Nodes of 4 answer their calls from a stub (logics/stub). */
export const node_kinds: readonly NodeKind[] = ['logic', 'start', 'end', 'escalation', 'logic']

/** What is read of all nodes before any logics are compiled, so that targets are known. */
export interface NodeHead {
  readonly id: string
  readonly kind: NodeKind
  readonly title: string
  readonly raw: JsonObject
}

/** Nodes that have an id, by their place in the list. */
export type Heads = ReadonlyMap<number, NodeHead>

export function readNodeHeads(
  scheme: JsonValue | undefined,
  limits: GraphLimits,
  mistakes: string[],
  mistaken_nodes: Map<string, NodeName>,
): Heads {
  const heads = new Map<number, NodeHead>()
  const list = listOfNodes(scheme)
  if (list === undefined) {
    mistakes.push('scheme: nodes was expected to be an array')
    return heads
  }
  if (list.length > nodes_max) {
    mistakes.push(`scheme: ${list.length} nodes are more than ${nodes_max}`)
    return heads
  }
  const taken = new Map<string, number>()
  for (const [at, raw] of list.entries()) {
    const found = mistakes.length
    const head = readNodeHead(at, raw, limits, mistakes)
    const other = taken.get(head?.id ?? '')
    if (head !== undefined && other !== undefined) {
      mistakes.push(`${placeOf(at, raw)}: id ${quoted(head.id)} is that of nodes[${other}] too`)
    } else if (head !== undefined) {
      taken.set(head.id, at)
      heads.set(at, head)
    }
    for (const text of mistakes.slice(found)) mistaken_nodes.set(text, nameOf(raw))
  }
  return heads
}

export function listOfNodes(scheme: JsonValue | undefined): readonly JsonValue[] | undefined {
  return isObject(scheme) && Array.isArray(scheme.nodes) ? scheme.nodes : undefined
}

function readNodeHead(
  at: number,
  raw: JsonValue,
  limits: GraphLimits,
  mistakes: string[],
): NodeHead | undefined {
  const place = placeOf(at, raw)
  const report: MistakeReport = { mistake: (text) => mistakes.push(`${place}: ${text}`) }
  if (!isObject(raw)) {
    report.mistake(`is ${quoted(raw)}, an object was expected`)
    return undefined
  }
  const { id, obj_type } = raw
  const kind = node_kinds[nodeType(obj_type) ?? -1]
  const is_id = typeof id === 'string' && isName(id, limits.node_id_chars_max)
  if (!is_id) expected(report, 'id', id, `a text of 1 to ${limits.node_id_chars_max} characters`)
  if (kind === undefined) expected(report, 'obj_type', obj_type, 'one of 0 1 2 3 4')
  const title = readTitle(raw, report)
  return is_id ? { id, kind: kind ?? 'logic', title, raw } : undefined
}

/** The `obj_type` of a node, which some editors write as text. */
export function nodeType(obj_type: JsonValue | undefined): number | undefined {
  const is_text = typeof obj_type === 'string' && /^[0-4]$/.test(obj_type)
  return is_text || typeof obj_type === 'number' ? Number(obj_type) : undefined
}

/** The `options` of a node, which most editors write as JSON text; undefined for other text. */
export function parsedOptions(options: JsonValue | undefined): JsonValue | undefined {
  if (typeof options !== 'string') return options
  try {
    return parseJson(options)
  } catch {
    return undefined
  }
}

export function nameOf(raw: JsonValue | undefined): NodeName {
  const { id, title } = isObject(raw) ? raw : {}
  return {
    ...(typeof id === 'string' ? { node_id: truncated(id) } : {}),
    ...(typeof title === 'string' ? { node_title: truncated(title) } : {}),
  }
}

/** `nodes[3] "Wait bank"`: the place with the node's title, or its id where it has none. */
export function placeOf(at: number, raw: JsonValue): string {
  const names = isObject(raw) ? [raw.title, raw.id] : []
  const name = names.find((text) => typeof text === 'string' && text !== '')
  return name === undefined ? `nodes[${at}]` : `nodes[${at}] ${quoted(name)}`
}
