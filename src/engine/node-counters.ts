/**
 * The numbers that belong to nodes. The number of live tasks in a node (key type node_count) is
 * kept over one transaction: read from the store when first needed, written once at the end.
 * Running sums (key type sum) are written at once.
 */
import { type Key, nodeCountKey, sumKey } from '../codec/keys.ts'
import { decodeCount, encodeCount } from '../codec/records.ts'
import type { TaskRecord } from '../codec/task-record.ts'
import type { Tx } from '../store/store.ts'
import type { Process } from './catalog.ts'

export interface NodeCounters {
  begin(tx: Tx): void
  add(conv_id: string, node_id: string, by: 1 | -1): void
  of(conv_id: string, node_id: string): number
  /** The nodes with count semaphors whose number has changed since the last call. */
  takeChanges(): readonly CountChange[]
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
  /** The number at the last `takeChanges`. */
  reported: number
}

const no_changes: readonly CountChange[] = []

/** `processOf` reads in the transaction that was begun last. */
export function newNodeCounters(
  no_tx: Tx,
  processOf: (conv_id: string) => Process | undefined,
): NodeCounters {
  let tx = no_tx
  let by_process = new Map<string, Map<string, Counter>>()
  const all: Counter[] = []
  const with_semaphors: Counter[] = []

  function newCounter(conv_id: string, node_id: string): Counter {
    const key = nodeCountKey(conv_id, node_id)
    const stored = decodeCount(tx.get(key))
    const counter = { key, conv_id, node_id, stored, now: stored, reported: stored }
    all.push(counter)
    const semaphors = processOf(conv_id)?.graph.nodes.get(node_id)?.count_semaphors ?? []
    if (semaphors.length > 0) with_semaphors.push(counter)
    return counter
  }

  return {
    begin(next_tx) {
      tx = next_tx
      by_process = new Map()
      all.length = 0
      with_semaphors.length = 0
    },
    add(conv_id, node_id, by) {
      let nodes = by_process.get(conv_id)
      if (nodes === undefined) {
        nodes = new Map()
        by_process.set(conv_id, nodes)
      }
      let counter = nodes.get(node_id)
      if (counter === undefined) {
        counter = newCounter(conv_id, node_id)
        nodes.set(node_id, counter)
      }
      counter.now += by
    },
    of(conv_id, node_id) {
      const counter = by_process.get(conv_id)?.get(node_id)
      return counter?.now ?? decodeCount(tx.get(nodeCountKey(conv_id, node_id)))
    },
    takeChanges() {
      if (with_semaphors.length === 0) return no_changes
      const changes: CountChange[] = []
      for (const counter of with_semaphors) {
        const { conv_id, node_id, reported, now } = counter
        if (now === reported) continue
        counter.reported = now
        changes.push({ conv_id, node_id, before: reported, now })
      }
      return changes
    },
    end() {
      for (const { key, stored, now } of all) {
        if (now === stored) continue
        if (now === 0) tx.del(key)
        else tx.put(key, encodeCount(now))
      }
    },
  }
}

/** Adds to running sums of the node in which the task is. */
export function addSums(
  tx: Tx,
  { conv_id, node_id }: TaskRecord,
  terms: readonly { readonly name: string; readonly value: number }[],
): void {
  for (const { name, value } of terms) {
    const key = sumKey(conv_id, node_id, name)
    const sum = decodeCount(tx.get(key)) + value
    // An infinite sum would be no JSON number.
    const bounded = Math.max(-Number.MAX_VALUE, Math.min(sum, Number.MAX_VALUE))
    tx.put(key, encodeCount(bounded))
  }
}
