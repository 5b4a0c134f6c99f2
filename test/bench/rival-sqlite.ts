/**
 * The rival of in-process cells: the same work by hand on better-sqlite3. One table, prepared
 * statements, WAL and `synchronous = FULL`, so that each transaction is on disk before its answer; it
 * executes no process and checks only the ref.
 *
 * Requests of one turn of the event loop share a transaction: each op of a lone caller has its own,
 * a request of 100 ops has one, and 64 callers together have one.
 */
import type { SqliteName } from './cells.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import type { Load, OpenOptions } from './load.ts'
import { cpuSeconds, footprintOf, removeFiles } from './resource-usage.ts'
import { groupCommit, openTable, type Table } from './sqlite-table.ts'
import type { SideSlot } from './statistics.ts'
import { opOf, opSource, refOf } from './workload.ts'

export type SqliteCalls = typeof calls

interface SqliteOptions extends OpenOptions {
  readonly form: SqliteName
}

const fill_batch = 10_000

let current: { readonly options: SqliteOptions; readonly table: Table } | undefined

const calls = {
  open(options: SqliteOptions): void {
    const { path, tasks, is_new, refs, form } = options
    const table = openTable(path, form)
    current = { options, table }
    for (let first = 0; is_new && first < tasks; first += fill_batch) {
      const count = Math.min(fill_batch, tasks - first)
      table.apply(Array.from({ length: count }, (_, n) => opOf('create', first + n, refs)))
    }
  },

  async run(load: Load): Promise<SideSlot> {
    const { table, options } = current as NonNullable<typeof current>
    const { verb, ops } = load
    const { tasks, refs, path } = options
    const source = opSource(tasks, refs)
    const take = (): number[] => source.take(verb, ops)
    const apply = groupCommit(table.apply)
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
    const { options, table } = current
    current = undefined
    table.close()
    if (remove) await removeFiles(options.path)
  },
}

serveCalls(calls, () => calls.close({ remove: false }))

function checkRead(data: unknown): void {
  if ((data as { amount?: number } | undefined)?.amount !== 120.5)
    throw new Error('the task that was read is another')
}
