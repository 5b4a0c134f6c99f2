/**
 * Retention of replay records. A signed request's record goes once its timestamp is outside the
 * window (if any timestamp is accepted, after the usual window), one with a key after a day. The
 * earliest of the last clock readings decides, so a wrong clock removes nothing for some minutes.
 * Expired records are looked up in the data file alone.
 */
import { after, type Key, type ReplayKind, replaysIn } from '../../codec/keys.ts'
import type { Clock } from '../../core/clock.ts'
import type { Store } from '../../store/store.ts'
import type { Work } from '../transactions/background.ts'

export interface ReplayTimes {
  readonly signed: KeptTimes
  readonly keyed: KeptTimes
}

interface KeptTimes {
  /** A request whose time is this near to ours is kept under it. */
  readonly near_s: number
  /** Retention after the request's time. */
  readonly kept_s: number
  /** Other requests are kept by period, for at least one period. */
  readonly period_s: number
}

const usual_window_s = 300
const hour_s = 3_600
const day_s = 24 * hour_s

export function timesOf(window_s: number): ReplayTimes {
  const near_s = Math.max(window_s, usual_window_s)
  return {
    signed: {
      near_s,
      kept_s: window_s === 0 ? 2 * near_s : near_s,
      period_s: usual_window_s,
    },
    keyed: { near_s: hour_s, kept_s: day_s + hour_s, period_s: day_s },
  }
}

/** Interval of clock readings; the earliest of several counts. */
const reading_ms = 37_500
const readings_max = 8
const slice_keys = 1_024

interface OpenRemoval {
  readonly kind: ReplayKind
  from: Key
  readonly to: Key
  readonly end_s: number
}

export interface ReplayRemovalOptions {
  readonly store: Store
  readonly clock: Clock
  readonly times: () => ReplayTimes
  readonly has_records: boolean
  wake(): void
  /** All records of a kind before this time are removed. */
  onRemoved(kind: ReplayKind, end_s: number): void
  /** Periods with records, by kind. */
  readonly periods: Readonly<Partial<Record<ReplayKind, number[]>>>
}

export interface ReplayRemoval extends Work {
  /** Call with the first record. */
  begin(): void
}

export function newReplayRemoval(options: ReplayRemovalOptions): ReplayRemoval {
  const { store, clock, times, periods } = options
  const readings: number[] = []
  let next_ms = options.has_records ? clock.now_ms() + reading_ms : Number.POSITIVE_INFINITY
  const open: OpenRemoval[] = []
  /** Where the next removal begins: the file has the deleted keys before until a checkpoint. */
  const begun = new Map<ReplayKind, Key>()
  let checkpoints: number | undefined

  function endsOf(now_s: number): readonly (readonly [ReplayKind, number])[] {
    const { signed, keyed } = times()
    return [
      ['signed_at', now_s - signed.kept_s],
      ['signed_in', now_s - 2 * signed.period_s],
      ['keyed_at', now_s - keyed.kept_s],
      ['keyed_in', now_s - 2 * keyed.period_s],
    ]
  }

  function beginAll(): void {
    next_ms = clock.now_ms() + reading_ms
    readings.push(Math.floor(clock.now_ms() / 1_000))
    if (readings.length > readings_max) readings.shift()
    if (readings.length < readings_max) return
    const { file } = store.numbers()
    // The file may have got records before that place, and lost its deleted ones.
    if (file === undefined || file.checkpoints !== checkpoints) begun.clear()
    checkpoints = file?.checkpoints
    for (const [kind, end_s] of endsOf(Math.min(...readings))) {
      const { from, to } = replaysIn(kind, 0, end_s)
      open.push({ kind, from: begun.get(kind) ?? from, to, end_s })
    }
  }

  async function removeSlice(): Promise<void> {
    const [first] = open
    if (first === undefined) return
    const { kind, from, to, end_s } = first
    const keys = await store.settledKeys({ from, to, limit: slice_keys })
    const last = keys.at(-1)
    if (last !== undefined) {
      await store.update((tx) => {
        for (const key of keys) tx.del(key)
      })
      first.from = after(last)
    }
    begun.set(kind, first.from)
    if (keys.length === slice_keys) return
    const known = periods[kind] ?? []
    known.splice(0, known.length, ...known.filter((period_s) => period_s >= end_s))
    options.onRemoved(kind, end_s)
    open.shift()
  }

  return {
    begin() {
      if (next_ms < Number.POSITIVE_INFINITY) return
      next_ms = clock.now_ms() + reading_ms
      options.wake()
    },
    due_ms() {
      if (open.length > 0) return 0
      const was_set_back = next_ms - clock.now_ms() > reading_ms
      return was_set_back && next_ms < Number.POSITIVE_INFINITY ? 0 : next_ms
    },
    async step() {
      if (open.length === 0) beginAll()
      await removeSlice()
    },
    frees_room: true,
  }
}
