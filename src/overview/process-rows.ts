/**
 * A row for each process. Their numbers are those of the flow counters, so only the records of the
 * processes are read from the file, and these at most once a second.
 */
import type { Clock } from '../core/clock.ts'
import { isFault } from '../core/faults.ts'
import type { Status } from '../core/model.ts'
import type { Flow, ProcessHead } from '../engine/flow/flow.ts'
import type { FlowNumbers } from '../engine/flow/flow-counters.ts'
import type { ProcessRow } from './messages.ts'
import { atMostEvery } from './shared-reading.ts'

const rows_every_ms = 200
const heads_every_ms = 1_000

export interface ProcessRows {
  /** In the order of their conv_ids. A row that says the same is the same object. */
  read(): Promise<readonly ProcessRow[]>
}

interface KnownRow {
  readonly head: ProcessHead
  readonly row: ProcessRow
}

export function newProcessRows(flow: Flow, clock: Clock): ProcessRows {
  const heads = atMostEvery(heads_every_ms, clock, flow.heads)
  let known = new Map<string, KnownRow>()

  async function read(): Promise<readonly ProcessRow[]> {
    try {
      const all = await heads()
      const numbers = await flow.numbers(all.map(({ conv_id }) => conv_id))
      known = new Map(
        all.map((head, at) => {
          const last = known.get(head.conv_id)
          const now = numbers[at] as FlowNumbers
          const is_same = last?.head === head && saysSame(last.row, now)
          return [head.conv_id, is_same ? last : { head, row: rowOf(head, now) }]
        }),
      )
    } catch (error) {
      // Where the store cannot be read, what was read last stands; the health says why.
      if (!isFault(error)) throw error
    }
    return [...known.values()].map(({ row }) => row)
  }

  return { read: atMostEvery(rows_every_ms, clock, read) }
}

function rowOf(head: ProcessHead, { by_status, done }: FlowNumbers): ProcessRow {
  return { ...head, by_status: withoutZeros(by_status), done }
}

function saysSame(row: ProcessRow, { by_status, done }: FlowNumbers): boolean {
  for (const [status, count] of Object.entries(by_status)) {
    if ((row.by_status[status as Status] ?? 0) !== count) return false
  }
  return done.every((count, at) => row.done[at] === count)
}

export function withoutZeros(
  counts: Readonly<Record<Status, number>>,
): Partial<Record<Status, number>> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}
