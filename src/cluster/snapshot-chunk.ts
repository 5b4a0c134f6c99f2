/**
 * A snapshot as bytes: entries in key order, cut into chunks. A chunk is a sealed frame
 * (commit-log/frame), so it is checksummed; its id is that of the snapshot and its number counts
 * from 1, so a chunk that is damaged, missing or of another snapshot is never taken for the next.
 */
import type { Key } from '../codec/keys.ts'
import { encodeChange, encodedBytes } from '../store/change-encoding.ts'
import {
  changesAt,
  type Frame,
  frameBytes,
  framesIn,
  sealFrame,
} from '../store/commit-log/frame.ts'

export const snapshot_id_bytes = 8
export const chunk_default_bytes = 1024 * 1024

export interface SnapshotEntry {
  readonly key: Key
  readonly value: Buffer
}

/** An entry that is larger than a chunk has a chunk of its own. Each chunk is memory of its own. */
export function* chunksOf(
  entries: Iterable<SnapshotEntry>,
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

/** Undefined where the bytes are not this chunk of this snapshot, whole. */
export function chunkIn(bytes: Buffer, id: Buffer, number: number): Frame | undefined {
  const [frame] = framesIn(bytes)
  if (frame === undefined || frame.bytes.length !== bytes.length) return undefined
  return frame.seq === number && frame.id.equals(id) ? frame : undefined
}
