/**
 * A node that waits: for a database that is away, for what this has to answer, and to be the owner.
 * It waits for as long as it takes, until it is told to leave.
 */
import { type Clock, pause } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import { isAway } from './errors.ts'

export interface Waiting {
  /** Never set, forward or back. */
  readonly clock: Clock
  /** Resolves where this node waits no more. */
  readonly left: Promise<unknown>
  hasLeft(): boolean
  /** The database does not answer, or does again. */
  onAway(reason: unknown): void
  onBack(): void
}

const retry_ms = 100

/** Asks again while the database is away; what else is wrong rejects. */
export async function untilAnswered<T>(waiting: Waiting, ask: () => Promise<T>): Promise<T> {
  while (!waiting.hasLeft()) {
    try {
      const answer = await ask()
      waiting.onBack()
      return answer
    } catch (error) {
      if (!isAway(error)) throw error
      waiting.onAway(error)
    }
    await pause(waiting.clock, retry_ms, waiting.left)
  }
  throw waitEnded()
}

export function waitEnded(): Fault {
  return fault('shutting_down', 'this node was told to wait no more')
}
