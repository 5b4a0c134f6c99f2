/**
 * Compiles a definition to a graph. Every mistake is reported with its place; the compiler writes
 * nothing and never throws. Unknown members are ignored. Logics are closures: running parses
 * nothing.
 */
import { isObject } from '../codec/json.ts'
import { isName } from '../codec/op.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { atOnce, type Sliced } from '../core/slices.ts'
import { type GraphLimits, readHead, readTitle } from './compile-head.ts'
import {
  brokenNode,
  compileNode,
  type HandlerRules,
  type NodeHead,
  node_kinds,
} from './compile-node.ts'
import { compileParams } from './compile-params.ts'
import { nodes_max } from './definition-limits.ts'
import { earlyCallbacks } from './early-callback.ts'
import type { CompileResult, Graph, GraphNode, NodeName } from './graph.ts'
import { quoted, type Report, truncated } from './report.ts'

/** A mistake inside a node, which refuses the definition only where a task can reach the node. */
interface NodeMistake {
  readonly id: string
  readonly text: string
  /** Whether the node cannot be run at all. */
  readonly is_broken: boolean
  /** The type whose handler would run the logic. */
  readonly handler_type: string | undefined
}

/** What the compiler collects over all nodes. */
interface Findings {
  readonly in_nodes: NodeMistake[]
  readonly warnings: string[]
  /** Target nodes of each node, by node id. */
  readonly targets: ReadonlyMap<string, Set<string>>
  readonly target_conv_ids: Set<string>
  readonly variables: Set<string>
}

/**
 * Compiles one process object of the process format. What is wrong inside a node is a mistake where
 * a task can reach the node, and warned of where none can. So is a logic type that this program
 * does not run, unless `isHandled` says that the embedder has a handler for it.
 */
export function compileProcess(
  definition: JsonObject,
  limits: GraphLimits,
  isHandled?: IsHandled,
): CompileResult {
  return atOnce(compileInSlices(definition, limits, isHandled))
}

type IsHandled = (type: string, conv_id: string | undefined) => boolean

/** The same, with a pause after each node: the definition must not change meanwhile. */
export function* compileInSlices(
  definition: JsonObject,
  limits: GraphLimits,
  isHandled: IsHandled = () => false,
): Sliced<CompileResult> {
  const mistakes: string[] = []
  const warnings: string[] = []
  const head = readHead(definition, limits, { mistakes, warnings })
  const checkParams = compileParams(definition.params, (text) => mistakes.push(text))
  const mistaken_nodes = new Map<string, NodeName>()
  const heads = readNodeHeads(definition.scheme, limits, mistakes, mistaken_nodes)
  const targets = new Map([...heads.values()].map(({ id }) => [id, new Set<string>()]))
  const target_conv_ids = new Set<string>()
  const variables = new Set<string>()
  const nodes = new Map<string, GraphNode>()
  const reachable = new Set<string>()
  const in_nodes: NodeMistake[] = []
  const findings: Findings = { in_nodes, warnings, targets, target_conv_ids, variables }
  for (const [at, node] of heads) {
    const { id } = node
    const place = `${placeOf(at, node.raw)}: `
    const rules: HandlerRules = {
      isHandled: (type) => isHandled(type, head.conv_id),
      notRun: (text, handler_type) =>
        in_nodes.push({ id, text: place + text, is_broken: false, handler_type }),
      isReachable: () => reachable.has(id),
    }
    nodes.set(id, compileNode(node, nodeReport(place, id, findings), rules))
    yield
  }
  const raws = new Map([...heads.values()].map(({ id, raw }) => [id, raw]))
  for (const { id, text } of in_nodes) mistaken_nodes.set(text, nameOf(raws.get(id)))
  yield
  const start_id = readStart(heads, mistakes)
  const is_draft = listOfNodes(definition.scheme)?.length === 0
  if (start_id === undefined && !is_draft) {
    mistakes.push(...in_nodes.map(({ text }) => text))
    mistakes.push('scheme: there is no start (a node with obj_type 1)')
    return { graph: undefined, mistakes, mistaken_nodes, warnings }
  }
  if (start_id !== undefined) addReachable(start_id, targets, reachable)
  for (const { id, text, is_broken } of in_nodes) {
    if (reachable.has(id)) mistakes.push(text)
    else warnings.push(`${text}, and a task that is moved here fails`)
    if (is_broken) nodes.set(id, brokenNode(nodes.get(id) as GraphNode))
  }
  yield
  for (const [at, { id, raw }] of heads) {
    if (!reachable.has(id)) warnings.push(`${placeOf(at, raw)}: nothing leads here from the start`)
  }
  yield
  const reached = [...heads].filter(([, { id }]) => reachable.has(id))
  const places = new Map(reached.map(([at, { id, raw }]) => [id, placeOf(at, raw)]))
  for (const [id, api_id] of earlyCallbacks(new Map(reached.map(([, { id, raw }]) => [id, raw])))) {
    const early = `what comes between the api of ${places.get(api_id)} and this wait`
    warnings.push(`${places.get(id)}: ${early} does not end it, and no condition asks for it`)
  }
  if (is_draft) warnings.push('scheme: there are no nodes, so it is stored as a draft')
  if (mistakes.length > 0) return { graph: undefined, mistakes, mistaken_nodes, warnings }
  const graph: Graph = {
    ...head,
    start_id: start_id ?? '',
    nodes,
    target_conv_ids: [...target_conv_ids],
    variables: [...variables],
    missing_handlers: [...new Set(in_nodes.flatMap(({ handler_type }) => handler_type ?? []))],
    checkParams,
  }
  return { graph, mistakes, mistaken_nodes, warnings }
}

