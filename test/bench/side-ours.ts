/**
 * Our sides: an engine in a child of its own, with the server of the group or none. A copy of a large
 * file stays open for the whole group; a small file is made for each slot and removed after it.
 */
import type { ReplayMode } from '../../src/engine/api/engine-api.ts'
import { type Cell, cellName, tasksOf } from './cells.ts'
import { startChild } from './child.ts'
import type { EngineCalls } from './engine-child.ts'
import type { Endpoint } from './load-clients.ts'
import type { Group, Run, Side } from './side.ts'
import type { Slot } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import type { WatchName } from './watches.ts'

export interface OurForm {
  readonly name: 'ours' | 'tenth'
  readonly watches?: readonly WatchName[]
  /** With `answer`, requests over gRPC have a `request_key`. */
  readonly replay?: ReplayMode
}

export async function startOurs(run: Run, group: Group, form: OurForm): Promise<Side> {
  const { folder, scale, clients } = run
  const { name, watches, replay } = form
  const { refs, server } = group
  const engine = startChild<EngineCalls>(folder.script('engine-child'), run.engine_flags)
  // `tenth` runs the load of the huge file on the large one.
  const file = name === 'tenth' ? 'large' : group.file
  const tasksIn = (cell: Cell): number => tasksOf({ ...cell, file }, scale)
  const options = { refs, server, tls_folder: folder.tls_folder, watches, replay }

  const openNew = (tasks: number): Promise<Endpoint> =>
    engine.call('open', { ...options, path: folder.newPath(), tasks, is_new: true })

  let open_endpoint: Endpoint | undefined
  if (file !== 'empty') {
    const tasks = tasksIn(group.cells[0] as Cell)
    const path = await folder.copy(await run.templates.engine(tasks, refs))
    open_endpoint = await engine.call('open', { ...options, path, tasks, is_new: false })
  }

  const load = async (cell: Cell, tasks: number, span: Span, endpoint: Endpoint): Promise<Slot> => {
    const { verb, ops, callers } = cell
    if (server === 'in-process') return engine.call('run', { verb, ops, callers, ...span })
    return clients.send(name, cell, tasks, span, { ...endpoint, is_keyed: replay === 'answer' })
  }

  return {
    async measure(cell, span) {
      const tasks = tasksIn(cell)
      const endpoint = open_endpoint ?? (await openNew(tasks))
      const before = await engine.call('usage')
      const slot = await load(cell, tasks, span, endpoint)
      const after = await engine.call('usage')
      const created = after.footprint.tasks - before.footprint.tasks
      if (created !== (cell.verb === 'create' ? slot.whole.ops : 0)) {
        throw new Error(`${cellName(cell)}: ${slot.whole.ops} ops were ok, ${created} new tasks`)
      }
      if (open_endpoint === undefined) await engine.call('close', { remove: true })
      return {
        ...slot,
        footprint: after.footprint,
        cpu_s: after.idle_cpu_s - before.cpu_s,
        settle_s: after.settle_s,
      }
    },
    async stop() {
      await engine.call('close', { remove: true })
      await engine.stop()
    },
  }
}
