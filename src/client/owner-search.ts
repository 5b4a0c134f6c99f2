/**
 * Finds the owner among several addresses: asks all of them at once and again and again, until one
 * says that it is ready. A silent address holds up none of the others. The pauses are random, so
 * that the clients of a dead owner do not come in step; each asks an address a few times a second.
 */
import type { Chance, Clock } from '../core/clock.ts'
import { type Cancellation, deadlineIn, linkedCancellation } from './cancellation.ts'
import { realPause } from './retry.ts'
import type { Transport } from './transport.ts'

/** The longest that a connection and the answer to a probe take together. */
export const probe_ms_max = 2_000
const pause_ms_max = 400

export interface SearchOptions {
  readonly clock: Clock
  readonly chance: Chance
  /** Takes one that says twice in a row that it is not ready, if none is: it knows why. */
  readonly takes_unready: boolean
  /** Called with why an address is not the one of the owner. */
  readonly onMissed: (address: Transport, why: string) => void
}

/** Undefined once it is cancelled. */
export async function foundOwner<T extends Transport>(
  addresses: readonly T[],
  { clock, chance, takes_unready, onMissed }: SearchOptions,
  given: Cancellation,
): Promise<T | undefined> {
  const search = linkedCancellation(given)
  const asked = async (address: T): Promise<T | undefined> => {
    for (let was_unready = false; search.reason() === undefined; ) {
      const deadline = deadlineIn(probe_ms_max, clock, search)
      try {
        const is_ready = (await address.probe(deadline)) === 'ready'
        if (is_ready || (was_unready && takes_unready)) return address
        was_unready = true
        onMissed(address, 'is not ready')
      } catch (error) {
        was_unready = false
        onMissed(address, error instanceof Error ? error.message : String(error))
      } finally {
        deadline.dispose()
      }
      await realPause(pause_ms_max * (0.5 + chance.fraction() / 2), search)
    }
    return undefined
  }
  try {
    return await Promise.race(addresses.map(asked))
  } finally {
    search.cancel('over')
    search.dispose()
  }
}
