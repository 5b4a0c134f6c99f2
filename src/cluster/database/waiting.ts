/** The wait for a database that is away, or for the ownership, until the node leaves. */
import { type Clock, pause } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import { isAway } from './errors.ts'

export interface Waiting {
  /** Monotonic: never set. */
  readonly clock: Clock
  /** Resolves once this node stops waiting. */
  readonly left: Promise<unknown>
  hasLeft(): boolean
  onAway(reason: unknown): void
  onBack(): void
}

const retry_ms = 100

/** Retries while the database is away. Rejects with any other error. */
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
  return fault('shutting_down', 'this node has stopped waiting for the ownership')
}
