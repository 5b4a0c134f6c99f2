/**
 * How often tasks take the ways between nodes: of each way, the moves of the last ten seconds. Of
 * all ways the newest `ways_max` are counted, so memory is bounded.
 */
import {
  countAt,
  countsUpTo,
  newRollingCount,
  type RollingCount,
} from '../../core/rolling-count.ts'

export interface FlowWay {
  readonly from_node_id: string
  readonly to_node_id: string
  readonly per_s: number
}

export interface FlowWays {
  /** `moves` are conv_id, from and to in turn; each stands for `weight` of them. */
  count(moves: readonly string[], weight: number, at_ms: number): void
  /** Those of the last ten seconds; counting began at `since_ms`. */
  read(conv_id: string, at_ms: number, since_ms: number): FlowWay[]
  clear(): void
}

const second_ms = 1_000
const rate_s = 10
/** The seconds of a rate and the one that still runs. */
const slots = rate_s + 1
const ways_max = 50_000

type WaysFrom = Map<string, Map<string, RollingCount>>

export function newFlowWays(): FlowWays {
  const by_process = new Map<string, WaysFrom>()
  let ways_count = 0
  let swept_s = 0

  function wayOf(conv_id: string, from: string, to: string, now_s: number) {
    const known = by_process.get(conv_id)?.get(from)?.get(to)
    if (known !== undefined) return known
    if (ways_count >= ways_max) sweep(now_s)
    if (ways_count >= ways_max) return undefined
    const way = newRollingCount(slots)
    const ways = by_process.get(conv_id) ?? new Map<string, Map<string, RollingCount>>()
    by_process.set(conv_id, ways.set(from, (ways.get(from) ?? new Map()).set(to, way)))
    ways_count++
    return way
  }

  /** Forgets the ways that no task has taken lately; at most once a second. */
  function sweep(now_s: number): void {
    if (now_s === swept_s) return
    swept_s = now_s
    for (const [conv_id, ways] of by_process) {
      for (const [from, to] of ways) {
        for (const [node_id, { slot }] of to) {
          if (Math.abs(now_s - slot) >= slots) ways_count -= Number(to.delete(node_id))
        }
        if (to.size === 0) ways.delete(from)
      }
      if (ways.size === 0) by_process.delete(conv_id)
    }
  }

  return {
    count(moves, weight, at_ms) {
      const now_s = Math.floor(at_ms / second_ms)
      for (let at = 0; at < moves.length; at += 3) {
        const way = wayOf(moves[at] ?? '', moves[at + 1] ?? '', moves[at + 2] ?? '', now_s)
        if (way !== undefined) countAt(way, now_s, weight)
      }
    },
    read(conv_id, at_ms, since_ms) {
      const now_s = Math.floor(at_ms / second_ms)
      const passed_s = (at_ms % second_ms) / second_ms + rate_s
      const window_s = Math.max(1, Math.min(passed_s, (at_ms - since_ms) / second_ms))
      const found: FlowWay[] = []
      for (const [from_node_id, to] of by_process.get(conv_id) ?? []) {
        for (const [to_node_id, way] of to) {
          const count = countsUpTo(way, now_s).reduce((sum, one) => sum + one, 0)
          if (count > 0) found.push({ from_node_id, to_node_id, per_s: count / window_s })
        }
      }
      return found
    },
    clear() {
      by_process.clear()
      ways_count = 0
    },
  }
}
