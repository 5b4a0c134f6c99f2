/**
 * Compiles a definition to a graph. Every mistake is reported with its place; the compiler writes
 * nothing and never throws. Unknown members are ignored. Logics are closures: running parses
 * nothing.
 */
import { isObject } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { atOnce, type Sliced } from '../core/slices.ts'
import {
  type GraphLimits,
  type Heads,
  listOfNodes,
  nameOf,
  placeOf,
  readHead,
  readNodeHeads,
} from './compile-head.ts'
import { brokenNode, compileNode, type HandlerRules } from './compile-node.ts'
import { compileParams } from './compile-params.ts'
import type { CompileResult, Graph, GraphNode, NodeName } from './graph.ts'
import type { DbCallKinds } from './logic.ts'
import { quoted, type Report } from './report.ts'
import { idText } from './values.ts'

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
 * does not run, unless `isHandled` says that the embedder has a handler for it; `db_call` has the
 * kinds of that type where there are databases.
 */
export function compileProcess(
  definition: JsonObject,
  limits: GraphLimits,
  isHandled?: IsHandled,
  db_call?: DbCallKinds,
): CompileResult {
  return atOnce(compileInSlices(definition, limits, isHandled, db_call))
}

type IsHandled = (type: string, conv_id: string | undefined) => boolean

/** The same, with a pause after each node: the definition must not change meanwhile. */
export function* compileInSlices(
  definition: JsonObject,
  limits: GraphLimits,
  isHandled: IsHandled = () => false,
  db_call?: DbCallKinds,
): Sliced<CompileResult> {
  const mistakes: string[] = []
  const warnings: string[] = []
  const head = readHead(definition, limits, { mistakes, warnings })
  const checkParams = compileParams(definition.params, { mistake: (text) => mistakes.push(text) })
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
      db_call,
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
    instances: instancesIn(heads),
    missing_handlers: [...new Set(in_nodes.flatMap(({ handler_type }) => handler_type ?? []))],
    checkParams,
  }
  return { graph, mistakes, mistaken_nodes, warnings }
}

/** What the `db_call` logics of the nodes name. */
function instancesIn(heads: Heads): string[] {
  const queries = [...heads.values()].flatMap(({ raw }) =>
    listIn(raw, 'logics').filter(({ type }) => type === 'db_call'),
  )
  return [...new Set(queries.flatMap(({ instance_id }) => idText(instance_id) ?? []))]
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

/** Node ids of such waits, each with the first node with an `api` that leads there. */
export function earlyCallbacks(nodes: ReadonlyMap<string, JsonObject>): Map<string, string> {
  const found = new Map<string, string>()
  // By node, the api it is reached from. One is enough, so that the time is linear.
  const reached = new Map<string, string>()
  const follow = (id: string, logic_at: number, api_id: string): void => {
    const node = nodes.get(id) ?? {}
    for (const { type, to_node_id } of listIn(node, 'logics').slice(logic_at)) {
      if (type === 'api_callback' && !found.has(id)) found.set(id, api_id)
      if (type === 'go') reach(String(to_node_id), api_id)
      if (type === 'api_callback' || type === 'go' || type === 'go_if_const') return
    }
    for (const { type, to_node_id } of listIn(node, 'semaphors')) {
      if (type === 'time') reach(String(to_node_id), api_id)
    }
  }
  const reach = (id: string, api_id: string): void => {
    if (!reached.has(id)) reached.set(id, api_id)
  }
  for (const [id, raw] of nodes) {
    const api_at = listIn(raw, 'logics').findIndex(({ type }) => type === 'api')
    if (api_at !== -1) follow(id, api_at + 1, id)
  }
  for (const [id, api_id] of reached) follow(id, 0, api_id)
  return found
}

function listIn({ condition }: JsonObject, name: string): JsonObject[] {
  const list: JsonValue | undefined = isObject(condition) ? condition[name] : undefined
  return Array.isArray(list) ? list.filter(isObject) : []
}
