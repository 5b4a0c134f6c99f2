/**
 * The status of a node: its role, its position and what it knows of the owner, with the sentences
 * that callers and operators read. Changes of role and outages of the database emit events and call
 * the listeners. Times are those of the steady clock.
 */
import { type Clock, steadyClock } from '../../core/clock.ts'
import { type Emit, emitNothing } from '../../core/events.ts'
import { health_checks } from '../../core/health-checks.ts'

/**
 * `joining`: not yet in contact with the database, or loading a snapshot; `standby`: follows the
 * owner; `owner`; `ended`: gave the ownership up, lost it, or no longer waits.
 */
export const roles = ['joining', 'standby', 'owner', 'ended'] as const

export type Role = (typeof roles)[number]

export interface NodeStatus {
  readonly role: Role
  readonly node: string
  readonly partition: number
  /** The last epoch seen; 0 before. */
  readonly epoch: number
  /** Position of the node's last frame. */
  readonly seq: number
  /** As last seen; undefined without one. */
  readonly owner: { readonly node: string; readonly address: string } | undefined
  /** Since when the database does not answer; undefined while it does. */
  readonly away_since_ms: number | undefined
  readonly away_reason: string | undefined
  /** Why this standby cannot become the owner; undefined if it can. */
  readonly unfit: string | undefined
  /** Whether an owner may answer now. */
  readonly has_lease: boolean
  /** When a standby last had all that the database had. */
  readonly caught_up_ms: number | undefined
  /** While a snapshot loads; `seq` is then its position. */
  readonly loading: { readonly bytes: number; readonly of_bytes: number } | undefined
  /** Of a standby: position of the last frame seen in the database. */
  readonly head_seq: number | undefined
  /** Of an owner: the time of the last append. */
  readonly append_ms: number
  /** Since the program started. */
  readonly takeovers: number
  /** Of an owner: the newest snapshot, if there is one. */
  readonly snapshot: { readonly bytes: number; readonly written_ms: number } | undefined
  /** Of an owner: bytes of the log after the snapshot; undefined until known. */
  readonly log_bytes: number | undefined
}

/** Refers a caller (to the owner's address) or an operator (to its machine) to the owner. */
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

const ready_lag_s_max = 5

/** Why this node cannot take over at once; undefined for a ready standby. */
export function notReadyText(status: NodeStatus): string | undefined {
  const { role, unfit } = status
  if (unfit !== undefined) return unfit
  if (role === 'owner') return 'it owned the data until now, and is not a standby yet'
  if (role !== 'standby') return 'it is not a standby yet, or not any more'
  const lag_s = lagOf(status)
  if (lag_s === undefined) return 'it has yet to read what was committed'
  return lag_s > ready_lag_s_max
    ? `it has not had all that was committed for ${Math.round(lag_s)} s`
    : undefined
}

/** Why this node cannot commit or take over now; undefined while the database answers. */
export function commitLogError({ role, has_lease, away_reason }: NodeStatus): string | undefined {
  if (away_reason !== undefined) return away_reason
  return role === 'owner' && !has_lease ? health_checks.commit_log.no_lease : undefined
}

/** Seconds since the node last had all commits; undefined before it ever had. */
export function lagOf({ role, caught_up_ms }: NodeStatus): number | undefined {
  if (role === 'owner') return 0
  return caught_up_ms && Math.max(0, steadyClock.now_ms() - caught_up_ms) / 1000
}

/** Frames seen that the node lacks; undefined before the first check. */
export function positionLagOf({ role, seq, head_seq }: NodeStatus): number | undefined {
  if (role === 'owner') return 0
  return head_seq === undefined ? undefined : Math.max(0, head_seq - seq)
}

/** In seconds; undefined without a snapshot, and for nodes other than the owner. */
export function snapshotAgeOf({ snapshot }: NodeStatus): number | undefined {
  return snapshot && Math.max(0, steadyClock.now_ms() - snapshot.written_ms) / 1000
}

/** Seconds without an answer of the database; 0 while it answers. */
export function awayOf({ away_since_ms }: NodeStatus): number {
  return away_since_ms === undefined ? 0 : (steadyClock.now_ms() - away_since_ms) / 1000
}

export interface StatusKeeper {
  current(): NodeStatus
  /** Emits a change of role. */
  set(changes: Partial<NodeStatus>): void
  emit: Emit
  onAway(reason: unknown): void
  onBack(): void
  /** Called after each change of role; the returned function unsubscribes. */
  onRole(listener: (status: NodeStatus) => void): () => void
  /** Starts a life, whose events go to `emit`. */
  begin(emit: Emit): void
}

export interface StatusSource {
  readonly node: string
  readonly partition: number
  readonly clock: Clock
  live(): Partial<NodeStatus>
}

export function newStatusKeeper({ node, partition, clock, live }: StatusSource): StatusKeeper {
  const listeners = new Set<(status: NodeStatus) => void>()
  let emit: Emit = emitNothing
  let status: NodeStatus = {
    ...{ role: 'ended', node, partition, epoch: 0, seq: 0, owner: undefined },
    ...{ away_since_ms: undefined, away_reason: undefined, has_lease: false },
    ...{ caught_up_ms: undefined, loading: undefined, unfit: undefined, append_ms: 0 },
    ...{ head_seq: undefined, takeovers: 0, snapshot: undefined, log_bytes: undefined },
  }

  const current = (): NodeStatus => ({ ...status, ...live() })

  function set(changes: Partial<NodeStatus>): void {
    const was = status.role
    status = { ...status, ...changes }
    if (status.role === was) return
    if (status.role === 'owner') status = { ...status, takeovers: status.takeovers + 1 }
    const now = current()
    const { role, epoch, seq, owner } = now
    emit('role', { node, role, was, epoch, seq, owner: owner?.node ?? '' })
    for (const listener of listeners) listener(now)
  }

  return {
    current,
    set,
    emit: (event, fields) => emit(event, fields),
    onAway(error) {
      if (status.away_since_ms !== undefined) return
      const reason = error instanceof Error ? error.message : String(error)
      set({ away_since_ms: clock.now_ms(), away_reason: reason })
      emit('database_away', { node, role: status.role, reason })
    },
    onBack() {
      const { role, away_since_ms } = status
      if (away_since_ms === undefined) return
      set({ away_since_ms: undefined, away_reason: undefined })
      emit('database_back', { node, role, ms: Math.round(clock.now_ms() - away_since_ms) })
    },
    onRole: (listener) => listenerIn(listeners, listener),
    begin(next_emit) {
      emit = next_emit
      const now = { caught_up_ms: undefined, head_seq: undefined }
      status = { ...status, ...now, loading: undefined, unfit: undefined }
    },
  }
}

export function listenerIn<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
