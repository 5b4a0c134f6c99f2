/**
 * A snapshot as bytes: entries in key order, in chunks. A chunk is a sealed frame with a checksum,
 * its snapshot's id and its number from 1, so a damaged, missing or foreign chunk is detected.
 */
import { encodeChange, encodedBytes } from '../changes/change-encoding.ts'
import { changesAt, type Frame, frameBytes, framesIn, sealFrame } from '../commit-log/frame.ts'
import { manifest_key } from '../commit-log/manifest.ts'
import { node_mark_key } from '../commit-log/node-mark.ts'
import type { Entry } from '../store.ts'

export const snapshot_id_bytes = 8
export const chunk_default_bytes = 1024 * 1024

/** A larger entry gets its own chunk. Each chunk has its own buffer. */
export function* chunksOf(
  entries: Iterable<Entry>,
  id: Buffer,
  chunk_bytes = chunk_default_bytes,
): Generator<Buffer> {
  let seq = 1
  let arena = Buffer.alloc(0)
  let [count, bytes] = [0, 0]
  const sealed = (): Buffer => sealFrame(arena, 0, { id, seq: seq++, count, change_bytes: bytes })
  for (const { key, value } of entries) {
    const more = encodedBytes(key, value)
    if (count > 0 && bytes + more > chunk_bytes) {
      yield sealed()
      count = 0
    }
    if (count === 0) {
      arena = Buffer.allocUnsafeSlow(frameBytes(Math.max(chunk_bytes, more)))
      bytes = 0
    }
    encodeChange(arena, changesAt(0) + bytes, key, value)
    bytes += more
    count++
  }
  if (count > 0) yield sealed()
}

/** Undefined unless the bytes are this chunk of this snapshot. */
export function chunkIn(bytes: Buffer, id: Buffer, number: number): Frame | undefined {
  const [frame] = framesIn(bytes)
  if (frame === undefined || frame.bytes.length !== bytes.length) return undefined
  return frame.seq === number && frame.id.equals(id) ? frame : undefined
}

/** Entries without those of the data file itself. A value is valid until the next. */
export function* stateIn(entries: Iterable<Entry>): Generator<Entry> {
  for (const { key, value } of entries) {
    if (key === manifest_key || key === node_mark_key) continue
    // LMDB reuses the buffer; only `length` says how much is valid.
    yield { key, value: Buffer.from(value.buffer, value.byteOffset, value.length) }
  }
}

/** Reads the first item now, which opens the transaction for the others. */
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
