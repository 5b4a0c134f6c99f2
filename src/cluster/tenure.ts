/**
 * One time as the owner: from the takeover until the ownership is given up or lost. What was lost
 * is not had again, only taken anew.
 */
import { type Fault, fault } from '../core/faults.ts'
import type { Connection } from './connection.ts'
import type { Taken } from './follow.ts'
import { newLease } from './lease.ts'
import type { NodeSettings } from './node-settings.ts'
import type { StatusKeeper } from './node-status.ts'

export interface Tenure {
  readonly epoch: number
  /** Why this node must not answer now; undefined while it may. */
  unavailable(): Fault | undefined
  /** Why the ownership is lost; undefined while it is not. */
  lost(): Fault | undefined
  /** Calls once, at once if it is lost already. */
  onLost(listener: (reason: Fault) => void): void
  /** The node must not go on, although it has the ownership still. */
  lose(reason: Fault): void
  /** Gives the ownership up, so that another node may take it at once. */
  release(): Promise<void>
  close(): void
}

export interface TenureOptions {
  readonly settings: NodeSettings
  readonly connection: Connection
  readonly taken: Taken
  readonly status: StatusKeeper
  /** An operator wants another node to be the owner. */
  onHandOver(): void
}

export function beginTenure(options: TenureOptions): Tenure {
  const { connection, status, taken } = options
  const { clock, partition, lease_ms, node } = options.settings
  let lost: Fault | undefined
  let listener = (_reason: Fault): void => {}
  const { epoch, taken_ms } = taken

  function lose(reason: Fault): void {
    if (lost !== undefined) return
    lost = reason
    listener(reason)
  }

  const lease = newLease({
    ...{ connection, clock, partition, epoch, lease_ms, taken_ms },
    onLost: lose,
    onHandOver: options.onHandOver,
    onSlow(ms) {
      status.tell('lease_tight', { node, ms: Math.round(ms), lease_ms })
    },
    onAway: status.onAway,
    onBack: status.onBack,
  })

  return {
    epoch,
    unavailable: () => (lease.isValid() ? undefined : noLease()),
    lost: () => lost,
    onLost(next) {
      listener = next
      if (lost !== undefined) next(lost)
    },
    lose,
    release: lease.release,
    close: lease.close,
  }
}

function noLease(): Fault {
  return fault('overloaded', 'the database does not answer, so this node cannot either; try again')
}