/** The id of the start; undefined where there is none. */
function readStart(heads: Heads, mistakes: string[]): string | undefined {
  const starts = [...heads].filter(([, { kind }]) => kind === 'start')
  if (starts.length > 1) {
    const places = starts.map(([at, { raw }]) => placeOf(at, raw)).join(', ')
    mistakes.push(`scheme: one start was expected, there are ${starts.length}: ${places}`)
  }
  return starts[0]?.[1].id
}

/** Adds the nodes that members of logics and semaphors lead to from the start, and the start. */
function addReachable(
  start_id: string,
  targets: Findings['targets'],
  reachable: Set<string>,
): void {
  reachable.add(start_id)
  for (const id of reachable) for (const to of targets.get(id) ?? []) reachable.add(to)
}

/** Nodes that have an id, by their place in the list. */
type Heads = ReadonlyMap<number, NodeHead>

function readNodeHeads(
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
  const { id, obj_type } = raw
  // Some editors write the number as text.
  const is_text = typeof obj_type === 'string' && /^[0-4]$/.test(obj_type)
  const kind = is_text || typeof obj_type === 'number' ? node_kinds[Number(obj_type)] : undefined
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

function nodeReport(place: string, id: string, findings: Findings): Report {
  const { in_nodes, warnings, targets, target_conv_ids, variables } = findings
  const mistake = (text: string): void => {
    in_nodes.push({ id, text: place + text, is_broken: true, handler_type: undefined })
  }
  return {
    mistake,
    warning: (text) => warnings.push(place + text),
    targetProcess: (conv_id) => target_conv_ids.add(conv_id),
    variable: (name) => variables.add(name),
    targetNode(member, to_node_id) {
      if (typeof to_node_id === 'string' && targets.has(to_node_id)) {
        targets.get(id)?.add(to_node_id)
        return to_node_id
      }
      mistake(`${member} ${quoted(to_node_id)} is no node`)
      return undefined
    },
  }
}

function nameOf(raw: JsonValue | undefined): NodeName {
  const { id, title } = isObject(raw) ? raw : {}
  return {
    ...(typeof id === 'string' ? { node_id: truncated(id) } : {}),
    ...(typeof title === 'string' ? { node_title: truncated(title) } : {}),
  }
}

/** `nodes[3] "Wait bank"`: the place with the node's title, or its id where it has none. */
function placeOf(at: number, raw: JsonValue): string {
  const names = isObject(raw) ? [raw.title, raw.id] : []
  const name = names.find((text) => typeof text === 'string' && text !== '')
  return name === undefined ? `nodes[${at}]` : `nodes[${at}] ${quoted(name)}`
}
