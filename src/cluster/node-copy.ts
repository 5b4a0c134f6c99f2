/**
 * The data file of a node as a tree: what LMDB has, and the frames after it from the commit log.
 * `last` is the last frame of it that is durable, by which a log that was set back is recognised.
 */
import type { CommitLog } from '../store/commit-log/commit-log.ts'
import type { CommitLogOpening } from '../store/commit-log/source.ts'
import { type CommitLogTree, commitLogTree } from '../store/commit-log/tree.ts'
import { writerOver } from '../store/commit-log/writer.ts'
import type { NodeFile } from './node-file.ts'

export interface NodeCopy {
  readonly tree: CommitLogTree
  readonly file: NodeFile
  /** Takes frames that follow the last one. */
  take(frames: readonly Buffer[]): Promise<void>
}

/** Its files are elsewhere, and are never missing. */
const place = {
  files: [],
  is_left_behind: false,
  start: () => Promise.resolve(undefined),
  remove: () => Promise.resolve(),
}

/** The close of the copy leaves the data file open. */
export function openNodeCopy(
  { tree: below, path, tell, reserve_bytes }: CommitLogOpening,
  file: NodeFile,
  commit_log: CommitLog,
): NodeCopy {
  const { manifest } = file
  const kept = { ...below, close: () => Promise.resolve() }
  const writer = writerOver(commit_log, manifest)
  const tree = commitLogTree(kept, path, manifest, writer, { place, tell, reserve_bytes })
  return { tree, file, take: tree.take }
}
