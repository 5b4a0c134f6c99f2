/**
 * SQLite by hand as a side: like ours, on a copy of a large file or on a small one of its own.
 */
import { type Cell, type SqliteName, tasksOf } from './cells.ts'
import { startChild } from './child.ts'
import type { SqliteCalls } from './rival-sqlite.ts'
import type { Group, Run, Side } from './side.ts'

export async function startSqlite(run: Run, group: Group, name: SqliteName): Promise<Side> {
  const { folder, scale, templates } = run
  const { file, refs, cells } = group
  const child = startChild<SqliteCalls>(folder.script('rival-sqlite'))
  if (file !== 'empty') {
    const tasks = tasksOf(cells[0] as Cell, scale)
    const path = await folder.copy(await templates.sqlite(tasks, refs))
    await child.call('open', { path, tasks, is_new: false, refs, form: name })
  }
  return {
    async measure(cell, span) {
      const { verb, ops, callers } = cell
      if (file === 'empty') {
        const tasks = tasksOf(cell, scale)
        await child.call('open', { path: folder.newPath(), tasks, is_new: true, refs, form: name })
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
