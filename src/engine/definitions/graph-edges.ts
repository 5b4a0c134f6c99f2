/**
 * The edges between the nodes of a definition, for diagrams. Any member that names a node counts,
 * in every logic and semaphor, so a new logic kind needs no change here.
 */
import { isObject, parseStored } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'

const target_members = ['to_node_id', 'err_node_id', 'esc_node_id']

/** Node id → the node ids it leads to, each once, in the order of the definition. */
export function edgesOf(definition_text: string): Map<string, string[]> {
  const edges = new Map<string, string[]>()
  const scheme = memberOf(parseStored(definition_text), 'scheme')
  for (const node of listOf(memberOf(scheme, 'nodes'))) {
    const condition = memberOf(node, 'condition')
    const parts = [
      ...listOf(memberOf(condition, 'logics')),
      ...listOf(memberOf(condition, 'semaphors')),
    ]
    const targets = parts.flatMap((part) => target_members.map((name) => memberOf(part, name)))
    const named = targets.filter((one): one is string => typeof one === 'string' && one !== '')
    edges.set(String(memberOf(node, 'id')), [...new Set(named)])
  }
  return edges
}

function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : []
}
