/**
 * Finds each `api_callback` that a task reaches from an `api` without a condition between. A modify
 * that arrives on the way is merged and ends no later wait (wire 1.2); only a condition can see it.
 */
import { isObject } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'

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
