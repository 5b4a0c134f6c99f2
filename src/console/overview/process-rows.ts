/**
 * A row for each process, and the counts of one process node by node. Numbers come from the flow
 * counters; only the records of processes and due timers are read from the file, at most once a
 * second. Hundreds of rows that change all the time are read less often. Callers that ask for one
 * process at once share a reading.
 */
import type { StatusCounts } from '../../codec/records.ts'
import type { Clock } from '../../core/clock.ts'
import { isFault } from '../../core/faults.ts'
import type { Flow, ProcessHead } from '../../engine/flow/flow.ts'
import type { FlowNumbers } from '../../engine/flow/flow-counters.ts'
import { due_soon_max, type ProcessCounts, type ProcessRow } from './messages.ts'
import { atMostEvery } from './shared-reading.ts'

const rows_every_ms = 200
const row_every_ms = 2
const heads_every_ms = 1_000

interface KnownRow {
  readonly head: ProcessHead
  readonly numbers: FlowNumbers
  readonly row: ProcessRow
}

/** All rows, in the order of their keys. A row that says the same is the same object. */
export function newProcessRows(flow: Flow, clock: Clock): () => Promise<readonly ProcessRow[]> {
  const readHeads = atMostEvery(() => heads_every_ms, clock, flow.heads)
  let known = new Map<string, KnownRow>()
  let rows: readonly ProcessRow[] = []
  let changed = 0

  async function read(): Promise<readonly ProcessRow[]> {
    changed = 0
    try {
      const heads = await readHeads()
      const numbers = await flow.numbers(heads.map(({ conv_id }) => conv_id))
      const next = new Map<string, KnownRow>()
      for (const [at, head] of heads.entries()) {
        next.set(head.conv_id, rowOf(head, numbers[at] as FlowNumbers))
      }
      known = next
      rows = [...known.values()].map(({ row }) => row)
    } catch (error) {
      // While the store cannot be read the last rows stay; the health says why.
      if (!isFault(error)) throw error
    }
    return rows
  }

  function rowOf(head: ProcessHead, numbers: FlowNumbers): KnownRow {
    const last = known.get(head.conv_id)
    if (last?.head === head && last.numbers === numbers) return last
    changed++
    return { head, numbers, row: { ...head, ...numbers } }
  }

  return atMostEvery(() => Math.max(rows_every_ms, changed * row_every_ms), clock, read)
}

export function withoutZeros(counts: StatusCounts): Partial<StatusCounts> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}

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
    /** All nodes sent before, so that a node whose last task has left is sent as empty. */
    const sent = new Map<string, StatusCounts | undefined>()
    const dueSoon = atMostEvery(
      () => due_every_ms,
      clock,
      () => flow.dueSoon(conv_id, clock.now_ms() + due_soon_ms, due_read_max),
    )
    const read = async (): Promise<ProcessCounts> => {
      const [{ head, counts }, due] = await Promise.all([flow.nodes(conv_id), dueSoon()])
      for (const node_id of sent.keys()) sent.set(node_id, undefined)
      for (const [node_id, by_status] of counts) sent.set(node_id, by_status)
      const nodes = [...sent].map(([node_id, by_status]) => ({
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
