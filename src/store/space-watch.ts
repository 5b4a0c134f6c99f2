/**
 * Knows whether the disk is full; emits `no_space` once when writes begin to be refused, and
 * `space_back` once when there is room again. After a refusal a little more than the minimum must
 * be free, so that the state does not flip each second. After a refused commit one must have
 * succeeded too: not every full disk reports it.
 */
import type { Clock } from '../core/clock.ts'
import type { Emit } from '../core/events.ts'

export interface SpaceWatch {
  /** Whether all requests are refused until more is free. */
  isFull(): boolean
  /** A request was refused before the store; a large one where others have room. */
  refused(): void
  commitRefused(): void
  committed(): void
  close(): void
}

export interface SpaceWatchOptions {
  readonly emit: Emit
  readonly clock: Clock
  readonly freeBytes: () => number | undefined
  /** Requests are refused below. */
  readonly free_bytes_min: number
}

/** Requests are accepted again from here on. */
export const freeBytesAgain = (free_bytes_min: number): number =>
  Math.ceil(free_bytes_min * (1 + 1 / 8))

const look_ms = 250

export function newSpaceWatch(options: SpaceWatchOptions): SpaceWatch {
  const { emit, clock, freeBytes, free_bytes_min } = options
  const free_bytes_again = freeBytesAgain(free_bytes_min)
  let since_ms: number | undefined
  let must_commit = false
  let cancel = (): void => {}

  function arm(): void {
    cancel = clock.wake_at(clock.now_ms() + look_ms, look)
  }

  const isShort = (): boolean => (freeBytes() ?? Number.POSITIVE_INFINITY) < free_bytes_again

  function look(): void {
    if (must_commit || since_ms === undefined || isShort()) arm()
    else {
      emit('space_back', { ms: clock.now_ms() - since_ms, free_bytes: freeBytes() })
      since_ms = undefined
    }
  }

  function begin(): void {
    if (since_ms !== undefined) return
    since_ms = clock.now_ms()
    emit('no_space', { free_bytes: freeBytes(), free_bytes_min })
    arm()
  }

  return {
    isFull: () => since_ms !== undefined && isShort(),
    refused() {
      if (isShort()) begin()
    },
    commitRefused() {
      must_commit = true
      begin()
    },
    committed() {
      must_commit = false
    },
    close: () => cancel(),
  }
}
