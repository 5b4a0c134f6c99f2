/**
 * A standby: applies the owner's commits and takes over when the rules allow it. No time of day
 * decides: the owner is gone once it has released its row, or once this node's steady clock has
 * seen the row unchanged for its lease and a margin.
 */
import { pause } from '../../core/clock.ts'
import type { Frame } from '../../store/commit-log/frame.ts'
import { type Connection, isAway } from '../database/connection.ts'
import { untilAnswered, type Waiting, waitEnded } from '../database/waiting.ts'
import { type Claimant, isOwn, type OwnerRow, readOwnerRow, takeOwnerRow } from './owner-row.ts'
import { damaged, readBatch, readHead } from './postgres-log.ts'

export interface Following extends Waiting {
  readonly connection: Connection
  readonly claimant: Claimant
  /** Position of the last frame. */
  seq(): number
  take(frames: readonly Frame[]): Promise<void>
  /** Checked now, or at most a second ago. */
  isEligible(now: boolean): Promise<boolean>
  /** Id of the commit log. */
  readonly log_id: Buffer
  /** The database's state at `asked_ms`; `head_seq` is its last position. */
  onSeen(row: OwnerRow, asked_ms: number, head_seq: number): Promise<void>
}

export interface Taken {
  readonly epoch: number
  /** When the takeover was sent. */
  readonly taken_ms: number
}

const poll_ms = 50
/** Added to the lease, because the owner's clock may run slower. */
const margin = { of_lease: 0.1, ms_min: 100 }

export function takeoverWaitMs(lease_ms: number): number {
  return lease_ms + Math.max(margin.ms_min, margin.of_lease * lease_ms)
}

/**
 * Follows until this node has the ownership; `behind` if the log no longer reaches back to it.
 * Rejects with `shutting_down` once this node leaves.
 */
export async function follow(following: Following): Promise<Taken | 'behind'> {
  const { connection, clock, claimant } = following
  let seen: OwnerRow | undefined
  let seen_ms = 0
  let is_away = false

  /** Applies the next frames; false if there are none. */
  async function takeNext(): Promise<boolean | 'behind'> {
    const seq = following.seq()
    const frames = await readBatch(connection, claimant.partition, seq)
    if (frames.length === 0) return false
    if (frames[0]?.seq !== seq + 1) return 'behind'
    await following.take(checked(frames, following))
    return true
  }

  function mayTake(row: OwnerRow, waited_ms: number): boolean {
    const wait_ms = takeoverWaitMs(Math.max(row.lease_ms, claimant.lease_ms))
    if (isOwn(row, claimant) && !row.released) return true
    if (!row.released) return waited_ms >= takeoverWaitMs(row.lease_ms)
    const { hand_over_to: to } = row
    const is_other = to !== '' && (to === '*' ? row.node === claimant.node : to !== claimant.node)
    return !is_other || waited_ms >= wait_ms
  }

  async function look(): Promise<Taken | 'behind' | undefined> {
    const asked_ms = clock.now_ms()
    const has_more = await takeNext()
    if (has_more === 'behind') return 'behind'
    const row = await readOwnerRow(connection, claimant.partition)
    const now_ms = clock.now_ms()
    const is_same = row.epoch === seen?.epoch && row.renewal === seen.renewal
    if (!is_same) [seen, seen_ms] = [row, now_ms]
    const { partition } = claimant
    const head_seq = has_more ? await readHead(connection, partition) : following.seq()
    await following.onSeen(row, asked_ms, head_seq)
    if (has_more) return undefined
    const may_take = mayTake(row, now_ms - seen_ms)
    if (!(await following.isEligible(may_take)) || !may_take) return undefined
    const taken_ms = clock.now_ms()
    const epoch = await takeOwnerRow(connection, claimant, row)
    return epoch === undefined ? undefined : { epoch, taken_ms }
  }

  while (!following.hasLeft()) {
    let wait_ms = poll_ms
    try {
      const before = following.seq()
      const followed = await look()
      if (is_away) following.onBack()
      is_away = false
      if (followed !== undefined) return followed
      if (following.seq() > before) wait_ms = 0
    } catch (error) {
      if (!isAway(error)) throw error
      if (!is_away) following.onAway(error)
      is_away = true
      // The row may have changed and changed back unseen, so the wait restarts.
      seen = undefined
      wait_ms = 4 * poll_ms
    }
    if (wait_ms > 0) await pause(clock, wait_ms, following.left)
  }
  throw waitEnded()
}

/** Applies all frames; complete after a takeover, because no other node can append. */
export async function catchUp(following: Following): Promise<void> {
  const { connection, claimant } = following
  for (;;) {
    const frames = await untilAnswered(following, () =>
      readBatch(connection, claimant.partition, following.seq()),
    )
    if (frames.length === 0) return
    await following.take(checked(frames, following))
  }
}

/** Throws for frames out of order or of another log. */
function checked(frames: readonly Frame[], { seq, log_id }: Following): readonly Frame[] {
  const is_right = frames[0]?.seq === seq() + 1 && frames.every(({ id }) => id.equals(log_id))
  if (!is_right) throw damaged(seq())
  return frames
}
