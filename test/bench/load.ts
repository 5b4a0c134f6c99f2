/**
 * What a side's child is asked to do: which file to open and what to send in a slot. Types only, for
 * they cross between processes.
 */
import type { ReplayMode } from '../../src/engine/api/engine-api.ts'
import type { Refs, SqliteName, Verb, WriteVerb } from './cells.ts'
import type { SideSlot } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import type { WatchName } from './watches.ts'

export interface OpenOptions {
  readonly path: string
  /** Waiting tasks in the file, under the numbers from 0 on. */
  readonly tasks: number
  /** The file is created, and the tasks stored in it, by this call. */
  readonly is_new: boolean
  readonly refs: Refs
  /** How the engine is watched; by default not at all. */
  readonly watches?: readonly WatchName[] | undefined
  /** What a repeated request gets; by default what the engine does by itself. */
  readonly replay?: ReplayMode | undefined
}

export interface Load extends Span {
  readonly verb: Verb
  /** Ops in one request. */
  readonly ops: number
  readonly callers: number
}

/** The calls of a child that works on a data file without an engine. */
export type FileCalls = {
  open(options: FileOptions): Promise<void>
  run(load: Load): Promise<SideSlot>
  close(options: { remove: boolean }): Promise<void>
}

export interface FileOptions extends OpenOptions {
  /** The form of SQLite's table. */
  readonly sqlite?: SqliteName | undefined
}

/** Requests that a client serialises before the slot; no two are equal. */
export interface PrepareOptions {
  readonly verb: WriteVerb
  readonly ops: number
  readonly requests: number
  readonly tasks: number
  readonly refs: Refs
  /** The number of the first task, which the others follow; by default the source's next ones. */
  readonly first?: number
}
