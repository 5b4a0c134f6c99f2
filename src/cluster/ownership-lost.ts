/**
 * How an engine fails whose node is not the owner any more: unlike after other failures, its
 * program may close it and open it again at once, as a standby.
 */
import { type Fault, fault } from '../core/faults.ts'

const lost = new WeakSet<object>()

export function ownershipLost(): Fault {
  const made = fault('store_failed', 'another node owns the data now')
  lost.add(made)
  return made
}

/** Whether a failure, as `onFailure` gets it, comes of that. */
export function isOwnershipLost(failure: unknown): boolean {
  for (let one = failure; typeof one === 'object' && one !== null; ) {
    if (lost.has(one)) return true
    one = (one as { cause?: unknown }).cause
  }
  return false
}
