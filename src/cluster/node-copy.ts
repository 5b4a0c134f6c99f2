/**
 * The data file of a node as a tree: what LMDB has, and the frames after it from the commit log.
 * `last` is the last frame of it that is durable, by which a log that was set back is recognised.
 */
import type { CommitLog } from '../store/commit-log/commit-log.ts'
import { type Frame, frameCrc } from '../store/commit-log/frame.ts'
import type { CommitLogOpening } from '../store/commit-log/source.ts'
import { type CommitLogTree, commitLogTree } from '../store/commit-log/tree.ts'
import { writerOver } from '../store/commit-log/writer.ts'
import type { LastFrame, NodeFile } from './node-file.ts'

export interface NodeCopy {
  readonly tree: CommitLogTree
  readonly file: NodeFile
  /** Takes frames that follow the last one. */
  take(frames: readonly Frame[]): Promise<void>
  last(): LastFrame
}

/** The close of the copy leaves the data file open. */
export function openNodeCopy(
  opening: CommitLogOpening,
  file: NodeFile,
  commit_log: CommitLog,
): NodeCopy {
  const { tree: below, path, emit, reserve_bytes, checkpoint_bytes } = opening
  const { manifest } = file
  const kept = { ...below, close: () => Promise.resolve() }
  let last: LastFrame = manifest
  const noted: CommitLog = {
    ...commit_log,
    async append(frame) {
      const write_ms = await commit_log.append(frame)
      last = { seq: frame.seq, last_crc: frameCrc(frame.arena, frame.from) }
      return write_ms
    },
  }
  const writer = writerOver(noted, manifest)
  const { slow_commit_ms, blocking } = opening
  const tree = commitLogTree(kept, path, manifest, writer, {
    ...{ emit, reserve_bytes, checkpoint_bytes },
    ...(slow_commit_ms !== undefined && { slow_commit_ms }),
    ...(blocking !== undefined && { blocking }),
  })
  return {
    ...{ tree, file },
    async take(frames) {
      await tree.take(frames.map(({ bytes }) => bytes))
      const { seq, crc } = frames.at(-1) ?? { ...last, crc: last.last_crc }
      last = { seq, last_crc: crc }
    },
    last: () => last,
  }
}
