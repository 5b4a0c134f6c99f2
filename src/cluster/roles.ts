/** What a node is, and what it tells of itself. Its times are those of the steady clock. */
import { steadyClock } from '../core/clock.ts'

/**
 * `joining`: it has not reached the database yet, or reads a snapshot; `standby`: it follows the
 * owner; `owner`; `ended`: it has given the ownership up, has lost it, or does not wait for it any
 * more.
 */
export const roles = ['joining', 'standby', 'owner', 'ended'] as const

export type Role = (typeof roles)[number]

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
  /** Why this standby could not be the owner; undefined where it could. */
  readonly unfit: string | undefined
  /** Whether an owner may answer now. */
  readonly has_lease: boolean
  /** Of a standby: when it last had everything that the database had. By the steady clock. */
  readonly caught_up_ms: number | undefined
  /** While it loads a snapshot, whose position `seq` is then. */
  readonly loading: { readonly bytes: number; readonly of_bytes: number } | undefined
  /** Of a standby: position of the last frame that it has seen the database to have. */
  readonly head_seq: number | undefined
  /** Of an owner: the time of the last append. */
  readonly append_ms: number
  /** How many times it has become the owner since its program started. */
  readonly takeovers: number
  /** Of an owner: the newest snapshot, by the steady clock, if there is one. */
  readonly snapshot: { readonly bytes: number; readonly written_ms: number } | undefined
  /** Of an owner: bytes of the commit log after that; undefined until it has looked. */
  readonly log_bytes: number | undefined
}

/**
 * Who else is to be asked, for somebody who has asked a node that is not the owner: a caller, at
 * the address where the owner serves callers, or an operator, whose commands run beside the owner.
 */
export function notOwnerText(
  { node, role, owner }: NodeStatus,
  asks: 'caller' | 'operator' = 'caller',
): string {
  const what = role === 'standby' ? 'is a standby' : 'is not the owner'
  if (owner === undefined || owner.node === node) return `the node ${node} ${what}; ask again`
  const says = `the node ${node} ${what}; the owner is ${owner.node}`
  if (asks === 'caller') return owner.address === '' ? says : `${says} at ${owner.address}`
  const callers = owner.address === '' ? '' : ` (its callers ask ${owner.address})`
  return `${says}: run it on the machine of ${owner.node}${callers}`
}

/** Why this node could not take over at once; undefined for a standby that could. */
export function notReadyText(status: NodeStatus): string | undefined {
  const { role, unfit } = status
  if (unfit !== undefined) return unfit
  if (role === 'owner') return 'it owned the data until now, and is not a standby yet'
  if (role !== 'standby') return 'it is not a standby yet, or not any more'
  const lag_s = lagOf(status)
  if (lag_s === undefined) return 'it has yet to read what was committed'
  return lag_s > lag_ready_s
    ? `it has not had all that was committed for ${Math.round(lag_s)} s`
    : undefined
}

const lag_ready_s = 5

/** Why this node cannot commit or take over now; undefined while the database answers it. */
export function commitLogTrouble({ role, has_lease, away_reason }: NodeStatus): string | undefined {
  if (away_reason !== undefined) return away_reason
  return role === 'owner' && !has_lease ? 'the lease has run out' : undefined
}

/** For how many seconds a node has not had all that was committed; undefined before it ever had. */
export function lagOf({ role, caught_up_ms }: NodeStatus): number | undefined {
  if (role === 'owner') return 0
  return caught_up_ms && Math.max(0, steadyClock.now_ms() - caught_up_ms) / 1000
}

/** How many frames a node lacks of what it has seen; undefined before it has. */
export function positionLagOf({ role, seq, head_seq }: NodeStatus): number | undefined {
  if (role === 'owner') return 0
  return head_seq === undefined ? undefined : Math.max(0, head_seq - seq)
}

/** In seconds; undefined where there is no snapshot, and but at the owner. */
export function snapshotAgeOf({ snapshot }: NodeStatus): number | undefined {
  return snapshot && Math.max(0, steadyClock.now_ms() - snapshot.written_ms) / 1000
}

/** For how many seconds the database has not answered; 0 while it does. */
export function awayOf({ away_since_ms }: NodeStatus): number {
  return away_since_ms === undefined ? 0 : (steadyClock.now_ms() - away_since_ms) / 1000
}
