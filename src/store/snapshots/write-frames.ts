/** Writes frames of a snapshot or a commit log into a data file that has no commit log yet. */
import { fault } from '../../core/faults.ts'
import { valueBytesAt } from '../changes/change-encoding.ts'
import { changeOffsets, type Frame } from '../commit-log/frame.ts'
import { hasRoomFor, large_value_bytes } from '../lmdb/disk-space.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'

/** One commit of LMDB. With `goes_on` a later one follows. Rejects with `no_space`. */
export async function writeFrames(
  tree: LmdbTree,
  frames: readonly Frame[],
  goes_on: boolean,
): Promise<void> {
  let [changes, bytes, large_bytes] = [0, 0, 0]
  for (const frame of frames) {
    bytes += frame.bytes.length
    for (const offset of changeOffsets([frame])) {
      changes++
      const value_bytes = valueBytesAt(frame.segment, offset)
      if (value_bytes >= large_value_bytes) large_bytes += value_bytes
    }
  }
  if (!hasRoomFor({ changes, bytes, large_bytes }, tree)) throw fault('no_space')
  await tree.write({ frames: frames.map((frame) => frame.bytes), goes_on })
}
