/**
 * The data file written by the process that reads it, as no engine does: for tests of what a write
 * does, and of writes that fail.
 */
import { runWriteJob } from '../../src/store/commit-log/checkpoint.ts'
import { openWritableTree } from '../../src/store/lmdb/commits.ts'
import type { LmdbTree, WritableTree } from '../../src/store/lmdb/lmdb-tree.ts'
import { type OpenLmdbOptions, openLmdbTree } from '../../src/store/lmdb/open.ts'

export type InProcessTree = LmdbTree & WritableTree

/** Rejects as an engine's open does. */
export async function openInProcess(
  path: string,
  options: OpenLmdbOptions = {},
): Promise<InProcessTree> {
  await (await openLmdbTree(path, options)).close()
  return inProcess(await openWritableTree(path, options))
}

/** Its `write` makes commits of this tree, from memory of its own as the other process has. */
export function inProcess(tree: WritableTree): InProcessTree {
  return {
    ...tree,
    async write(job, onCommit) {
      const frames = job.frames.map((bytes) => Buffer.from(bytes))
      runWriteJob(tree, { ...job, frames }, onCommit)
    },
  }
}
