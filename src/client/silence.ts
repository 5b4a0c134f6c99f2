/**
 * Which of several addresses are silent: have calls under way, and answer neither them nor probes.
 *
 * The other addresses are asked then. Once one of them is the owner, what a silent address has
 * under way is taken away from it: at once what a repeat cannot harm, the rest a little later, as
 * its outcome stays unknown. While no other is there, a silent server keeps its calls. Silence is
 * counted in ticks, so that a process that was stopped itself does not take a server for dead.
 */
import type { Clock } from '../core/clock.ts'
import { type Cancellation, deadlineIn, type LinkedCancellation } from './cancellation.ts'
import { clientFault } from './faults.ts'
import { probe_ms_max } from './owner-search.ts'
import { realPause } from './retry.ts'
import type { Transport } from './transport.ts'

/** What a call has under way at an address. */
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
  /** Asks whether one of the others is the owner now. */
  readonly askOthers: (address: Address) => void
}

const tick_ms = 300
/** Silent ticks until it is probed, until the others are, and until its calls are given up. */
const probed_ticks = 2
const doubted_ticks = 3
const lost_ticks = 16

export function newSilenceWatch(
  addresses: readonly Address[],
  { clock, closing, owner, askOthers }: SilenceOptions,
): { watch(): void } {
  let is_ticking = false

  /** Goes on for as long as calls are under way. */
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

  /** Again and again until it answers, or has nothing under way. */
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
