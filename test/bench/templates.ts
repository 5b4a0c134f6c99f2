/**
 * Large files, made once for a run and copied for each process that works on one: of the engine and
 * of SQLite, by number of tasks and kind of refs. A file is made when it is first asked for.
 */
import type { Refs } from './cells.ts'
import { startChild } from './child.ts'
import type { EngineCalls } from './engine-child.ts'
import type { Place } from './place.ts'
import type { SqliteCalls } from './rival-sqlite.ts'
import type { Footprint } from './samples.ts'

export interface Templates {
  engine(tasks: number, refs: Refs): Promise<string>
  sqlite(tasks: number, refs: Refs): Promise<string>
}

export interface Made {
  readonly by: 'engine' | 'sqlite'
  readonly tasks: number
  readonly refs: Refs
  readonly seconds: number
  /** Of the engine only. */
  readonly footprint?: Footprint
}

/** `onMade` hears of each file. */
export function makeTemplates(place: Place, onMade: (made: Made) => void): Templates {
  const paths = new Map<string, Promise<string>>()
  const once = (key: string, make: () => Promise<string>): Promise<string> => {
    const path = paths.get(key) ?? make()
    paths.set(key, path)
    return path
  }

  async function makeEngine(tasks: number, refs: Refs): Promise<string> {
    const path = place.newPath()
    const child = startChild<EngineCalls>(place.child('engine-child'))
    const { tls_folder } = place
    const start_ms = performance.now()
    const opening = { path, tasks, fresh: true, refs, tls_folder }
    await child.ask('open', { ...opening, server: 'in-process' })
    const seconds = (performance.now() - start_ms) / 1000
    const { footprint } = await child.ask('stand')
    await child.stop()
    onMade({ by: 'engine', tasks, refs, seconds, footprint })
    return path
  }

  async function makeSqlite(tasks: number, refs: Refs): Promise<string> {
    const path = place.newPath()
    const child = startChild<SqliteCalls>(place.child('rival-sqlite'))
    const start_ms = performance.now()
    await child.ask('open', { path, tasks, fresh: true, refs, form: 'sqlite-tuned' })
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
