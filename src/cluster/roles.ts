/** What a node is, and what it tells of itself. */

/**
 * `joining`: it has not reached the database yet, or reads a snapshot; `standby`: it follows the
 * owner; `owner`; `ended`: it has given the ownership up, has lost it, or does not wait for it any
 * more.
 */
export type Role = 'joining' | 'standby' | 'owner' | 'ended'

export interface NodeStatus {
  readonly role: Role
  readonly node: string
  readonly partition: number
  /** As far as this node has seen; 0 before. */
  readonly epoch: number
  /** Position of this node: of the last frame that it has. */
  readonly seq: number
  /** The owner, as this node last saw it; undefined while there is none. */
  readonly owner: { readonly node: string; readonly address: string } | undefined
  /** Since when the database does not answer; undefined while it does. */
  readonly away_since_ms: number | undefined
  /** Why, in the words of the database or the system. */
  readonly away_reason: string | undefined
  /** Whether an owner may answer now. */
  readonly has_lease: boolean
  /** Of a standby: when it last had everything that the database had. By the steady clock. */
  readonly caught_up_ms: number | undefined
  /** While it loads a snapshot, whose position `seq` is then. */
  readonly loading: { readonly bytes: number; readonly of_bytes: number } | undefined
  /** Of an owner: the time of the last append. */
  readonly append_ms: number
}
