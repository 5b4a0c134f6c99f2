/**
 * The window of kept changes: removes the oldest entries in slices once later ones exceed
 * `changes_bytes_max` or the oldest exceeds `changes_kept_ms`. Removing a part at a time needs no
 * scan: a commit compares two numbers.
 */
import { changeKey } from '../../codec/keys.ts'
import type { View } from '../../store/store.ts'
import type { Work } from '../transactions/background.ts'
import {
  type ChangeEntry,
  firstEntry,
  lastEntry,
  leaveGap,
  readEntry,
} from '../transactions/change-log.ts'
import type { Parts } from '../transactions/parts.ts'

export interface ChangeWindow {
  /** The oldest kept entry; `no_entry` if none. */
  first(): ChangeEntry
  /** The last durable entry. */
  last(): ChangeEntry
  onCommitted(last: ChangeEntry): void
  readonly work: Work
}

const part = 1 / 64
const slice_entries = 1_024

export async function openChangeWindow(
  { store, limits, wake }: Pick<Parts, 'store' | 'limits' | 'wake'>,
  now_ms: number,
): Promise<ChangeWindow> {
  const kept_ms = limits.changes_kept_ms
  const bytes_max = limits.changes_bytes_max
  let first = await store.view(firstEntry)
  let last = await store.view(lastEntry)
  /** The entries from here up to `first` are to be removed. */
  let removed_n = first.n

  /** Whether the entry is kept now that `last` is the last one. */
  function isKept(entry: ChangeEntry | undefined, slack = 0): boolean {
    if (entry === undefined) return false
    const is_recent = last.at_ms - entry.at_ms <= kept_ms * (1 + slack)
    return is_recent && last.bytes - entry.bytes <= bytes_max * (1 + slack)
  }

  /** By bisection; the last entry is always kept. */
  function firstKept(view: View): ChangeEntry {
    let [removed, kept] = [first, last]
    while (kept.n - removed.n > 1) {
      const middle = readEntry(view, Math.floor((removed.n + kept.n) / 2)) as ChangeEntry
      if (isKept(middle)) kept = middle
      else removed = middle
    }
    return kept
  }

  async function removeSlice(): Promise<void> {
    const end = Math.min(removed_n + slice_entries, first.n)
    await store.update((tx) => {
      for (let n = removed_n; n < end; n++) tx.del(changeKey(n))
    })
    removed_n = end
  }

  if (bytes_max === 0) {
    first = last
    while (removed_n < first.n) await removeSlice()
    await store.update((tx) => leaveGap(tx, now_ms))
  }

  const isDue = (): boolean => removed_n < first.n || !isKept(first, part)

  return {
    first: () => first,
    last: () => last,
    onCommitted(entry) {
      last = entry
      if (first.n === 0) {
        first = entry
        removed_n = entry.n
      }
      if (isDue()) wake()
    },
    work: {
      due_ms: () => (isDue() ? 0 : Number.POSITIVE_INFINITY),
      async step() {
        // From now on no reader starts at a removed entry.
        if (removed_n === first.n) first = await store.view(firstKept)
        await removeSlice()
      },
      frees_room: true,
    },
  }
}
