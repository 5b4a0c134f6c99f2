/** Which of several addresses is the owner's, and which are silent. */
import type { Chance, Clock } from '../core/clock.ts'
import {
  type Cancellation,
  deadlineIn,
  type LinkedCancellation,
  linkedCancellation,
} from './cancellation.ts'
import { clientFault } from './faults.ts'
import { realPause } from './retry.ts'
import type { Transport } from './transport.ts'

/** The longest that a connection and the answer to a probe take together. */
export const probe_ms_max = 2_000
const pause_ms_max = 400

export interface SearchOptions {
  readonly clock: Clock
  readonly chance: Chance
  /** Takes an address that is not ready twice in a row, because it can say why. */
  readonly takes_unready: boolean
  /** Called with the reason why an address is not the owner's. */
  readonly onMissed: (address: Transport, why: string) => void
}

/**
 * Probes all addresses concurrently and repeatedly until one is ready; undefined once cancelled.
 * The pauses are random, so that the clients of a dead owner do not synchronise.
 */
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

export interface Attempt extends LinkedCancellation {
  readonly is_harmless: boolean
}

export interface Address extends Transport {
  readonly under_way: Set<Attempt>
  /** Since the last tick. */
  was_heard: boolean
  silent_ticks: number
}

export interface SilenceOptions {
  readonly clock: Clock
  readonly closing: Cancellation
  readonly owner: () => Address | undefined
  /** Searches for an owner among the other addresses. */
  readonly askOthers: (address: Address) => void
}

const tick_ms = 300
/** Silent ticks until an address is probed, the others are, and its calls are given up. */
const probed_ticks = 2
const doubted_ticks = 3
const lost_ticks = 16

/**
 * Detects silent addresses: they have calls under way, and answer neither these nor probes. The
 * other addresses are probed then. Once one of them is the owner, tries at a silent address are
 * cancelled: harmless ones at once, the rest later, as their outcome stays unknown. Silence is
 * counted in ticks, so that a suspended client does not take a server for dead.
 */
export function newSilenceWatch(
  addresses: readonly Address[],
  { clock, closing, owner, askOthers }: SilenceOptions,
): { watch(): void } {
  let is_ticking = false

  /** Ticks while calls are under way. */
  function watch(): void {
    if (is_ticking || closing.reason() !== undefined) return
    is_ticking = true
    clock.wake_at(clock.now_ms() + tick_ms, () => {
      is_ticking = false
      for (const address of addresses) tick(address)
      if (addresses.some(({ under_way }) => under_way.size > 0)) watch()
    })
  }

  function tick(address: Address): void {
    const is_silent = address.under_way.size > 0 && !address.was_heard
    address.was_heard = false
    address.silent_ticks = is_silent ? address.silent_ticks + 1 : 0
    const { silent_ticks: ticks } = address
    if (ticks === probed_ticks) void probe(address)
    if (ticks < doubted_ticks) return
    askOthers(address)
    const other = owner()
    if (other === undefined || other === address) return
    const text = `${address.name} is silent, and ${other.name} answers`
    for (const { is_harmless, cancel } of address.under_way) {
      if (is_harmless || ticks >= lost_ticks) cancel(clientFault('unreachable', text))
    }
  }

  /** Repeats until it answers or has no calls under way. */
  async function probe(address: Address): Promise<void> {
    while (address.silent_ticks > 0 && closing.reason() === undefined) {
      const deadline = deadlineIn(probe_ms_max, clock, closing)
      try {
        await address.probe(deadline)
        address.was_heard = true
        address.silent_ticks = 0
      } catch {
        await realPause(tick_ms, closing)
      } finally {
        deadline.dispose()
      }
    }
  }

  return { watch }
}
