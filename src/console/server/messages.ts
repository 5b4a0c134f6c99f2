/**
 * What the operator's page and its server say to each other, as types: JSON in both directions.
 *
 * A call is `POST BASE/api/NAME` with the input as its body and the session's token in the header
 * `X-Conveyor-Token`; a row of `ConsoleCalls` for each. A refusal is `{error, description}` with a
 * status above 399, and `mistakes` where the code is `bad_definition`. `GET BASE/live?view=…` is
 * the same view by server-sent events: `event: frame`, at most four a second. Data, refs and search
 * texts are in bodies only, never in a URL. Data is JSON text, so that numbers keep their digits.
 */
import type { Status } from '../../core/model.ts'
import type { ImportResult } from '../../engine/api/process-api.ts'
import type { BulkAction, BulkJob, TaskPage } from '../../engine/api/search-api.ts'
import type { ActionResult } from '../../engine/api/task-api.ts'
import { type ConsoleRight, console_rights } from '../../engine/api/user-api.ts'
import type { SentFilter, SentQuery } from '../../task-operations/searches.ts'
import type { TaskView } from '../../task-operations/task-view.ts'
import type { Drawing } from '../diagram/drawing.ts'
import type { Overview, ProcessCounts, ProcessRow } from '../overview/messages.ts'

/** Each includes the ones before it. */
export const rights = console_rights
export type Right = ConsoleRight

export const token_header = 'x-conveyor-token'

export interface Session {
  /** In the log: `link`, a user's id, or the name that the embedder gave. */
  readonly name: string
  readonly right: Right
  /** For `token_header`. */
  readonly token: string
  readonly version: string
  /** Where callers reach the servers of this process, for commands to copy; absent ones are off. */
  readonly servers: { readonly http?: string; readonly grpc?: string }
  /** How the command line is run where the server is, such as `conveyor VERB --db a.lmdb`. */
  readonly command_line: string
}

export type SignIn = { readonly link: string } | { readonly user: string; readonly secret: string }

/** What a live view is of; `obj_id` and ids alone, so that it can be in a URL. */
export type View =
  | { readonly view: 'overview' }
  | { readonly view: 'process'; readonly conv_id: string }
  | { readonly view: 'task'; readonly obj_id: string }

/** The first of a connection is whole; a later overview has only what differs. */
export type Frame =
  | { readonly view: 'overview'; readonly overview: Overview }
  | { readonly view: 'process'; readonly counts: ProcessCounts }
  | { readonly view: 'task'; readonly task: ShownTask }

/** One task on its own page: history, wait and data. */
export interface ShownTask extends TaskView {
  readonly process_title: string
  /** The task that this one has called and waits for. */
  readonly called?: BoundTask
  /** The task that has called this one and waits for its reply. */
  readonly caller?: BoundTask
}

export interface BoundTask extends NamedTask {
  readonly title: string
}

/** A task in a table: without data. */
export type TaskRow = Omit<TaskView, 'data_text' | 'history'>

export interface Rows extends Pick<TaskPage, 'cursor' | 'scanned' | 'sorted_by' | 'reached_ms'> {
  readonly rows: readonly TaskRow[]
}

export interface ProcessPage {
  readonly row: Omit<ProcessRow, 'done' | 'by_status'>
  /** Of the version that was asked for. */
  readonly version: number
  readonly drawing: Drawing
  /** The drawing is a plain grid until the layout is there: ask with `waits`. */
  readonly is_drawing: boolean
  /** The definition as JSON text, indented. */
  readonly definition_text: string
  /** All that are kept, the newest first. */
  readonly versions: readonly number[]
  readonly aliases: readonly string[]
}

/** What became of a node from one version to another. */
export interface NodeChange {
  readonly node_id: string
  readonly title: string
  readonly change: 'added' | 'removed' | 'changed' | 'moved_only'
  /** Lines of its JSON that differ, each with `- ` or `+ ` before it. */
  readonly lines: readonly string[]
}

export interface VersionChanges {
  readonly from: Drawing
  readonly to: Drawing
  readonly nodes: readonly NodeChange[]
  /** Of what is no node, such as parameters. */
  readonly lines: readonly string[]
}

