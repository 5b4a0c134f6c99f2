/**
 * Compiles a definition to a graph. Every mistake is reported with its location; the compiler
 * writes nothing and never throws. Unknown members are ignored. The logics of a graph are closures,
 * so running it parses no definition again.
 */
import { isNumberToken, isObject, numberText } from '../codec/json.ts'
import { isName } from '../codec/op.ts'
import type { Limits } from '../core/limits.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import {
  compileNode,
  type HandlerRules,
  type IsHandled,
  type NodeHead,
  node_kinds,
} from './compile-node.ts'
import { compileParams } from './compile-params.ts'
import { nodes_max } from './definition-limits.ts'
import type { CompileResult, Graph, GraphNode } from './graph.ts'
import type { Report } from './report.ts'
import { quoted } from './report.ts'

export type GraphLimits = Pick<Limits, 'node_id_chars_max' | 'conv_id_chars_max'>

/** What the compiler collects over all nodes. */
interface Findings {
  readonly mistakes: string[]
  readonly warnings: string[]
  /** Target nodes of each node, by node id. */
  readonly targets: ReadonlyMap<string, Set<string>>
  readonly target_conv_ids: Set<string>
  readonly variables: Set<string>
}

/**
 * Compiles one process object of the process format. A logic type that this program does not run is
 * a mistake where a task can reach its node, and warned of where none can, unless `isHandled` says
 * that the embedder has a handler for it.
 */
export function compileProcess(
  definition: JsonObject,
  limits: GraphLimits,
  isHandled: IsHandled = () => false,
): CompileResult {
  const mistakes: string[] = []
  const warnings: string[] = []
  const process = readProcess(definition, limits, mistakes)
  const params = compileParams(definition.params, (text) => mistakes.push(text))
  const heads = readNodeHeads(definition.scheme, limits, mistakes)
  const targets = new Map([...heads.values()].map(({ id }) => [id, new Set<string>()]))
  const target_conv_ids = new Set<string>()
  const variables = new Set<string>()
  const findings: Findings = { mistakes, warnings, targets, target_conv_ids, variables }
  const nodes = new Map<string, GraphNode>()
  const reachable = new Set<string>()
  const not_run: { id: string; text: string; handler_type: string | undefined }[] = []
  for (const [at, node] of heads) {
    const { id } = node
    const place = `${placeOf(at, node.raw)}: `
    const rules: HandlerRules = {
      isHandled,
      notRun: (text, handler_type) => not_run.push({ id, text: place + text, handler_type }),
      isReachable: () => reachable.has(id),
    }
    nodes.set(id, compileNode(node, nodeReport(place, id, findings), rules))
  }
  const starts = [...heads].filter(([, { kind }]) => kind === 'start')
  const start_id = starts[0]?.[1].id
  if (starts.length > 1) {
    const places = starts.map(([at, { raw }]) => placeOf(at, raw)).join(', ')
    mistakes.push(`scheme: one start was expected, there are ${starts.length}: ${places}`)
  }
  const is_draft = listOfNodes(definition.scheme)?.length === 0
  if (start_id === undefined && !is_draft) {
    mistakes.push('scheme: there is no start (a node with obj_type 1)')
    return { graph: undefined, mistakes, warnings }
  }
  // By any member of a logic or a semaphor that names a node.
  if (start_id !== undefined) reachable.add(start_id)
  for (const id of reachable) for (const to of targets.get(id) ?? []) reachable.add(to)
  for (const { id, text } of not_run) {
    if (reachable.has(id)) mistakes.push(text)
    else warnings.push(`${text}, and a task that is moved here fails`)
  }
  for (const [at, { id, raw }] of heads) {
    if (!reachable.has(id)) warnings.push(`${placeOf(at, raw)}: nothing leads here from the start`)
  }
  if (is_draft) warnings.push('scheme: there are no nodes, so it is stored as a draft')
  if (mistakes.length > 0) return { graph: undefined, mistakes, warnings }
  const graph: Graph = {
    ...process,
    start_id: start_id ?? '',
    nodes,
    target_conv_ids: [...target_conv_ids],
    variables: [...variables],
    missing_handlers: [...new Set(not_run.flatMap(({ handler_type }) => handler_type ?? []))],
    checkParams: params.check,
    masked: params.masked,
  }
  return { graph, mistakes, warnings }
}

