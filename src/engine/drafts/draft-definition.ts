/** The whole definition that a draft makes of its base, and what it changes. */
import { canonicalText } from '../../codec/doc-text.ts'
import { isObject, parseStored } from '../../codec/json.ts'
import { versionKey } from '../../codec/keys.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { listOfNodes } from '../../process/compile-head.ts'
import type { View } from '../../store/store.ts'
import { keepSecrets } from './draft-secrets.ts'
import { type Draft, type Entry, entriesOf, rest } from './draft-store.ts'

export interface NodeChange {
  readonly node_id: string
  readonly change: 'created' | 'changed' | 'removed'
  /** As it is in the draft, or was. */
  readonly node: JsonObject
}

export interface Made {
  readonly definition: JsonObject
  readonly changes: readonly NodeChange[]
  /** Whether more than nodes is changed. */
  readonly is_rest_changed: boolean
  /** Secrets that were sent as `***` and are not stored, by node id. */
  readonly lost: readonly { readonly node_id: string; readonly name: string }[]
}

export function storedVersion(view: View, conv_id: string, version: number): JsonObject {
  const text = view.get(versionKey(conv_id, version))?.toString('utf8')
  if (text === undefined) throw new Error(`process ${conv_id}: version ${version} is missing`)
  return parseStored(text) as JsonObject
}

export function madeBy(view: View, draft: Draft): Made {
  const base = storedVersion(view, draft.conv_id, draft.record.base)
  return applied(base, draft.replaces === undefined ? entriesOf(view, draft) : new Map())
}

function applied(base: JsonObject, entries: ReadonlyMap<string, Entry>): Made {
  const changes: NodeChange[] = []
  const lost: { node_id: string; name: string }[] = []
  const nodes: JsonValue[] = []
  const kept = (node_id: string, value: JsonObject, was: JsonObject | undefined): JsonObject =>
    keepSecrets(value, was, (name) => lost.push({ node_id, name }))
  const old_nodes = listOfNodes(base.scheme) ?? []
  const known = new Set<string>()
  for (const was of old_nodes) {
    const node_id = idOf(was)
    const entry = node_id === undefined ? undefined : entries.get(node_id)
    if (node_id !== undefined) known.add(node_id)
    if (node_id === undefined || entry === undefined || !isObject(was)) nodes.push(was)
    else if (entry.how === 'removed') changes.push({ node_id, change: 'removed', node: was })
    else {
      const node = kept(
        node_id,
        entry.how === 'whole' ? entry.value : patched(was, entry.value),
        was,
      )
      changes.push({ node_id, change: 'changed', node })
      nodes.push(node)
    }
  }
  for (const [node_id, { value }] of entries) {
    if (known.has(node_id) || node_id === rest) continue
    const node = kept(node_id, value, undefined)
    changes.push({ node_id, change: 'created', node })
    nodes.push(node)
  }
  const head = entries.get(rest)
  const top = restOf(base)
  const whole = head === undefined ? top : { ...(head.how === 'patch' ? top : {}), ...head.value }
  const definition = head === undefined ? { ...whole } : kept(rest, whole, top)
  definition.scheme = { ...(isObject(definition.scheme) ? definition.scheme : {}), nodes }
  return { definition, changes, is_rest_changed: head !== undefined, lost }
}

/** Members of the condition are replaced one by one, like those of the node. */
export function patched(node: JsonObject, patch: JsonObject): JsonObject {
  const { condition } = patch
  if (!isObject(condition)) return { ...node, ...patch }
  const old = isObject(node.condition) ? node.condition : {}
  return { ...node, ...patch, condition: { ...old, ...condition } }
}

/** A definition without its nodes. */
export function restOf(definition: JsonObject): JsonObject {
  const { scheme } = definition
  return { ...definition, scheme: { ...(isObject(scheme) ? scheme : {}), nodes: [] } }
}

export function nodesById(definition: JsonObject): Map<string, JsonObject> {
  const found = new Map<string, JsonObject>()
  for (const node of listOfNodes(definition.scheme) ?? []) {
    const node_id = idOf(node)
    if (node_id !== undefined && isObject(node)) found.set(node_id, node)
  }
  return found
}

export const idOf = (node: JsonValue): string | undefined =>
  isObject(node) && typeof node.id === 'string' ? node.id : undefined

export const isSameValue = (one: JsonValue, other: JsonValue): boolean =>
  canonicalText(one) === canonicalText(other)

/** What a later version does to an earlier one. */
export function changesBetween(before: JsonObject, after: JsonObject): NodeChange[] {
  const old = nodesById(before)
  const next = nodesById(after)
  const changes: NodeChange[] = []
  for (const [node_id, node] of old) {
    const now = next.get(node_id)
    if (now === undefined) changes.push({ node_id, change: 'removed', node })
    else if (!isSameValue(node, now)) changes.push({ node_id, change: 'changed', node: now })
  }
  for (const [node_id, node] of next) {
    if (!old.has(node_id)) changes.push({ node_id, change: 'created', node })
  }
  return changes
}
