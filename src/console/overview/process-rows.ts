/**
 * A row for each process. Their numbers are those of the flow counters, so only the records of the
 * processes are read from the file, and these at most once a second.
 *
 * Of many rows that change all the time, each is told less often: some hundreds a second in all.
 */
import type { StatusCounts } from '../../codec/records.ts'
import type { Clock } from '../../core/clock.ts'
import { isFault } from '../../core/faults.ts'
import type { Flow, ProcessHead } from '../../engine/flow/flow.ts'
import type { FlowNumbers } from '../../engine/flow/flow-counters.ts'
import type { ProcessRow } from './messages.ts'
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
      // Where the store cannot be read, what was read last stands; the health says why.
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
