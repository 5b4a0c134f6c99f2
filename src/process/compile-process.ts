/**
 * Compiles a process: reads its definition, names every mistake with its place, writes nothing and
 * throws at nothing. Members that are not known are ignored. With no mistakes there is a graph
 * whose logics are closures: running it reads no definition again.
 */
import { isNumberToken, isObject, numberText } from '../codec/json.ts'
import type { Limits } from '../core/limits.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { compileNode, type IsHandled, type NodeHead, node_kinds } from './compile-node.ts'
import { compileParams } from './compile-params.ts'
import { nodes_max } from './definition-limits.ts'
import type { CompileResult, Graph, GraphNode } from './graph.ts'
import type { Report } from './report.ts'
import { quoted } from './report.ts'

export type GraphLimits = Pick<Limits, 'node_id_chars_max' | 'conv_id_chars_max'>

/** What is collected on the way. */
interface Notes {
  readonly mistakes: string[]
  readonly warnings: string[]
}

/**
 * Compiles one process object of the format. Never throws. A logic type that is not run here is a
 * mistake unless the embedder `isHandled` it.
 */
export function compileProcess(
  definition: JsonObject,
  limits: GraphLimits,
  isHandled: IsHandled = () => false,
): CompileResult {
  const notes: Notes = { mistakes: [], warnings: [] }
  const { mistakes, warnings } = notes
  const head = readHead(definition, limits, mistakes)
  const params = compileParams(definition.params, (text) => mistakes.push(text))
  const heads = readNodes(definition.scheme, limits, mistakes)
  const leads = new Map([...heads.values()].map(({ id }) => [id, new Set<string>()]))
  const nodes = new Map<string, GraphNode>()
  const reaches = new Set<string>()
  for (const [at, node] of heads) {
    const report = reportOf(`${placeOf(at, node.raw)}: `, node.id, leads, reaches, notes)
    nodes.set(node.id, compileNode(node, report, isHandled))
  }
  const starts = [...heads].filter(([, { kind }]) => kind === 'start')
  const start_id = starts[0]?.[1].id
  if (starts.length > 1) {
    const places = starts.map(([at, { raw }]) => placeOf(at, raw)).join(', ')
    mistakes.push(`scheme: one start was expected, there are ${starts.length}: ${places}`)
  }
  if (start_id === undefined) {
    mistakes.push('scheme: there is no start (a node with obj_type 1)')
    return { graph: undefined, mistakes, warnings }
  }
  warnOfLost(heads, leads, start_id, warnings)
  if (mistakes.length > 0) return { graph: undefined, mistakes, warnings }
  const graph: Graph = {
    ...head,
    start_id,
    nodes,
    target_conv_ids: [...reaches],
    checkParams: params.check,
    masked: params.masked,
  }
  return { graph, mistakes, warnings }
}

type Heads = ReadonlyMap<number, NodeHead>

function readHead(
  definition: JsonObject,
  limits: GraphLimits,
  mistakes: string[],
): Pick<Graph, 'conv_id' | 'title' | 'status' | 'kind'> {
  const { obj_type, conv_type, title } = definition
  if (obj_type !== undefined && obj_type !== 1) {
    mistakes.push(`process: obj_type is ${quoted(obj_type)}, 1 was expected`)
  }
  if (conv_type !== undefined && conv_type !== 'process' && conv_type !== 'state') {
    mistakes.push(`process: conv_type ${quoted(conv_type)} is neither "process" nor "state"`)
  }
  const has_title = title !== undefined && title !== null
  if (has_title && typeof title !== 'string') {
    mistakes.push(`process: title is ${quoted(title)}, a text was expected`)
  }
  return {
    conv_id: convId(definition.obj_id, limits, mistakes),
    title: typeof title === 'string' ? title : '',
    status: statusOf(definition.status, mistakes),
    kind: conv_type === 'state' ? 'state' : 'process',
  }
}

function convId(
  obj_id: JsonValue | undefined,
  limits: GraphLimits,
  mistakes: string[],
): string | undefined {
  if (obj_id === undefined || obj_id === null) return undefined
  const is_number = typeof obj_id === 'number' || isNumberToken(obj_id)
  const text = is_number ? numberText(obj_id) : obj_id
  const is_id =
    typeof text === 'string' &&
    (is_number ? /^-?[0-9]+$/.test(text) : isIdText(text)) &&
    isWithin(text, limits.conv_id_chars_max)
  if (is_id) return text
  const wanted = `a whole number or a text of 1 to ${limits.conv_id_chars_max} characters`
  mistakes.push(`process: obj_id is ${quoted(obj_id)}, ${wanted} was expected`)
  return undefined
}

