/**
 * Keeps what a node tells of itself (roles.ts) while the parts of its life change it, and tells
 * listeners and the log of each change of its role, and of a database that does not answer.
 */
import type { Clock } from '../core/clock.ts'
import { type Emit, emitNothing } from '../core/events.ts'
import type { NodeStatus } from './roles.ts'

export interface StatusKeeper {
  current(): NodeStatus
  /** A change of the role is told. */
  set(changes: Partial<NodeStatus>): void
  emit: Emit
  onAway(reason: unknown): void
  onBack(): void
  /** Called after each change of role; the returned function ends it. */
  onRole(listener: (status: NodeStatus) => void): () => void
  /** A life begins, which tells its events so. */
  begin(emit: Emit): void
}

export interface StatusSource {
  readonly node: string
  readonly partition: number
  readonly clock: Clock
  /** What changes without being told. */
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
    begin(next_tell) {
      emit = next_tell
      const now = { caught_up_ms: undefined, head_seq: undefined }
      status = { ...status, ...now, loading: undefined, unfit: undefined }
    },
  }
}

export function listenerIn<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
