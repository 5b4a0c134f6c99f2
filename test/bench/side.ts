/**
 * One side of a group of cells: what it can be asked, and how the files of a side come and go.
 *
 * A group is what is measured in turns by the same processes: cells of one file, one kind of refs
 * and one server. Its sides live as long as the group, so what one group did to a heap or a cache
 * is not in the numbers of the next.
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

/** What the sides of a run are made of. */
export interface Run {
  readonly folder: BenchFolder
  readonly scale: Scale
  readonly clients: LoadClients
  readonly templates: Templates
  /** Flags for the node of the engines' processes. */
  readonly engine_flags: string[]
  /** Tells people something now. */
  print(text: string): void
}
