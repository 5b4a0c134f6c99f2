/**
 * The state of a data file with the frames that its commit log has beyond LMDB, before anything is
 * written: what an opening judges the file by, and what reads of a file that stays as it is find.
 */
import { type ChangeBuffer, newChangeBuffer } from '../change-buffer.ts'
import { keyAt, keyBytesAt, type Offset, valueAt } from '../change-encoding.ts'
import { mergedRange } from '../merged-range.ts'
import type { Tree } from '../tree.ts'
import { changeOffsets, type Frame } from './frame.ts'
import type { RecoveredSegment } from './recovery.ts'

type Recovered = readonly RecoveredSegment[] | undefined

/** In order. */
export function framesIn(recovered: Recovered): Frame[] {
  const frames = (recovered ?? []).flatMap((segment) => segment.frames)
  return frames.sort((one, other) => one.seq - other.seq)
}

/** For a few look-ups: it has no index of the frames. */
export function recoveredView(
  tree: Pick<Tree, 'get' | 'range'>,
  recovered: Recovered,
): Pick<Tree, 'get' | 'range'> {
  const frames = framesIn(recovered)
  return {
    get(key) {
      for (const frame of frames.toReversed()) {
        const at = changeOffsets([frame]).findLast(
          (offset) =>
            keyBytesAt(frame.segment, offset as Offset) === key.length &&
            keyAt(frame.segment, offset as Offset) === key,
        )
        if (at !== undefined) return valueAt(frame.segment, at as Offset) ?? undefined
      }
      return tree.get(key)
    },
    range(from, to, reverse) {
      const changes = changesIn(frames)
      return mergedRange([changes.range(from, to, reverse), tree.range(from, to, reverse)], reverse)
    },
  }
}

/** The last change of each key. */
export function changesIn(frames: readonly Frame[]): ChangeBuffer {
  const changes = newChangeBuffer()
  for (const frame of frames) {
    for (const offset of changeOffsets([frame])) {
      changes.put(keyAt(frame.segment, offset), valueAt(frame.segment, offset))
    }
  }
  return changes
}
