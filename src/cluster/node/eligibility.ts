/**
 * Whether a node can become the owner: its program knows the format, and it has the key of the
 * secrets. A node that is ineligible from the start is refused; one that becomes ineligible while
 * it follows, because the owner has made a key, emits `node_unfit` and follows on.
 */
import type { Clock } from '../../core/clock.ts'
import { isFault } from '../../core/faults.ts'
import type { CommitLogOpening } from '../../store/commit-log/source.ts'
import type { Tree } from '../../store/tree.ts'
import type { StatusKeeper } from './status.ts'

export interface EligibilityOptions {
  readonly opening: CommitLogOpening
  readonly tree: Tree
  readonly clock: Clock
  readonly status: StatusKeeper
  readonly node: string
}

/** Interval of checks of the key file. */
const look_ms = 1_000

/** Rejects if the first check fails, and for any error that is not a fault. */
export function eligibilityOf(port: EligibilityOptions): (now: boolean) => Promise<boolean> {
  const { opening, tree, clock, status, node } = port
  let was_eligible = false
  let looked_ms = Number.NEGATIVE_INFINITY
  return async (now) => {
    const { unfit } = status.current()
    if (!now && clock.now_ms() - looked_ms < look_ms) return unfit === undefined
    looked_ms = clock.now_ms()
    opening.claim(tree)
    try {
      await opening.checkKey(tree)
      if (unfit !== undefined) status.emit('node_fit', { node })
      status.set({ unfit: undefined })
      was_eligible = true
    } catch (error) {
      if (!was_eligible || !isFault(error)) throw error
      if (unfit === undefined) status.emit('node_unfit', { node, reason: error.message })
      status.set({ unfit: error.message })
    }
    return status.current().unfit === undefined
  }
}
