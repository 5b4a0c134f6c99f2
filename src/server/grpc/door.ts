/**
 * A running gRPC door: what every call needs, and the one question each asks first.
 */

import { fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { Caller } from '../../core/model.ts'
import type { Engine } from '../../engine/api.ts'
import type { Identity, Who } from './authenticate.ts'

export interface Door {
  readonly engine: Engine
  readonly limits: Limits
  readonly identity: Identity
  readonly onBug: (bug: unknown) => void
  /** What ends the long calls: told when the door drains. */
  readonly endings: Set<() => void>
  draining: boolean
}

/** Throws `shutting_down`, or what `Identity.callerOf` throws. */
export function admit(door: Door, who: Who): Caller {
  if (door.draining) throw fault('shutting_down')
  return door.identity.callerOf(who)
}
