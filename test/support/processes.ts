/** Parts of the definitions of processes. */
import type { JsonObject } from '../../src/core/model.ts'

export const go = (to_node_id: string) => ({ type: 'go', to_node_id })

/** `more` holds the title, the semaphors or the options. */
export function node(
  id: string,
  obj_type: number,
  logics: readonly unknown[] = [],
  { semaphors = [], ...more }: Readonly<Record<string, unknown>> = {},
): JsonObject {
  const condition: unknown = { logics, semaphors }
  return { id, obj_type, ...more, condition } as JsonObject
}
