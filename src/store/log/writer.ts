/**
 * The log on disk as it is written: two segments, one of them young, and a sequence that never
 * stands still. What it says is written is synced.
 */
import type { Writes } from '../store.ts'
import { newFrameWriter } from './frame.ts'
import type { Head } from './head.ts'
import { segmentPaths, syncFolder } from './recover.ts'
import { createSegment } from './segment.ts'

/** Whole frames at the beginning of a segment. */
export interface Written {
  readonly segment_path: string
  readonly bytes: number
  readonly first_seq: number
  readonly last_seq: number
}

export interface LogWriter {
  /** Bytes in the young segment. */
  bytes(): number
  /** One frame; one at a time. Resolves with its bytes. */
  write(writes: Writes): Promise<number>
  /**
   * Goes on at the beginning of the other segment, over whatever is there. Answers what the young
   * one holds, which stands until it is the young one again.
   */
  turnOver(): Written
  close(): Promise<void>
}

/** Makes both files; neither may be there. The first frame goes on from the head's sequence. */
export async function createLog(path: string, { id, seq: merged_seq }: Head): Promise<LogWriter> {
  const frameOf = newFrameWriter(id)
  const [first, second] = segmentPaths(path)
  let young = await createSegment(first)
  let other = await createSegment(second)
  let seq = merged_seq
  let first_seq = seq + 1
  let at = 0

  async function write(writes: Writes): Promise<number> {
    const frame = frameOf(seq + 1, writes)
    await young.write(frame, at)
    seq++
    at += frame.length
    return frame.length
  }

  // It changes nothing, and tells this log from an older one of the same file.
  await write(new Map())
  await syncFolder(path)
  return {
    bytes: () => at,
    write,
    turnOver() {
      const written = { segment_path: young.path, bytes: at, first_seq, last_seq: seq }
      const next = other
      other = young
      young = next
      first_seq = seq + 1
      at = 0
      return written
    },
    async close() {
      await young.close()
      await other.close()
    },
  }
}
