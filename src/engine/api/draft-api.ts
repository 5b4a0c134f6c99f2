/** Public types of drafts: edits of a process that are not confirmed. */
import type { Mistake } from '../../core/faults.ts'
import type { PutResult } from './process-api.ts'

export interface DraftInfo {
  readonly conv_id: string
  /** The number by which the API names the draft. */
  readonly version: number
  /** The version of the process that it changes. */
  readonly base: number
  /** Null for one of the library. */
  readonly user: string | null
  readonly opened_time_ms: number
  readonly change_time_ms: number
  /** Of the whole definition. */
  readonly nodes: number
}

export interface DraftDetails extends DraftInfo {
  /** The whole definition as JSON text. */
  readonly definition_text: string
  readonly changes: readonly {
    readonly node_id: string
    readonly change: 'created' | 'changed' | 'removed'
  }[]
  /** Whether parameters, title or other members beside the nodes are changed. */
  readonly is_rest_changed: boolean
  /** Another version was confirmed since: `rebase`, or discard it. */
  readonly is_outdated: boolean
}

export interface DraftCheck {
  /** With the node of each, where it is in one. A draft with any is not confirmed. */
  readonly mistakes: readonly Mistake[]
  readonly warnings: readonly Mistake[]
}

export interface ConfirmOptions {
  /** For removed nodes with tasks: old node id → the node to which tasks migrate. */
  readonly moves?: Readonly<Record<string, string>>
  /** Checks everything without a change. */
  readonly dry_run?: boolean
}

/**
 * A draft of one process and one author. It is stored, and nothing else sees it before `confirm`.
 * Calls reject with `draft_outdated` once another version was confirmed, and with `not_possible`
 * over a bound: 8 drafts of a process, 200 of an author, 10,000 nodes, 5 MiB of changes. A week
 * after its last edit a draft is gone.
 */
export interface ProcessDraft {
  /** Undefined where there is none. */
  show(): Promise<DraftDetails | undefined>
  /** The whole definition, as JSON text or plain values, in place of all earlier edits. */
  put(definition: unknown): Promise<DraftInfo>
  /** Creates the node, or replaces it whole. */
  putNode(node: unknown): Promise<DraftInfo>
  /** Rejects with `node_not_found`. */
  removeNode(node_id: string): Promise<DraftInfo>
  /** What `confirm` would say of the definition, also while it is outdated. */
  check(): Promise<DraftCheck>
  /**
   * Makes the draft the next version, as `put` of a definition, or changes nothing: rejects with
   * `bad_definition` and `tasks_in_node`, whose `places` name the nodes.
   */
  confirm(options?: ConfirmOptions): Promise<PutResult>
  /**
   * Puts an outdated draft on the newest version. Rejects with `draft_outdated` where both have
   * changed the same node.
   */
  rebase(): Promise<DraftInfo>
  /** Whether there was one. */
  discard(): Promise<boolean>
}

export interface Drafts {
  /** `user` is the author, as in the API; default: the library itself. Reads nothing yet. */
  draft(conv_id: string | number, options?: DraftOptions): ProcessDraft
  /** Of all authors. */
  drafts(conv_id: string | number): Promise<DraftInfo[]>
}

export interface DraftOptions {
  readonly user?: string | number
}