/** What an import would do, or has done. */
export interface Imported {
  readonly result: ImportResult
  readonly is_done: boolean
}

/** A mistake of a definition, with the node that it is in. */
export interface Mistake {
  readonly text: string
  readonly conv_id?: string
  readonly node_id?: string
  readonly node_title?: string
}

export interface NamedTask {
  readonly conv_id: string
  readonly obj_id: string
}

/** Where a call has changed something, that is in the log with who did it. */
export interface ConsoleCalls {
  /** Without a session; also `GET BASE/session`, for a page that was loaded again. */
  sign_in: { in: SignIn; out: Session }
  sign_out: { in: Record<string, never>; out: Record<string, never> }

  // look
  frame: { in: View; out: Frame }
  process: {
    in: { conv_id: string; version?: number; laid_out?: boolean; waits?: boolean }
    out: ProcessPage
  }
  versions: { in: { conv_id: string; from: number; to: number }; out: VersionChanges }
  /** The tasks whose ref or id this is, or whose ref begins with it; at most 20. */
  find: { in: { text: string; conv_id?: string }; out: { rows: readonly TaskRow[] } }
  tasks: { in: SentQuery; out: Rows }
  task: { in: { obj_id: string }; out: ShownTask }
  bulk_jobs: { in: Record<string, never>; out: { jobs: readonly BulkJob[] } }

  // operate
  modify: {
    in: NamedTask & { data_text: string; node_id?: string; is_sync?: boolean }
    out: ActionOutcome
  }
  retry: {
    in: NamedTask & { node_id?: string }
    out: ActionOutcome & { readonly settled?: Settled }
  }
  move: { in: NamedTask & { node_id: string }; out: ActionOutcome }
  cancel: { in: NamedTask; out: ActionOutcome }
  /** Counts first: changes nothing. `is_done` false: call again with the cursor and add. */
  bulk_count: { in: Bulk & { cursor?: string }; out: BulkJob }
  /** Works for about a second. `is_done` false: call `bulk_resume` with the id. */
  bulk: { in: Bulk; out: WorkedJob }
  bulk_resume: { in: { id: string }; out: WorkedJob }

  // administer
  pause: { in: { conv_id: string }; out: Record<string, never> }
  resume: { in: { conv_id: string }; out: Record<string, never> }
  /** `content_base64` of a .json or .zip file; checks only, unless `store`. */
  import: {
    in: {
      name: string
      content_base64: string
      conv_id?: string
      moves?: Readonly<Record<string, string>>
      store: boolean
    }
    out: Imported
  }
}

export type CallName = keyof ConsoleCalls

/** Of tasks chosen one by one, or of all that a filter finds. */
export interface Bulk {
  readonly action: BulkAction
  readonly filter: SentFilter
  readonly obj_ids?: readonly string[]
  readonly data_text?: string
  readonly to_node_id?: string
}

/** A refused op is an outcome, with the code and a sentence. */
export type ActionOutcome = Pick<ActionResult, 'proc' | 'description' | 'was'> & {
  readonly now?: { readonly status: Status; readonly node_id: string }
}

/** What became of a retried task; `running`: its call, code or handler has not answered yet. */
export type Became = 'ended' | 'waiting' | 'failed' | 'running'
export type BecameCounts = Readonly<Record<Became, number>>

export interface Settled {
  readonly became: Became
  /** Absent where it has ended in a node that keeps none. */
  readonly task?: TaskRow
}

/** `became` counts the tasks that this call has retried. */
export interface WorkedJob extends BulkJob {
  readonly became?: BecameCounts
}

export interface Refusal {
  readonly error: string
  readonly description: string
  readonly mistakes?: readonly Mistake[]
  readonly warnings?: readonly Mistake[]
}

/** Of the rows of a CSV file that was sent to make tasks of them. */
export interface CsvOutcome {
  readonly created: number
  readonly refused: number
  /** Up to this line all are answered. */
  readonly line: number
  /** The first of them, by their lines. */
  readonly mistakes: readonly { readonly line: number; readonly says: string }[]
  /** Why it has stopped there; absent where all was read. */
  readonly stopped?: string
}
