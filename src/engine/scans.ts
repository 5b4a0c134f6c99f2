/**
 * Reads of whole key types that hold nobody up: in slices, each of which sees one durable state and
 * between which the engine goes on, or from process to process, past all keys of each.
 */
import {
  after,
  type Key,
  type KeyType,
  keysOfNextProcess,
  keysOfType,
  processOfPart,
} from '../codec/keys.ts'
import { nextTurn } from '../core/clock.ts'
import type { Entry, Store, View } from '../store/store.ts'

/** Visits all entries of a type in order; returns how many there are. */
export async function eachEntry(
  store: Pick<Store, 'view'>,
  type: KeyType,
  slice_entries: number,
  visit: (view: View, entry: Entry) => void,
): Promise<number> {
  let { from, to } = keysOfType(type)
  let visited = 0
  for (;;) {
    const last: Key | undefined = await store.view((view) => {
      const entries = view.scan({ from, to, limit: slice_entries })
      for (const entry of entries) visit(view, entry)
      visited += entries.length
      return entries[slice_entries - 1]?.key
    })
    if (last === undefined) return visited
    from = after(last)
    await nextTurn()
  }
}

/** The processes with keys of a type that begins with the process, by one read for each. */
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
