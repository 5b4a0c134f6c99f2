/**
 * The graph of a process for drawing: boxes with title, kind and task count, and labelled arrows.
 * Read from the definition and the counts; no task data is used.
 */
import { isObject, parseStored } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import type { ProcessDetails } from '../../engine/process-api.ts'

export type Drawn = Pick<
  ProcessDetails,
  'conv_id' | 'title' | 'status' | 'tasks' | 'nodes' | 'definition_text'
>

export interface Box {
  readonly title: string
  readonly kind: ProcessDetails['nodes'][number]['kind']
  readonly tasks: number
  /** Its logic types, for the second line. */
  readonly does: string
  /** Its position in the definition, in pixels; undefined without one. */
  readonly drawn_at: Point | undefined
}

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Arrow {
  /** Indices into `boxes`. */
  readonly from: number
  readonly to: number
  readonly label: string
  readonly way: 'go' | 'error' | 'time'
}

export interface Picture {
  readonly boxes: readonly Box[]
  readonly arrows: readonly Arrow[]
}

export function pictureOf({ nodes, definition_text }: Drawn): Picture {
  const raws = new Map<string, JsonObject>()
  const scheme = objectIn(objectOf(parseStored(definition_text)), 'scheme')
  for (const node of listIn(scheme, 'nodes')) {
    if (isObject(node)) raws.set(String(node.id), node)
  }
  const places = new Map(nodes.map(({ id }, at) => [id, at]))
  const boxes: Box[] = []
  const arrows: Arrow[] = []
  for (const [from, { id, title, kind, tasks }] of nodes.entries()) {
    const raw = raws.get(id) ?? {}
    const condition = objectIn(raw, 'condition')
    const logics = kind === 'end' ? [] : listIn(condition, 'logics').filter(isObject)
    const semaphors = kind === 'end' ? [] : listIn(condition, 'semaphors').filter(isObject)
    for (const { way, label, to: name } of [
      ...logics.flatMap(waysOf),
      ...semaphors.flatMap(semaphorWays),
    ]) {
      const to = typeof name === 'string' ? places.get(name) : undefined
      if (to !== undefined) arrows.push({ from, to, label, way })
    }
    const types = logics.map(({ type }) => String(type)).filter((type) => !type.startsWith('go'))
    boxes.push({
      title: title === '' ? id : title,
      kind,
      tasks,
      does: [...new Set(types)].join(', '),
      drawn_at: pointOf(raw),
    })
  }
  return { boxes, arrows: merged(arrows) }
}

interface Way {
  readonly way: Arrow['way']
  readonly label: string
  readonly to: JsonValue | undefined
}

/** A plain `go` has no label. */
function waysOf({ type, to_node_id, err_node_id }: JsonObject): Way[] {
  const label = String(type)
  return [
    { way: 'go', label: label === 'go' ? '' : label, to: to_node_id },
    { way: 'error', label: `${label} error`, to: err_node_id },
  ]
}

const seconds: readonly (readonly [unit: string, s: number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

function semaphorWays({ type, value, to_node_id, esc_node_id }: JsonObject): Way[] {
  const label = type === 'time' ? `after ${spanOf(value)}` : `${String(value)} tasks`
  return [{ way: 'time', label, to: type === 'time' ? to_node_id : esc_node_id }]
}

/** The largest unit that gives a whole number. */
function spanOf(value: JsonValue | undefined): string {
  const s = Number(value)
  if (!Number.isFinite(s) || s <= 0) return String(value)
  const [unit, unit_s] = seconds.find(([, each]) => s % each === 0) ?? ['second', 1]
  const count = s / unit_s
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** Merges arrows of the same kind between the same two boxes. */
function merged(arrows: readonly Arrow[]): Arrow[] {
  const labels = new Map<string, { readonly arrow: Arrow; readonly labels: Set<string> }>()
  for (const arrow of arrows) {
    const key = `${arrow.from} ${arrow.to} ${arrow.way}`
    const found = labels.get(key) ?? { arrow, labels: new Set<string>() }
    if (arrow.label !== '') found.labels.add(arrow.label)
    labels.set(key, found)
  }
  return [...labels.values()].map((found) => ({
    ...found.arrow,
    label: [...found.labels].join(', '),
  }))
}

/** Beyond any editor's canvas; farther positions are ignored. */
const far_px = 1_000_000

function pointOf({ x, y }: JsonObject): Point | undefined {
  const isPlace = (value: JsonValue | undefined): value is number =>
    typeof value === 'number' && Math.abs(value) < far_px
  return isPlace(x) && isPlace(y) ? { x, y } : undefined
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {}
}

function objectIn(object: JsonObject, name: string): JsonObject {
  return objectOf(object[name])
}

function listIn(object: JsonObject, name: string): readonly JsonValue[] {
  const list = object[name]
  return Array.isArray(list) ? list : []
}
