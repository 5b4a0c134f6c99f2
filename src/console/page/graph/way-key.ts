/** The name of the ways between two nodes, by which rates and the path of a task find them. */

/** Node ids may hold any character, so that a separator alone would not do. */
export function wayKey(from_node_id: string, to_node_id: string): string {
  return JSON.stringify([from_node_id, to_node_id])
}
