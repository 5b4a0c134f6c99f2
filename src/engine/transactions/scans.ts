/**
 * Reads of whole ranges: without blocking in slices of one durable state each, or one key per
 * process; and at once, where few keys are expected.
 */
import {
  after,
  type KeyRange,
  type KeyType,
  keysOfNextProcess,
  keysOfType,
  processOfPart,
} from '../../codec/keys.ts'
import { nextTurn } from '../../core/clock.ts'
import type { Entry, Store, Tx, View } from '../../store/store.ts'

/** Values may be long, so bytes end a slice too. */
const slice_bytes_max = 128 * 1024
const scan_entries = 16

/** Visits all entries of a type in order; returns their number. */
export async function eachEntry(
  store: Pick<Store, 'view'>,
  type: KeyType,
  slice_entries: number,
  visit: (view: View, entry: Entry) => void,
): Promise<number> {
  let { from, to } = keysOfType(type)
  let visited = 0
  function isEndIn(view: View): boolean {
    let entries_left = slice_entries
    let bytes_left = slice_bytes_max
    while (entries_left > 0) {
      const limit = Math.min(entries_left, scan_entries)
      const entries = view.scan({ from, to, limit })
      for (const entry of entries) {
        visit(view, entry)
        visited++
        from = after(entry.key)
        bytes_left -= entry.value.length
        if (bytes_left <= 0) return false
      }
      if (entries.length < limit) return true
      entries_left -= limit
    }
    return false
  }
  while (!(await store.view(isEndIn))) await nextTurn()
  return visited
}

export function allIn(view: Pick<View, 'scan'>, range: KeyRange): Entry[] {
  return view.scan({ ...range, limit: Number.POSITIVE_INFINITY })
}

export function removeAll(tx: Tx, range: KeyRange): void {
  for (const { key } of allIn(tx, range)) tx.del(key)
}

/** The processes with keys of a type that begins with the process, one read each. */
export function processesWith(view: View, type: KeyType): string[] {
  const found: string[] = []
  let range = keysOfType(type)
  for (;;) {
    const [first] = view.scan({ ...range, limit: 1 })
    if (first === undefined) return found
    found.push(processOfPart(first.key))
    range = keysOfNextProcess(type, first.key)
  }
}
