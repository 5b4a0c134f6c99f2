/**
 * Counts how often tasks move along each edge between two nodes, over the last ten seconds. At most
 * `edges_max` edges are counted, so memory is bounded.
 */
import {
  countAt,
  countsUpTo,
  newRollingCount,
  type RollingCount,
} from '../../core/rolling-count.ts'

export interface FlowEdge {
  readonly from_node_id: string
  readonly to_node_id: string
  readonly per_s: number
}

export interface EdgeCounters {
  /** `moves` are conv_id, from and to in turn; each stands for `weight` of them. */
  count(moves: readonly string[], weight: number, at_ms: number): void
  /** Those of the last ten seconds; counting began at `since_ms`. */
  read(conv_id: string, at_ms: number, since_ms: number): FlowEdge[]
  clear(): void
}

const second_ms = 1_000
const rate_s = 10
/** The seconds of a rate and the one that still runs. */
const slots = rate_s + 1
const edges_max = 50_000

type EdgesFrom = Map<string, Map<string, RollingCount>>

export function newEdgeCounters(): EdgeCounters {
  const by_process = new Map<string, EdgesFrom>()
  let edges_count = 0
  let swept_s = 0

  function edgeOf(conv_id: string, from: string, to: string, now_s: number) {
    const known = by_process.get(conv_id)?.get(from)?.get(to)
    if (known !== undefined) return known
    if (edges_count >= edges_max) sweep(now_s)
    if (edges_count >= edges_max) return undefined
    const edge = newRollingCount(slots)
    const edges = by_process.get(conv_id) ?? new Map<string, Map<string, RollingCount>>()
    by_process.set(conv_id, edges.set(from, (edges.get(from) ?? new Map()).set(to, edge)))
    edges_count++
    return edge
  }

  function sweep(now_s: number): void {
    if (now_s === swept_s) return
    swept_s = now_s
    for (const [conv_id, edges] of by_process) {
      for (const [from, to] of edges) {
        for (const [node_id, { slot }] of to) {
          if (Math.abs(now_s - slot) >= slots) edges_count -= Number(to.delete(node_id))
        }
        if (to.size === 0) edges.delete(from)
      }
      if (edges.size === 0) by_process.delete(conv_id)
    }
  }

  return {
    count(moves, weight, at_ms) {
      const now_s = Math.floor(at_ms / second_ms)
      for (let at = 0; at < moves.length; at += 3) {
        const edge = edgeOf(moves[at] ?? '', moves[at + 1] ?? '', moves[at + 2] ?? '', now_s)
        if (edge !== undefined) countAt(edge, now_s, weight)
      }
    },
    read(conv_id, at_ms, since_ms) {
      const now_s = Math.floor(at_ms / second_ms)
      const passed_s = (at_ms % second_ms) / second_ms + rate_s
      const window_s = Math.max(1, Math.min(passed_s, (at_ms - since_ms) / second_ms))
      const found: FlowEdge[] = []
      for (const [from_node_id, to] of by_process.get(conv_id) ?? []) {
        for (const [to_node_id, edge] of to) {
          const count = countsUpTo(edge, now_s).reduce((sum, one) => sum + one, 0)
          if (count > 0) found.push({ from_node_id, to_node_id, per_s: count / window_s })
        }
      }
      return found
    },
    clear() {
      by_process.clear()
      edges_count = 0
    },
  }
}
