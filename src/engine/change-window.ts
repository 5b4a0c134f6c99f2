/**
 * The window of kept changes: removes the oldest entries, in slices, once those after them are over
 * `changes_bytes_max` or the oldest is older than `changes_kept_s`.
 *
 * It removes a part of the window at a time, so nothing is scanned and a commit compares two
 * numbers. All entries from the first to the last are there at every moment.
 */
import { changeKey } from '../codec/keys.ts'
import { isStoreUnavailable } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Store, View } from '../store/store.ts'
import { type ChangeEntry, firstEntry, lastEntry, leaveGap, readEntry } from './change-log.ts'

export interface ChangeWindow {
  /** The oldest entry that stays; `no_entry` without any. */
  first(): ChangeEntry
  /** The last durable entry. */
  last(): ChangeEntry
  onCommitted(last: ChangeEntry): void
  /** Resolves once nothing is being removed. */
  stop(): Promise<void>
}

export interface ChangeWindowOptions {
  readonly store: Store
  readonly limits: Limits
  readonly now_ms: number
  /** Called for a bug: an exception that is no Fault. */
  onError(error: unknown): void
}

/** The part of the window that is removed at a time. */
const part = 1 / 64
const slice_entries = 1_024

export async function openChangeWindow(options: ChangeWindowOptions): Promise<ChangeWindow> {
  const { store, limits, onError } = options
  const kept_ms = limits.changes_kept_s * 1_000
  const bytes_max = limits.changes_bytes_max
  let first = await store.view(firstEntry)
  let last = await store.view(lastEntry)
  let is_stopped = false
  let running: Promise<void> | undefined

  /** Whether the entry is needed at a time when `last` is the last one. */
  function isKept(entry: ChangeEntry | undefined, slack = 0): boolean {
    if (entry === undefined) return false
    const is_recent = last.at_ms - entry.at_ms <= kept_ms * (1 + slack)
    return is_recent && last.bytes - entry.bytes <= bytes_max * (1 + slack)
  }

  /** The first kept entry, by bisection; the last one is always kept. */
  function firstKept(view: View): ChangeEntry {
    let [removed, kept] = [first, last]
    while (kept.n - removed.n > 1) {
      const middle = readEntry(view, Math.floor((removed.n + kept.n) / 2)) as ChangeEntry
      if (isKept(middle)) kept = middle
      else removed = middle
    }
    return kept
  }

  async function removeUpTo(kept: ChangeEntry): Promise<void> {
    let n = first.n
    // From now on nobody begins with an entry that goes.
    first = kept
    while (n < kept.n && !is_stopped) {
      const end = Math.min(n + slice_entries, kept.n)
      await store.update((tx) => {
        for (let one = n; one < end; one++) tx.del(changeKey(one))
      })
      n = end
    }
  }

  async function trim(): Promise<void> {
    try {
      await removeUpTo(await store.view(firstKept))
    } catch (error) {
      // What was not removed is found by the next trim.
      first = await store.view(firstEntry).catch(() => first)
      if (!isStoreUnavailable(error)) onError(error)
    } finally {
      running = undefined
    }
  }

  if (bytes_max === 0 && first.n < last.n) await removeUpTo(last)
  if (bytes_max === 0) await store.update((tx) => leaveGap(tx, options.now_ms))

  return {
    first: () => first,
    last: () => last,
    onCommitted(entry) {
      last = entry
      if (first.n === 0) first = entry
      if (running === undefined && !is_stopped && !isKept(first, part)) running = trim()
    },
    async stop() {
      is_stopped = true
      await running
    },
  }
}
