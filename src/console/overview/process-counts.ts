/**
 * What happens in one process, node by node: counts from the counters of its nodes, timers that
 * fire soon, and the edges that tasks take. Who asks at once for one process shares a reading, and
 * what was read is forgotten once nobody asks.
 */

import type { StatusCounts } from '../../codec/records.ts'
import type { Clock } from '../../core/clock.ts'
import type { Flow } from '../../engine/flow/flow.ts'
import { due_soon_max, type ProcessCounts } from './messages.ts'
import { withoutZeros } from './process-rows.ts'
import { atMostEvery } from './shared-reading.ts'

const counts_every_ms = 200
const due_every_ms = 1_000
const due_soon_ms = 60_000
/** The timers that are read to find the nodes of those that fire soon. */
const due_read_max = 1_000
const kept_ms = 10_000

interface Asked {
  asked_ms: number
  read(): Promise<ProcessCounts>
}

export function newProcessCounts(
  flow: Flow,
  clock: Clock,
): (conv_id: string) => Promise<ProcessCounts> {
  const asked = new Map<string, Asked>()

  function newAsked(conv_id: string): Asked {
    /** All that were told, so that a node whose last task has left is told as empty. */
    const told = new Map<string, StatusCounts | undefined>()
    const dueSoon = atMostEvery(
      () => due_every_ms,
      clock,
      () => flow.dueSoon(conv_id, clock.now_ms() + due_soon_ms, due_read_max),
    )
    const read = async (): Promise<ProcessCounts> => {
      const [{ head, counts }, due] = await Promise.all([flow.nodes(conv_id), dueSoon()])
      for (const node_id of told.keys()) told.set(node_id, undefined)
      for (const [node_id, by_status] of counts) told.set(node_id, by_status)
      const nodes = [...told].map(([node_id, by_status]) => ({
        node_id,
        by_status: by_status === undefined ? {} : withoutZeros(by_status),
        due_soon: Math.min(due.get(node_id) ?? 0, due_soon_max),
      }))
      const { status, version } = head
      return { at_ms: clock.now_ms(), conv_id, status, version, nodes, edges: flow.edges(conv_id) }
    }
    return { asked_ms: 0, read: atMostEvery(() => counts_every_ms, clock, read) }
  }

  return (conv_id) => {
    const now_ms = clock.now_ms()
    for (const [other, { asked_ms }] of asked) {
      if (Math.abs(now_ms - asked_ms) > kept_ms) asked.delete(other)
    }
    const one = asked.get(conv_id) ?? newAsked(conv_id)
    one.asked_ms = now_ms
    asked.set(conv_id, one)
    return one.read()
  }
}
