/**
 * Template files: large data files of the engine and of SQLite, by number of tasks and kind of refs. A
 * template is created when it is first needed, and copied for each process that opens one.
 */
import type { Refs } from './cells.ts'
import { startChild } from './child.ts'
import type { EngineCalls } from './engine-child.ts'
import type { BenchFolder } from './folder.ts'
import type { FileCalls } from './load.ts'
import type { Footprint } from './statistics.ts'

export interface Templates {
  engine(tasks: number, refs: Refs): Promise<string>
  sqlite(tasks: number, refs: Refs): Promise<string>
}

export interface TemplateLine {
  readonly by: 'engine' | 'sqlite'
  readonly tasks: number
  readonly refs: Refs
  readonly seconds: number
  /** Of engine files only. */
  readonly footprint?: Footprint
}

/** Calls `onMade` after each new template. */
export function makeTemplates(
  folder: BenchFolder,
  onMade: (made: TemplateLine) => void,
): Templates {
  const paths = new Map<string, Promise<string>>()
  const once = (key: string, make: () => Promise<string>): Promise<string> => {
    const path = paths.get(key) ?? make()
    paths.set(key, path)
    return path
  }

  async function makeEngine(tasks: number, refs: Refs): Promise<string> {
    const path = folder.newPath()
    const child = startChild<EngineCalls>(folder.script('engine-child'))
    const { tls_folder } = folder
    const start_ms = performance.now()
    const options = { path, tasks, is_new: true, refs, tls_folder }
    await child.call('open', { ...options, server: 'in-process' })
    const seconds = (performance.now() - start_ms) / 1000
    const { footprint } = await child.call('usage')
    await child.stop()
    onMade({ by: 'engine', tasks, refs, seconds, footprint })
    return path
  }

  async function makeSqlite(tasks: number, refs: Refs): Promise<string> {
    const path = folder.newPath()
    const child = startChild<FileCalls>(folder.script('rival-sqlite'))
    const start_ms = performance.now()
    await child.call('open', { path, tasks, is_new: true, refs, sqlite: 'sqlite-tuned' })
    const seconds = (performance.now() - start_ms) / 1000
    await child.stop()
    onMade({ by: 'sqlite', tasks, refs, seconds })
    return path
  }

  return {
    engine: (tasks, refs) => once(`engine ${tasks} ${refs}`, () => makeEngine(tasks, refs)),
    sqlite: (tasks, refs) => once(`sqlite ${tasks} ${refs}`, () => makeSqlite(tasks, refs)),
  }
}