/** Nodes that have an id, by their place in the list. */
type Heads = ReadonlyMap<number, NodeHead>

function readProcess(
  definition: JsonObject,
  limits: GraphLimits,
  mistakes: string[],
): Pick<Graph, 'conv_id' | 'title' | 'status' | 'kind'> {
  const { obj_type, conv_type } = definition
  if (obj_type !== undefined && obj_type !== 1) {
    mistakes.push(`process: obj_type is ${quoted(obj_type)}, 1 was expected`)
  }
  if (conv_type !== undefined && conv_type !== 'process' && conv_type !== 'state') {
    mistakes.push(`process: conv_type ${quoted(conv_type)} is neither "process" nor "state"`)
  }
  const title = readTitle(definition, 'process', mistakes)
  return {
    conv_id: convId(definition.obj_id, limits, mistakes),
    title,
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
    (!is_number || /^-?[0-9]+$/.test(text)) &&
    isName(text, limits.conv_id_chars_max)
  if (is_id) return text
  const wanted = `a whole number or a text of 1 to ${limits.conv_id_chars_max} characters`
  mistakes.push(`process: obj_id is ${quoted(obj_id)}, ${wanted} was expected`)
  return undefined
}

/** Exports write `active`; the other spellings are of older exports. */
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

function readNodeHeads(
  scheme: JsonValue | undefined,
  limits: GraphLimits,
  mistakes: string[],
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
    const head = readNodeHead(at, raw, limits, mistakes)
    if (head === undefined) continue
    const other = taken.get(head.id)
    if (other !== undefined) {
      mistakes.push(`${placeOf(at, raw)}: id ${quoted(head.id)} is that of nodes[${other}] too`)
      continue
    }
    taken.set(head.id, at)
    heads.set(at, head)
  }
  return heads
}

function listOfNodes(scheme: JsonValue | undefined): readonly JsonValue[] | undefined {
  return isObject(scheme) && Array.isArray(scheme.nodes) ? scheme.nodes : undefined
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
  const { id } = raw
  const kind = typeof raw.obj_type === 'number' ? node_kinds[raw.obj_type] : undefined
  const is_id = typeof id === 'string' && isName(id, limits.node_id_chars_max)
  if (!is_id) {
    const wanted = `a text of 1 to ${limits.node_id_chars_max} characters`
    mistakes.push(`${place}: id is ${quoted(id)}, ${wanted} was expected`)
  }
  if (kind === undefined) {
    mistakes.push(`${place}: obj_type is ${quoted(raw.obj_type)}, one of 0 1 2 3 4 was expected`)
  }
  const title = readTitle(raw, place, mistakes)
  return is_id ? { id, kind: kind ?? 'logic', title, raw } : undefined
}

function readTitle({ title }: JsonObject, place: string, mistakes: string[]): string {
  if (typeof title === 'string') return title
  if (title !== undefined && title !== null) {
    mistakes.push(`${place}: title is ${quoted(title)}, a text was expected`)
  }
  return ''
}

function nodeReport(place: string, id: string, findings: Findings): Report {
  const { mistakes, warnings, targets, target_conv_ids, variables } = findings
  return {
    mistake: (text) => mistakes.push(place + text),
    warning: (text) => warnings.push(place + text),
    targetProcess: (conv_id) => target_conv_ids.add(conv_id),
    variable: (name) => variables.add(name),
    targetNode(member, to_node_id) {
      if (typeof to_node_id === 'string' && targets.has(to_node_id)) {
        targets.get(id)?.add(to_node_id)
        return to_node_id
      }
      mistakes.push(`${place}${member} ${quoted(to_node_id)} is no node`)
      return undefined
    },
  }
}

/** `nodes[3] "Wait bank"`: the place with the node's title, or its id where it has none. */
function placeOf(at: number, raw: JsonValue): string {
  const names = isObject(raw) ? [raw.title, raw.id] : []
  const name = names.find((text) => typeof text === 'string' && text !== '')
  return name === undefined ? `nodes[${at}]` : `nodes[${at}] ${quoted(name)}`
}
