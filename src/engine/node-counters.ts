/**
 * Live tasks in each node, counted over a transaction: read when first asked for, written once at
 * its end (family node_count).
 */
import { type Key, nodeCountKey } from '../codec/keys.ts'
import { decodeCount, encodeCount } from '../codec/records.ts'
import type { Tx } from '../store/store.ts'
import type { Process } from './catalog.ts'

export interface NodeCounters {
  begin(tx: Tx): void
  add(conv_id: string, node_id: string, by: 1 | -1): void
  of(conv_id: string, node_id: string): number
  /** Nodes with count semaphors whose number changed since the last call. */
  take(): readonly CountChange[]
  end(): void
}

export interface CountChange {
  readonly conv_id: string
  readonly node_id: string
  readonly before: number
  readonly now: number
}

interface Counter {
  readonly key: Key
  readonly conv_id: string
  readonly node_id: string
  readonly stored: number
  now: number
  /** The number last told by `take`. */
  reported: number
  readonly has_semaphors: boolean
}

const nothing: readonly CountChange[] = []

/** `processOf` looks in the transaction that was begun last. */
export function newNodeCounters(
  tx: Tx,
  processOf: (conv_id: string) => Process | undefined,
): NodeCounters {
  let present = tx
  let by_place = new Map<string, Map<string, Counter>>()
  const all: Counter[] = []
  const with_semaphors: Counter[] = []

  function newCounter(conv_id: string, node_id: string): Counter {
    const key = nodeCountKey(conv_id, node_id)
    const stored = decodeCount(present.get(key))
    const semaphors = processOf(conv_id)?.graph.nodes.get(node_id)?.count_semaphors ?? []
    const has_semaphors = semaphors.length > 0
    const counter = { key, conv_id, node_id, stored, now: stored, reported: stored, has_semaphors }
    all.push(counter)
    if (has_semaphors) with_semaphors.push(counter)
    return counter
  }

  return {
    begin(tx) {
      present = tx
      by_place = new Map()
      all.length = 0
      with_semaphors.length = 0
    },
    add(conv_id, node_id, by) {
      let nodes = by_place.get(conv_id)
      if (nodes === undefined) {
        nodes = new Map()
        by_place.set(conv_id, nodes)
      }
      let counter = nodes.get(node_id)
      if (counter === undefined) {
        counter = newCounter(conv_id, node_id)
        nodes.set(node_id, counter)
      }
      counter.now += by
    },
    of(conv_id, node_id) {
      const counter = by_place.get(conv_id)?.get(node_id)
      return counter?.now ?? decodeCount(present.get(nodeCountKey(conv_id, node_id)))
    },
    take() {
      if (with_semaphors.length === 0) return nothing
      const counted: CountChange[] = []
      for (const counter of with_semaphors) {
        const { conv_id, node_id, reported, now } = counter
        if (now === reported) continue
        counter.reported = now
        counted.push({ conv_id, node_id, before: reported, now })
      }
      return counted
    },
    end() {
      for (const { key, stored, now } of all) {
        if (now === stored) continue
        if (now === 0) present.del(key)
        else present.put(key, encodeCount(now))
      }
    },
  }
}
