/** A merge iterator: one range over several sources, such as change buffers over a tree. */
import type { Change } from './changes/change-buffer.ts'
import type { Entry } from './store.ts'

interface Source {
  readonly changes: Iterator<Change>
  next: Change | undefined
}

/**
 * Each source is in key order, descending with `reverse`. For a key in several sources the first
 * one wins. Deleted keys are skipped and counted.
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
      open.push({ changes, next: nextOf(changes) })
    }
    for (;;) {
      let first: Change | undefined
      for (const { next } of open) {
        if (next === undefined) continue
        if (first === undefined || (reverse ? next.key > first.key : next.key < first.key)) {
          first = next
        }
      }
      if (first === undefined) return
      for (const source of open) {
        if (source.next?.key === first.key) source.next = nextOf(source.changes)
      }
      if (first.value === null) counts.deleted++
      else yield first as Entry
    }
  } finally {
    for (const { changes } of open) changes.return?.()
  }
}

function nextOf(changes: Iterator<Change>): Change | undefined {
  const { value, done } = changes.next()
  return done === true ? undefined : value
}
