/**
 * The rival of in-process cells: the same work by hand on better-sqlite3. One table, prepared
 * statements, WAL and `synchronous = FULL`, so that each transaction is on disk before its answer; it
 * executes no process and checks only the ref.
 *
 * Requests of one turn of the event loop share a transaction: each op of a lone caller has its own,
 * a request of 100 ops has one, and 64 callers together have one.
 */
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import type { FileCalls, FileOptions } from './load.ts'
import { cpuSeconds, footprintOf, removeFiles } from './resource-usage.ts'
import { groupCommit, openTable, type Table } from './sqlite-table.ts'
import { assertRead, opOf, opSource, refOf } from './workload.ts'

const fill_batch = 10_000

let current: { readonly options: FileOptions; readonly table: Table } | undefined

const calls: FileCalls = {
  async open(options) {
    const { path, tasks, is_new, refs, sqlite = 'sqlite' } = options
    const table = openTable(path, sqlite)
    current = { options, table }
    for (let first = 0; is_new && first < tasks; first += fill_batch) {
      const count = Math.min(fill_batch, tasks - first)
      table.apply(Array.from({ length: count }, (_, n) => opOf('create', first + n, refs)))
    }
  },

  async run(load) {
    const { table, options } = current as NonNullable<typeof current>
    const { verb, ops } = load
    const { tasks, refs, path } = options
    const source = opSource(tasks, refs)
    const take = (): number[] => source.take(verb, ops)
    const apply = groupCommit(table.apply)
    const before_s = cpuSeconds()
    const slot = await closedLoop(load, async () => {
      if (verb === 'read') assertRead(table.read(refOf(take()[0] as number, refs)))
      else await apply(take().map((n) => opOf(verb, n, refs)))
    })
    const cpu_s = cpuSeconds() - before_s
    return { ...slot, cpu_s, settle_s: 0, footprint: await footprintOf(path, table.count()) }
  },

  async close({ remove }) {
    if (current === undefined) return
    const { options, table } = current
    current = undefined
    table.close()
    if (remove) await removeFiles(options.path)
  },
}

serveCalls(calls, () => calls.close({ remove: false }))
