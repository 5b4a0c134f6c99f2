/**
 * Sides without an engine that work on a data file of their own: the floor of in-process cells, and
 * SQLite. A copy of a large file stays open for the whole group; a small file is made for each slot
 * and removed after it.
 */
import { type Cell, type SqliteName, tasksOf } from './cells.ts'
import { startChild } from './child.ts'
import type { FileCalls } from './load.ts'
import type { Group, Run, Side } from './side.ts'

/** `sqlite`: the form of the table; without it the side is the floor. */
export async function startFileSide(run: Run, group: Group, sqlite?: SqliteName): Promise<Side> {
  const { folder, scale, templates } = run
  const { file, refs, cells } = group
  const child = startChild<FileCalls>(
    folder.script(sqlite === undefined ? 'floor-store' : 'rival-sqlite'),
  )
  if (file !== 'empty') {
    const tasks = tasksOf(cells[0] as Cell, scale)
    const template = sqlite === undefined ? templates.engine : templates.sqlite
    const path = await folder.copy(await template(tasks, refs))
    await child.call('open', { path, tasks, is_new: false, refs, sqlite })
  }
  return {
    async measure(cell, span) {
      const { verb, ops, callers } = cell
      if (file === 'empty') {
        const tasks = tasksOf(cell, scale)
        await child.call('open', { path: folder.newPath(), tasks, is_new: true, refs, sqlite })
      }
      const slot = await child.call('run', { verb, ops, callers, ...span })
      if (file === 'empty') await child.call('close', { remove: true })
      return slot
    },
    async stop() {
      await child.call('close', { remove: true })
      await child.stop()
    },
  }
}
