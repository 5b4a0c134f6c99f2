/**
 * A tree's range with the layers that lie over it: one walk through all of them in key order.
 */
import type { Change, Entry } from './store.ts'

interface Source {
  readonly changes: Iterator<Change>
  head: Change | undefined
}

/**
 * Each source is in key order, descending with `reverse`. Where several hold a key the first source
 * counts; a key that counts as deleted is left out, and counted.
 */
export function* mergedRange(
  sources: readonly Iterable<Change>[],
  reverse: boolean,
  counts: { deleted: number } = { deleted: 0 },
): Generator<Entry> {
  const open: Source[] = []
  try {
    for (const source of sources) {
      const changes = source[Symbol.iterator]()
      open.push({ changes, head: headOf(changes) })
    }
    for (;;) {
      let next: Change | undefined
      for (const { head } of open) {
        if (head === undefined) continue
        if (next === undefined || (reverse ? head.key > next.key : head.key < next.key)) next = head
      }
      if (next === undefined) return
      for (const source of open) {
        if (source.head?.key === next.key) source.head = headOf(source.changes)
      }
      if (next.value === null) counts.deleted++
      else yield next as Entry
    }
  } finally {
    for (const { changes } of open) changes.return?.()
  }
}

function headOf(changes: Iterator<Change>): Change | undefined {
  const { value, done } = changes.next()
  return done === true ? undefined : value
}
