/**
 * Opens the commit log in front of LMDB: recovers the commit log that an earlier process left, or
 * starts a new one, and returns the tree over both.
 */
import { type Tell, tellNobody } from '../../core/events.ts'
import { isFault } from '../../core/faults.ts'
import { type ChangeBuffer, newChangeBuffer } from '../change-buffer.ts'
import { fileFault } from '../file-system.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'
import type { Tree } from '../tree.ts'
import type { CommitLogBounds } from './bounds.ts'
import { commitDirectly } from './checkpoint.ts'
import { decodeManifest, encodeManifest, manifest_key } from './manifest.ts'
import { recoverCommitLog, removeSegments, segmentPaths } from './recovery.ts'
import { continueCommitLog, startCommitLog } from './segments.ts'
import { type CommitLogFiles, commitLogTree } from './tree.ts'

export interface CommitLogOptions {
  /** 8 random bytes, for a file that never had a commit log. */
  readonly id: Buffer
  /** What makes a file one of the engine's; written into LMDB with the manifest. */
  readonly claim?: ChangeBuffer | undefined
  /** Whether short commits, and the close, may block this thread; true by default. */
  readonly blocking?: boolean
  readonly tell?: Tell | undefined
  /** Bytes of the disk to leave free if possible; 0 by default. */
  readonly reserve_bytes?: number
  /** As the limit of this name; 0 by default. */
  readonly checkpoint_bytes?: number
  readonly slow_commit_ms?: number
  readonly bounds?: Partial<CommitLogBounds>
}

/**
 * The caller must hold the lock of the data file at `path`. `close` merges the commit log into
 * LMDB. Rejects with `not_possible` or `not_a_database` and a sentence that says what to do;
 * nothing is changed then.
 */
export async function openCommitLogTree(
  tree: LmdbTree,
  path: string,
  options: CommitLogOptions,
): Promise<Tree> {
  const { tell = tellNobody } = options
  const stored = tree.get(manifest_key)
  const known = stored === undefined ? undefined : decodeManifest(stored)
  const began_ms = performance.now()
  const recovered = await recoverCommitLog(path, known, (seq) => tell('log_mended', { seq }))
  const manifest = known ?? { id: options.id, seq: 0, is_open: false }
  const unsupported = new Set<string>()
  const commit_log_options = {
    ...options,
    tell,
    onUnsupported(flag: string) {
      if (!unsupported.has(flag)) tell('slow_writes', { flag })
      unsupported.add(flag)
    },
  }
  const commit_log =
    recovered === undefined
      ? await startCommitLog(tree, path, manifest, commit_log_options)
      : await continueCommitLog(path, manifest, recovered, commit_log_options).catch((error) => {
          throw openingFault(path, error)
        })
  if (recovered !== undefined) {
    const frames = recovered.flatMap((segment) => segment.frames)
    let [changes, bytes] = [0, 0]
    for (const frame of frames) {
      changes += frame.count
      bytes += frame.bytes.length
    }
    const ms = Math.round(performance.now() - began_ms)
    tell('recovered', { commits: frames.length, changes, bytes, ms })
  }
  try {
    const changes = options.claim ?? newChangeBuffer()
    if (recovered === undefined && commit_log !== undefined) {
      changes.put(manifest_key, encodeManifest({ ...manifest, is_open: true }))
    }
    if (changes.size > 0 && !commitDirectly(tree, changes)) {
      throw fileFault(path, { code: 'ENOSPC' })
    }
  } catch (error) {
    await commit_log?.close()
    throw openingFault(path, error)
  }
  const files: CommitLogFiles = {
    paths: segmentPaths(path),
    start: () => startCommitLog(tree, path, manifest, commit_log_options),
    remove: () => removeSegments(path),
  }
  return commitLogTree(tree, path, manifest, commit_log, { ...commit_log_options, files })
}

const openingFault = (path: string, error: unknown): unknown =>
  isFault(error) ? error : fileFault(path, error)
