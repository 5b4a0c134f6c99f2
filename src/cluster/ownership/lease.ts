/**
 * The ownership of a node, from the takeover to its release or loss. The owner renews its row each
 * third of the lease and may answer for one lease after it *sent* a successful renewal, by a
 * monotonic clock. A standby waits longer than that, so two nodes never answer at the same time.
 * Appends do not count as renewals.
 *
 * A lease that ran out is not lost: while the database is away no node can take over, and the next
 * renewal restores it. It is lost once the row has another epoch.
 */
import { pause, within } from '../../core/clock.ts'
import { type Fault, isFault } from '../../core/faults.ts'
import { type Connection, isAway } from '../database/connection.ts'
import type { Waiting } from '../database/waiting.ts'
import { ownershipLost, releaseOwnerRow, renewOwnerRow } from './owner-row.ts'

export interface Lease {
  readonly epoch: number
  /** Whether this node may answer now. */
  isValid(): boolean
  /** True once valid; false after its loss or release, or once the node has left. */
  untilValid(waiting: Pick<Waiting, 'left' | 'hasLeft'>): Promise<boolean>
  /** Why the ownership is lost. */
  lost(): Fault | undefined
  /** Calls once, at once if the lease is lost already. */
  onLost(listener: (reason: Fault) => void): void
  /** Treats the lease as lost although the row still has this node. */
  lose(reason: Fault): void
  /** Releases the row and stops renewing. While the database is away it retries for a lease. */
  release(): Promise<void>
  close(): void
}

export interface LeaseOptions extends Pick<Waiting, 'clock' | 'onAway' | 'onBack'> {
  readonly connection: Connection
  readonly partition: number
  readonly epoch: number
  readonly lease_ms: number
  /** When the takeover was sent. */
  readonly taken_ms: number
  /** An operator requests a hand-over. Called once. */
  onHandOver(): void
  /** A renewal was so slow that the next may come too late. */
  onSlow(ms: number): void
}

const renewals_per_lease = 3
const slow_share = 0.5
const release_retry_ms = 100
const look_ms = 20

export function newLease(options: LeaseOptions): Lease {
  const { connection, clock, partition, epoch, lease_ms } = options
  let valid_until_ms = options.taken_ms + lease_ms
  let cancel = (): void => {}
  let is_closed = false
  let is_away = false
  let is_handing_over = false
  let renewing: Promise<void> = Promise.resolve()
  let releasing: Promise<unknown> | undefined
  let lost: Fault | undefined
  let emitLost = (_reason: Fault): void => {}

  function close(): void {
    is_closed = true
    cancel()
  }

  function lose(reason: Fault): void {
    if (lost !== undefined) return
    lost = reason
    emitLost(reason)
  }

  function end(reason: Fault): void {
    close()
    lose(reason)
  }

  async function release(): Promise<void> {
    await renewing
    for (;;) {
      try {
        return await releaseOwnerRow(connection, partition, epoch)
      } catch (error) {
        if (!isAway(error)) return options.onAway(error)
        options.onAway(error)
        if (clock.now_ms() >= valid_until_ms) return
        await pause(clock, release_retry_ms)
      }
    }
  }

  async function renew(): Promise<void> {
    const sent_ms = clock.now_ms()
    try {
      const found = await renewOwnerRow(connection, partition, epoch)
      if (is_closed) return
      if (found === false) return end(ownershipLost())
      valid_until_ms = sent_ms + lease_ms
      const took_ms = clock.now_ms() - sent_ms
      if (took_ms > slow_share * lease_ms) options.onSlow(took_ms)
      if (is_away) options.onBack()
      is_away = false
      if (found.hand_over_to !== '' && !is_handing_over) {
        is_handing_over = true
        options.onHandOver()
      }
    } catch (error) {
      if (is_closed) return
      if (isFault(error) && error.code === 'store_failed') return end(error)
      if (!is_away) options.onAway(error)
      is_away = true
    }
    arm(is_away ? lease_ms / (2 * renewals_per_lease) : lease_ms / renewals_per_lease)
  }

  function arm(wait_ms: number): void {
    if (is_closed) return
    cancel = clock.wake_at(clock.now_ms() + wait_ms, () => {
      renewing = renew()
    })
  }
  arm(Math.max(0, options.taken_ms + lease_ms / renewals_per_lease - clock.now_ms()))
  const isValid = (): boolean => !is_closed && clock.now_ms() < valid_until_ms

  return {
    epoch,
    isValid,
    async untilValid({ left, hasLeft }) {
      while (!is_closed && lost === undefined && !isValid() && !hasLeft()) {
        await pause(clock, look_ms, left)
      }
      return lost === undefined && isValid()
    },
    lost: () => lost,
    onLost(listener) {
      emitLost = listener
      if (lost !== undefined) listener(lost)
    },
    lose,
    async release() {
      if (!is_closed) releasing = within(clock, lease_ms, release())
      close()
      await releasing
    },
    close,
  }
}
