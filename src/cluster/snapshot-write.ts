/**
 * Writes a state as a snapshot, chunk after chunk. What breaks off in its middle is no snapshot:
 * nobody loads it, and the next truncation removes it.
 */

import { manifest_key } from '../store/commit-log/manifest.ts'
import { node_mark_key } from '../store/commit-log/node-mark.ts'
import type { Entry } from '../store/store.ts'
import type { Connection } from './connection.ts'
import type { SnapshotEntry } from './snapshot-chunk.ts'
import { addChunk, beginSnapshot, type SnapshotDraft } from './snapshot-rows.ts'

export interface SnapshotSize {
  readonly chunks: number
  readonly bytes: number
}

/** `step` is called after each chunk, with the bytes so far; rejects to end the work. */
export async function writeSnapshot(
  connection: Connection,
  draft: SnapshotDraft,
  chunks: Iterable<Buffer>,
  step: (bytes: number) => Promise<void> | void,
): Promise<SnapshotSize> {
  await beginSnapshot(connection, draft)
  let [count, bytes] = [0, 0]
  for (const chunk of chunks) {
    count++
    bytes += chunk.length
    await addChunk(connection, draft, count, chunk)
    await step(bytes)
  }
  return { chunks: count, bytes }
}

/** Entries without those that belong to the one data file. A value is valid until the next. */
export function* stateIn(entries: Iterable<Entry>): Generator<SnapshotEntry> {
  for (const { key, value } of entries) {
    if (key === manifest_key || key === node_mark_key) continue
    // LMDB reads each value into the same buffer, whose `length` alone says how much is valid.
    yield { key, value: Buffer.from(value.buffer, value.byteOffset, value.length) }
  }
}

/** Reads the first item now, which opens the transaction that the others are read in. */
export function begun<T>(items: Iterable<T>): Iterable<T> {
  const rest = items[Symbol.iterator]()
  const first = rest.next()
  return (function* () {
    try {
      for (let next = first; next.done !== true; next = rest.next()) yield next.value
    } finally {
      rest.return?.()
    }
  })()
}
