/**
 * The graph of a definition, or of two versions of it together: boxes without places, and edges
 * with what they say. Edges of one kind between the same two nodes are one. Read from the text of
 * the definition alone, whether it compiles or not.
 */
import { isNumberToken, isObject, parseStored } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { node_kinds, nodeType } from '../../process/compile-head.ts'
import type { Box, Edge, Point } from './drawing.ts'
import { cut } from './text.ts'
import { conditionsOf, doesOf, failsOf, semaphorText } from './words.ts'

export interface GraphBox extends Pick<Box, 'node_id' | 'title' | 'kind' | 'does'> {
  /** The middle of the box in the definition, in pixels; undefined without one. */
  readonly drawn_at: Point | undefined
}

export interface GraphEdge extends Pick<Edge, 'kind' | 'label'> {
  readonly from: number
  readonly to: number
}

export interface Graph {
  readonly boxes: readonly GraphBox[]
  readonly edges: readonly GraphEdge[]
}

const title_chars_max = 200
const label_chars = 300

export function graphOf(definition_text: string): Graph {
  const scheme = objectIn(objectOf(parseStored(definition_text)), 'scheme')
  const nodes = listIn(scheme, 'nodes').filter(isObject)
  const places = new Map(nodes.map(({ id }, at) => [id, at]))
  const edges: GraphEdge[] = []
  const boxes = nodes.map((node, from): GraphBox => {
    const kind = kindOf(node.obj_type)
    const condition = kind === 'end' ? {} : objectIn(node, 'condition')
    const logics = listIn(condition, 'logics').filter(isObject)
    const semaphors = listIn(condition, 'semaphors').filter(isObject)
    for (const [to_id, edge, label] of [...logicEdges(logics), ...semaphors.map(semaphorEdge)]) {
      const to = typeof to_id === 'string' ? places.get(to_id) : undefined
      if (to !== undefined) edges.push({ from, to, kind: edge, label })
    }
    const is_stub = nodeType(node.obj_type) === 4
    const has_timer = semaphors.some(({ type }) => type === 'time')
    const does = [
      ...logics.flatMap((logic) => doesOf(logic, is_stub) ?? []),
      ...(has_timer ? ['timer'] : []),
    ]
    return {
      node_id: String(node.id),
      title: cut(titleOf(node), title_chars_max),
      kind,
      does: cut([...new Set(does)].join(', '), title_chars_max),
      drawn_at: pointOf(node),
    }
  })
  return { boxes, edges: merged(edges) }
}

/** All boxes and edges of two versions; a node of both is one, as it is in the second. */
export function unionOf(first: Graph, second: Graph): Graph {
  const boxes = new Map([...first.boxes, ...second.boxes].map((box) => [box.node_id, box]))
  const places = new Map([...boxes.keys()].map((id, at) => [id, at]))
  const edges = [first, second].flatMap((graph) =>
    graph.edges.map((edge) => ({
      ...edge,
      from: places.get(graph.boxes[edge.from]?.node_id ?? '') ?? 0,
      to: places.get(graph.boxes[edge.to]?.node_id ?? '') ?? 0,
    })),
  )
  const different = new Map(edges.map((edge) => [JSON.stringify(edge), edge]))
  return { boxes: [...boxes.values()], edges: [...different.values()] }
}

type Found = readonly [to_id: JsonValue | undefined, kind: Edge['kind'], label: string]

function logicEdges(logics: readonly JsonObject[]): Found[] {
  const first_condition = logics.findIndex(({ type }) => type === 'go_if_const')
  return logics.flatMap((logic, at): Found[] => {
    const { type, to_node_id, err_node_id } = logic
    const is_else = first_condition >= 0 && at > first_condition
    const label = type === 'go_if_const' ? conditionsOf(logic) : is_else ? 'else' : ''
    return [
      [to_node_id, 'go', label],
      [err_node_id, 'error', failsOf(logic)],
    ]
  })
}

function semaphorEdge(semaphor: JsonObject): Found {
  const { type, to_node_id, esc_node_id } = semaphor
  return [type === 'time' ? to_node_id : esc_node_id, 'time', semaphorText(semaphor)]
}

function merged(edges: readonly GraphEdge[]): GraphEdge[] {
  const found = new Map<string, { readonly edge: GraphEdge; readonly labels: Set<string> }>()
  for (const edge of edges) {
    const key = `${edge.from} ${edge.to} ${edge.kind}`
    const one = found.get(key) ?? { edge, labels: new Set<string>() }
    if (edge.label !== '') one.labels.add(edge.label)
    found.set(key, one)
  }
  return [...found.values()].map(({ edge, labels }) => ({
    ...edge,
    label: cut([...labels].join(' or '), label_chars),
  }))
}

function kindOf(obj_type: JsonValue | undefined): Box['kind'] {
  return node_kinds[nodeType(obj_type) ?? 0] ?? 'logic'
}

function titleOf({ id, title }: JsonObject): string {
  return typeof title === 'string' && title !== '' ? title : String(id)
}

/** Beyond any editor's canvas; farther positions are ignored. */
const far_px = 1_000_000

function pointOf({ x, y }: JsonObject): Point | undefined {
  const [left, top] = [pxOf(x), pxOf(y)]
  return left === undefined || top === undefined ? undefined : { x: left, y: top }
}

function pxOf(value: JsonValue | undefined): number | undefined {
  const px = isNumberToken(value) ? Number(value.token) : value
  return typeof px === 'number' && Math.abs(px) < far_px ? px : undefined
}

const objectOf = (value: JsonValue | undefined): JsonObject => (isObject(value) ? value : {})

const objectIn = (object: JsonObject, name: string): JsonObject => objectOf(object[name])

function listIn(object: JsonObject, name: string): readonly JsonValue[] {
  const list = object[name]
  return Array.isArray(list) ? list : []
}
