/**
 * One side of a group of cells.
 *
 * A group is the cells that the same processes measure: those of one file, one kind of refs and
 * one server. Its sides live as long as the group, so that the heap and caches that one group
 * leaves behind do not affect the next.
 */
import type { Cell, FileName, Refs, Scale, ServerName } from './cells.ts'
import type { BenchFolder } from './folder.ts'
import type { LoadClients } from './load-clients.ts'
import type { SideSlot } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import type { Templates } from './templates.ts'

export interface Side {
  measure(cell: Cell, span: Span): Promise<SideSlot>
  stop(): Promise<void>
}

export interface Group {
  readonly file: FileName
  readonly refs: Refs
  readonly server: ServerName
  readonly cells: readonly Cell[]
}

/** What all sides of a run share. */
export interface Run {
  readonly folder: BenchFolder
  readonly scale: Scale
  readonly clients: LoadClients
  readonly templates: Templates
  /** Node flags of the engine processes. */
  readonly engine_flags: string[]
}
