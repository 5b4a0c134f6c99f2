/**
 * The forms of the engine that crash tests kill, and what a kill left of the commit log. With the
 * usual bounds no checkpoint runs in the short life of such a process, so one form always
 * checkpoints.
 */
import { existsSync, readFileSync } from 'node:fs'
import { framesIn } from '../../src/store/commit-log/frame.ts'
import { decodeManifest, manifest_key } from '../../src/store/commit-log/manifest.ts'
import { readNodeMark } from '../../src/store/commit-log/node-mark.ts'
import { segmentPaths } from '../../src/store/commit-log/recovery.ts'
import { openInProcess } from './in-process-tree.ts'
import { framesAfter } from './postgres-open.ts'
import type { Edit } from './store-child.ts'

export interface CrashForm {
  readonly form: 'as it is' | 'always checkpointing'
  readonly edits: readonly Edit[]
}

const file = 'store/commit-log/bounds.ts'
const always_checkpoints: readonly Edit[] = [
  { file, from: 'checkpoint_bytes: bytes', to: 'checkpoint_bytes: 1' },
  { file, from: 'bytes_max: 2 * bytes', to: 'bytes_max: 256 * 1024' },
  { file, from: 'slice: slice_bounds }', to: 'slice: { changes_max: 6, bytes_max: 4_000 } }' },
]

export const crash_forms: readonly CrashForm[] = [
  { form: 'as it is', edits: [] },
  { form: 'always checkpointing', edits: always_checkpoints },
]

/** The commit log that a killed process left. */
export interface CommitLogLeft {
  /** Groups that are not in LMDB. */
  readonly unmerged: number
  /** Whether both segments have such groups: a checkpoint of one was running. */
  readonly in_checkpoint: boolean
}

/** Before the commit log is opened again. */
export async function commitLogLeft(path: string): Promise<CommitLogLeft> {
  const tree = await openInProcess(path)
  const bytes = tree.get(manifest_key)
  const mark = readNodeMark(tree)
  await tree.close()
  const merged_seq = bytes === undefined ? Infinity : decodeManifest(bytes).seq
  if (mark !== undefined) {
    return { unmerged: await framesAfter(mark.partition, merged_seq), in_checkpoint: false }
  }
  const unmerged = segmentPaths(path).map((segment) => {
    if (!existsSync(segment)) return 0
    const groups = [...framesIn(readFileSync(segment))].filter(({ count }) => count > 0)
    return groups.filter(({ seq }) => seq > merged_seq).length
  })
  const [one = 0, other = 0] = unmerged
  return { unmerged: one + other, in_checkpoint: one > 0 && other > 0 }
}
