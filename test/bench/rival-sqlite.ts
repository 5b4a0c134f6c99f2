/**
 * The rival of the in-process cells: what one would write by hand on better-sqlite3 for the same
 * work. One table, prepared statements, WAL, and `synchronous = FULL`, so that each transaction is
 * on disk before its answer; no process is walked and nothing is checked but the ref.
 *
 * Requests that come in one turn of the event loop share a transaction: one op of one caller has
 * its own, a request of a hundred has one, and 64 callers together have one.
 */

import type { Refs, SqliteName, Verb } from './cells.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { cpuSeconds, footprintOf, removeFiles } from './resource-usage.ts'
import { inTurns, openTable, type Table } from './sqlite-table.ts'
import type { SideSlot } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import { opOf, opSource, refOf } from './workload.ts'

export type SqliteCalls = typeof calls

interface OpenOptions {
  readonly path: string
  /** Tasks under the numbers from 0 on: stored already, or made now if `is_new`. */
  readonly tasks: number
  readonly is_new: boolean
  readonly refs: Refs
  readonly form: SqliteName
}

interface Load extends Span {
  readonly verb: Verb
  readonly ops: number
  readonly callers: number
}

const fill_batch = 10_000

let current: { readonly opening: OpenOptions; readonly table: Table } | undefined

const calls = {
  open(opening: OpenOptions): void {
    const { path, tasks, is_new, refs, form } = opening
    const table = openTable(path, form)
    current = { opening, table }
    for (let first = 0; is_new && first < tasks; first += fill_batch) {
      const count = Math.min(fill_batch, tasks - first)
      table.apply(Array.from({ length: count }, (_, n) => opOf('create', first + n, refs)))
    }
  },

  async run(load: Load): Promise<SideSlot> {
    const { table, opening } = current as NonNullable<typeof current>
    const { verb, ops } = load
    const { tasks, refs, path } = opening
    const source = opSource(tasks, refs)
    const take = (): number[] => source.take(verb, ops)
    const apply = inTurns(table.apply)
    const before_s = cpuSeconds()
    const slot = await closedLoop(load, async () => {
      if (verb === 'read') checkRead(table.read(refOf(take()[0] as number, refs)))
      else await apply(take().map((n) => opOf(verb, n, refs)))
    })
    const cpu_s = cpuSeconds() - before_s
    return { ...slot, cpu_s, settle_s: 0, footprint: await footprintOf(path, table.count()) }
  },

  async close({ remove }: { remove: boolean }): Promise<void> {
    if (current === undefined) return
    const { opening, table } = current
    current = undefined
    table.close()
    if (remove) await removeFiles(opening.path)
  },
}

serveCalls(calls, () => calls.close({ remove: false }))

function checkRead(data: unknown): void {
  if ((data as { amount?: number } | undefined)?.amount !== 120.5) throw new Error('read')
}
