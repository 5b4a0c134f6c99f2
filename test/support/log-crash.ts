/**
 * In which forms a process is killed, and what a kill met: with the usual bounds nothing is merged
 * in the short life of such a process, so there is one that always merges.
 */
import { existsSync, readFileSync } from 'node:fs'
import { openLmdbTree } from '../../src/store/lmdb/open.ts'
import { framesIn } from '../../src/store/log/frame.ts'
import { decodeManifest, manifest_key } from '../../src/store/log/manifest.ts'
import { segmentPaths } from '../../src/store/log/recovery.ts'
import type { Edit } from './store-child.ts'

export interface CrashForm {
  readonly form: 'as it is' | 'always merging'
  readonly edits: readonly Edit[]
}

const file = 'store/log/tree.ts'
const always_merges: readonly Edit[] = [
  { file, from: 'checkpoint_bytes: 32 * 1024 * 1024', to: 'checkpoint_bytes: 1' },
  { file, from: 'bytes_max: 64 * 1024 * 1024', to: 'bytes_max: 256 * 1024' },
  { file, from: 'slice: slice_bounds,', to: 'slice: { changes_max: 6, bytes_max: 4_000 },' },
]

export const crash_forms: readonly CrashForm[] = [
  { form: 'as it is', edits: [] },
  { form: 'always merging', edits: always_merges },
]

/** What a process that was killed left of its log. */
export interface LogLeft {
  /** Groups that only the log has. */
  readonly unmerged: number
  /** Whether they stand in both segments: one of them was being merged. */
  readonly in_merge: boolean
}

/** Before the log is opened again. */
export async function logLeft(path: string): Promise<LogLeft> {
  const tree = await openLmdbTree(path)
  const bytes = tree.get(manifest_key)
  await tree.close()
  const merged_seq = bytes === undefined ? Infinity : decodeManifest(bytes).seq
  const unmerged = segmentPaths(path).map((segment) => {
    if (!existsSync(segment)) return 0
    const groups = [...framesIn(readFileSync(segment))].filter(({ count }) => count > 0)
    return groups.filter(({ seq }) => seq > merged_seq).length
  })
  const [one = 0, other = 0] = unmerged
  return { unmerged: one + other, in_merge: one > 0 && other > 0 }
}