/** Exports say `active`; the others are how paused ones are spelled. */
const statuses: Readonly<Record<string, Graph['status']>> = {
  active: 'active',
  actived: 'active',
  paused: 'paused',
  pause: 'paused',
  inactive: 'paused',
  blocked: 'paused',
  debug: 'paused',
}

function statusOf(status: JsonValue | undefined, mistakes: string[]): Graph['status'] {
  if (status === undefined || status === null) return 'active'
  const known =
    typeof status === 'string' && Object.hasOwn(statuses, status) ? statuses[status] : undefined
  if (known === undefined) {
    mistakes.push(`process: status ${quoted(status)} is neither "active" nor "paused"`)
  }
  return known ?? 'active'
}

/** The nodes that have an id and a kind, by their place in the list. */
function readNodes(scheme: JsonValue | undefined, limits: GraphLimits, mistakes: string[]): Heads {
  const heads = new Map<number, NodeHead>()
  const list = isObject(scheme) ? scheme.nodes : undefined
  if (!Array.isArray(list)) {
    mistakes.push('scheme: nodes was expected to be an array')
    return heads
  }
  if (list.length > nodes_max) {
    mistakes.push(`scheme: ${list.length} nodes are more than ${nodes_max}`)
    return heads
  }
  const taken = new Map<string, number>()
  for (const [at, raw] of list.entries()) {
    const head = readNodeHead(at, raw, limits, mistakes)
    if (head === undefined) continue
    const other = taken.get(head.id)
    if (other === undefined) {
      taken.set(head.id, at)
      heads.set(at, head)
    } else
      mistakes.push(`${placeOf(at, raw)}: id ${quoted(head.id)} is that of nodes[${other}] too`)
  }
  return heads
}

function readNodeHead(
  at: number,
  raw: JsonValue,
  limits: GraphLimits,
  mistakes: string[],
): NodeHead | undefined {
  const place = placeOf(at, raw)
  if (!isObject(raw)) {
    mistakes.push(`${place}: is ${quoted(raw)}, an object was expected`)
    return undefined
  }
  const { id, title } = raw
  const kind = typeof raw.obj_type === 'number' ? node_kinds[raw.obj_type] : undefined
  const is_id = typeof id === 'string' && isIdText(id) && isWithin(id, limits.node_id_chars_max)
  if (!is_id) {
    const wanted = `a text of 1 to ${limits.node_id_chars_max} characters`
    mistakes.push(`${place}: id is ${quoted(id)}, ${wanted} was expected`)
  }
  if (kind === undefined) {
    mistakes.push(`${place}: obj_type is ${quoted(raw.obj_type)}, one of 0 1 2 3 4 was expected`)
  }
  if (title !== undefined && title !== null && typeof title !== 'string') {
    mistakes.push(`${place}: title is ${quoted(title)}, a text was expected`)
  }
  if (!is_id) return undefined
  return { id, kind: kind ?? 'logic', title: typeof title === 'string' ? title : '', raw }
}

function reportOf(
  place: string,
  id: string,
  leads: ReadonlyMap<string, Set<string>>,
  reaches: Set<string>,
  notes: Notes,
): Report {
  return {
    mistake: (text) => notes.mistakes.push(place + text),
    warning: (text) => notes.warnings.push(place + text),
    targetProcess: (conv_id) => reaches.add(conv_id),
    targetNode(member, to_node_id) {
      if (typeof to_node_id === 'string' && leads.has(to_node_id)) {
        leads.get(id)?.add(to_node_id)
        return to_node_id
      }
      notes.mistakes.push(`${place}${member} ${quoted(to_node_id)} is no node`)
      return undefined
    },
  }
}

function warnOfLost(
  heads: Heads,
  leads: ReadonlyMap<string, ReadonlySet<string>>,
  start_id: string,
  warnings: string[],
): void {
  const reached = new Set([start_id])
  for (const id of reached) for (const to of leads.get(id) ?? []) reached.add(to)
  for (const [at, { id, raw }] of heads) {
    if (!reached.has(id)) warnings.push(`${placeOf(at, raw)}: nothing leads here from the start`)
  }
}

/** `nodes[3] "Wait bank"`: by title, else by id. */
function placeOf(at: number, raw: JsonValue): string {
  const names = isObject(raw) ? [raw.title, raw.id] : []
  const name = names.find((text) => typeof text === 'string' && text !== '')
  return name === undefined ? `nodes[${at}]` : `nodes[${at}] ${quoted(name)}`
}

function isIdText(text: string): boolean {
  return text !== '' && text.isWellFormed() && !/\p{Cc}/u.test(text)
}

function isWithin(text: string, chars_max: number): boolean {
  return text.length <= 2 * chars_max && [...text].length <= chars_max
}
