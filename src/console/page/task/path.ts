/**
 * The path of a task by its history: how often it was in each node, and which edges it
 * took from one to the next. A retry or a merge of data in the same node is no step of it.
 */
import type { HistoryEntry } from '../../../core/model.ts'
import { edgeKey } from '../../diagram/drawing.ts'

export interface TaskPath {
  readonly nodes: ReadonlyMap<string, number>
  readonly edges: ReadonlySet<string>
}

/** Why a task went on by itself, along an edge; other changes of the node are jumps. */
const along: readonly HistoryEntry['why'][] = [
  'go',
  'timer',
  'fail',
  'callback',
  'handler',
  'call',
  'db',
  'code',
  'queue',
  'reply',
]

export function pathOf(history: readonly Pick<HistoryEntry, 'node_id' | 'why'>[]): TaskPath {
  const nodes = new Map<string, number>()
  const edges = new Set<string>()
  let before: string | undefined
  for (const { node_id, why } of history) {
    const is_step = node_id !== before || why === 'go' || why === 'timer'
    if (is_step) nodes.set(node_id, (nodes.get(node_id) ?? 0) + 1)
    if (is_step && before !== undefined && along.includes(why)) edges.add(edgeKey(before, node_id))
    before = node_id
  }
  return { nodes, edges }
}
