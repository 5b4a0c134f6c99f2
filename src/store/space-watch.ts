/**
 * Tells that writes begin to be refused because the disk is full, and that there is room again:
 * each once, however many are refused meanwhile.
 *
 * There is room again once so many bytes are free that requests are taken. After the store itself
 * has refused a commit, one must have succeeded too: not every disk that takes no more says so.
 */
import type { Clock } from '../core/clock.ts'
import type { Tell } from '../core/events.ts'

export interface SpaceWatch {
  /** A request was refused before it came to the store. */
  refused(): void
  commitRefused(): void
  committed(): void
  close(): void
}

export interface SpaceWatchOptions {
  readonly tell: Tell
  readonly clock: Clock
  readonly freeBytes: () => number | undefined
  /** From here on requests are taken. */
  readonly free_bytes_min: number
}

/** Between two looks at a disk that was full. */
const look_ms = 1_000

export function newSpaceWatch(options: SpaceWatchOptions): SpaceWatch {
  const { tell, clock, freeBytes, free_bytes_min } = options
  let since_ms: number | undefined
  let must_commit = false
  let cancel = (): void => {}

  function arm(): void {
    cancel = clock.wake_at(clock.now_ms() + look_ms, look)
  }

  function look(): void {
    const free_bytes = freeBytes() ?? Number.POSITIVE_INFINITY
    if (must_commit || since_ms === undefined || free_bytes < free_bytes_min) arm()
    else {
      tell('space_back', { ms: clock.now_ms() - since_ms, free_bytes })
      since_ms = undefined
    }
  }

  function refused(): void {
    if (since_ms !== undefined) return
    since_ms = clock.now_ms()
    tell('no_space', { free_bytes: freeBytes(), free_bytes_min })
    arm()
  }

  return {
    refused,
    commitRefused() {
      must_commit = true
      refused()
    },
    committed() {
      must_commit = false
    },
    close: () => cancel(),
  }
}
