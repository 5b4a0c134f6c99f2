/**
 * Sides without an engine that work on a data file of their own: the floor of in-process cells, and
 * SQLite. A large file is a copy that stays open for the whole group; a small one is made for each
 * slot and removed after it.
 */
import { type Cell, type Refs, type SqliteName, tasksOf } from './cells.ts'
import { startChild } from './child.ts'
import type { StoreFloorCalls } from './floor-store.ts'
import type { Load, OpenOptions } from './load.ts'
import type { SqliteCalls } from './rival-sqlite.ts'
import type { Group, Run, Side } from './side.ts'
import type { SideSlot } from './statistics.ts'

interface FileChild {
  open(options: OpenOptions): Promise<void>
  run(load: Load): Promise<SideSlot>
  /** Closes and removes the open file, if any. */
  close(): Promise<void>
  stop(): Promise<void>
}

export function startStoreFloor(run: Run, group: Group): Promise<Side> {
  const child = startChild<StoreFloorCalls>(run.folder.script('floor-store'))
  return startFileSide(run, group, run.templates.engine, {
    open: (options) => child.call('open', options),
    run: (load) => child.call('run', load),
    close: () => child.call('close', { remove: true }),
    stop: child.stop,
  })
}

export function startSqlite(run: Run, group: Group, form: SqliteName): Promise<Side> {
  const child = startChild<SqliteCalls>(run.folder.script('rival-sqlite'))
  return startFileSide(run, group, run.templates.sqlite, {
    open: (options) => child.call('open', { ...options, form }),
    run: (load) => child.call('run', load),
    close: () => child.call('close', { remove: true }),
    stop: child.stop,
  })
}

async function startFileSide(
  { folder, scale }: Run,
  { file, refs, cells }: Group,
  template: (tasks: number, refs: Refs) => Promise<string>,
  child: FileChild,
): Promise<Side> {
  if (file !== 'empty') {
    const tasks = tasksOf(cells[0] as Cell, scale)
    const path = await folder.copy(await template(tasks, refs))
    await child.open({ path, tasks, is_new: false, refs })
  }
  return {
    async measure(cell, { warmup_s, slot_s }) {
      const { verb, ops, callers } = cell
      if (file === 'empty') {
        const tasks = tasksOf(cell, scale)
        await child.open({ path: folder.newPath(), tasks, is_new: true, refs })
      }
      const slot = await child.run({ verb, ops, callers, warmup_s, slot_s })
      if (file === 'empty') await child.close()
      return slot
    },
    async stop() {
      await child.close()
      await child.stop()
    },
  }
}
