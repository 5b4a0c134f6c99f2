/**
 * Edits of drafts. Each checks all before its first write, and throws a fault. A node is checked
 * for its form alone: links to nodes that are made later, and logics, are for the confirm.
 */
import { isObject, parseStored, stringifyJson } from '../../codec/json.ts'
import { isName } from '../../codec/op.ts'
import type { Limits } from '../../core/limits.ts'
import type { JsonObject } from '../../core/model.ts'
import { nodeType } from '../../process/compile-head.ts'
import { hideSecret } from '../../process/webhook-lock.ts'
import type { Tx } from '../../store/store.ts'
import type { Process } from '../transactions/catalog.ts'
import { idOf, isSameValue, nodesById, patched, restOf, storedVersion } from './draft-definition.ts'
import {
  type Draft,
  draftToEdit,
  type Entry,
  entryOf,
  type Opening,
  putEntry,
  refused,
  rest,
} from './draft-store.ts'

export interface Edit extends Opening {
  readonly tx: Tx
  readonly process: Process
  readonly limits: Pick<Limits, 'node_id_chars_max'>
}

/** Creates a node, or replaces one whole. */
export function putNode(edit: Edit, node: JsonObject): Draft {
  const { tx, process, limits, now_ms } = edit
  const node_id = idOf(node)
  if (node_id === undefined || !isName(node_id, limits.node_id_chars_max)) {
    throw refused(`the id of a node is a text of 1 to ${limits.node_id_chars_max} characters`)
  }
  const draft = draftToEdit(tx, process, edit)
  requireNoSecret(process, node_id, node)
  const by = hasNode(draft, process, node_id, entryOf(tx, draft, node_id)) ? 0 : 1
  return putEntry(tx, draft, node_id, { entry: { how: 'whole', value: node }, by }, now_ms)
}

/** What `patch` has replaces what the node has. Undefined where there is no such node. */
export function changeNode(edit: Edit, node_id: string, patch: JsonObject): Draft | undefined {
  const { tx, process, now_ms } = edit
  const draft = draftToEdit(tx, process, edit)
  const old = entryOf(tx, draft, node_id)
  if (!hasNode(draft, process, node_id, old)) return undefined
  const value = old === undefined ? patch : patched(old.value, patch)
  requireNoSecret(process, node_id, value)
  const entry = { how: old?.how ?? 'patch', value } as const
  return putEntry(tx, draft, node_id, { entry, by: 0 }, now_ms)
}

export function removeNode(edit: Edit, node_id: string): Draft | undefined {
  const { tx, process, now_ms } = edit
  const draft = draftToEdit(tx, process, edit)
  if (!hasNode(draft, process, node_id, entryOf(tx, draft, node_id))) return undefined
  const entry = process.graph.nodes.has(node_id) ? removed : undefined
  return putEntry(tx, draft, node_id, { entry, by: -1 }, now_ms)
}

const removed = { how: 'removed', value: {} } as const

/** Members beside the nodes. */
export function changeRest(edit: Edit, patch: JsonObject): Draft {
  const { tx, process, now_ms } = edit
  const draft = draftToEdit(tx, process, edit)
  const old = entryOf(tx, draft, rest)
  const entry = { how: old?.how ?? 'patch', value: { ...old?.value, ...patch } } as const
  return putEntry(tx, draft, rest, { entry, by: 0 }, now_ms)
}

/** A whole definition, in the order of the base's nodes; it takes the place of earlier edits. */
export function putWhole(edit: Edit, definition: JsonObject): Draft {
  const { tx, process, now_ms } = edit
  const { conv_id } = process
  let draft = draftToEdit(tx, process, edit)
  const base = storedVersion(tx, conv_id, process.record.version)
  const old = nodesById(base)
  const next = nodesById(definition)
  const nodes = (isObject(definition.scheme) ? definition.scheme.nodes : undefined) ?? null
  if (!Array.isArray(nodes)) throw refused('scheme: nodes was expected to be an array')
  if (next.size !== nodes.length) throw refused('each node needs an id of its own')
  for (const [id, node] of next) requireNoSecret(process, id, node)
  if (draft.replaces === undefined) draft = { ...draft, replaces: [draft] }
  draft = { ...draft, record: { ...draft.record, nodes: old.size, changed: 0, bytes: 0 } }
  const top = { ...restOf(definition), obj_id: base.obj_id ?? Number(conv_id) }
  const value: JsonObject = top
  const entry = isSameValue(top, restOf(base)) ? undefined : ({ how: 'whole', value } as const)
  draft = putEntry(tx, draft, rest, { entry, by: 0 }, now_ms)
  for (const node_id of old.keys()) {
    if (next.has(node_id)) continue
    draft = putEntry(tx, draft, node_id, { entry: removed, by: -1 }, now_ms)
  }
  for (const [node_id, node] of next) {
    const was = old.get(node_id)
    if (was !== undefined && isSameValue(was, node)) continue
    const edit = { entry: { how: 'whole', value: node }, by: was === undefined ? 1 : 0 } as const
    draft = putEntry(tx, draft, node_id, edit, now_ms)
  }
  return draft
}

function hasNode(
  { replaces }: Draft,
  { graph }: Process,
  node_id: string,
  entry: Entry | undefined,
): boolean {
  if (entry === undefined || replaces !== undefined) return graph.nodes.has(node_id)
  return entry.how !== 'removed'
}

/** A literal secret of a webhook is stored encrypted, which a draft cannot do. */
function requireNoSecret({ graph }: Process, node_id: string, node: JsonObject): void {
  const { obj_type, options } = node
  const is_start =
    obj_type === undefined ? graph.nodes.get(node_id)?.kind === 'start' : nodeType(obj_type) === 1
  if (!is_start || options === undefined) return
  const copy = parseStored(stringifyJson(options))
  const secret = hideSecret({ scheme: { nodes: [{ obj_type: 1, options: copy }] } })
  if (secret === undefined) return
  throw refused(
    `node "${node_id}": the secret of a webhook is no part of a draft; send "***" to keep what ` +
      'is stored, name a variable, or import the definition',
  )
}
