/** Opens the commit log in front of LMDB, recovered or new, and returns the tree over both. */
import { type Emit, emitNothing } from '../../core/events.ts'
import { isFault } from '../../core/faults.ts'
import { type ChangeBuffer, newChangeBuffer } from '../changes/change-buffer.ts'
import { fileFault, isFull } from '../disk/file-system.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'
import type { Tree } from '../tree.ts'
import type { CommitLogBounds } from './bounds.ts'
import { frameOf } from './checkpoint.ts'
import { writeLogMark, writeTail } from './log-mark.ts'
import { node_mark_key } from './node-mark.ts'
import {
  knownLog,
  recoverCommitLog,
  recoveredView,
  removeSegments,
  restoreSegments,
  segmentPaths,
} from './recovery.ts'
import { endOfBlock } from './segment-file.ts'
import { continueCommitLog, startCommitLog } from './segments.ts'
import { type CommitLogFiles, type CommitLogTree, commitLogTree } from './tree.ts'
import type { CommitLogWriter } from './writer.ts'

export interface CommitLogOptions {
  /** 8 random bytes, for a file without a commit log. */
  readonly id: Buffer
  /**
   * Makes a new file the engine's, by what is in it; undefined if nothing is to do. Throws for a
   * file that must not be opened.
   */
  readonly claim?: (found: Pick<Tree, 'get' | 'range'>) => ChangeBuffer | undefined
  /** Whether short commits and the close may block this thread; default true. */
  readonly blocking?: boolean
  readonly emit?: Emit | undefined
  /** Bytes of the disk to leave free if possible; default 0. */
  readonly reserve_bytes?: number
  /** As the limit of this name; default 0. */
  readonly checkpoint_bytes?: number
  readonly slow_commit_ms?: number
  readonly bounds?: Partial<CommitLogBounds>
}

/**
 * The caller holds the lock of the data file at `path`. `close` merges the commit log into LMDB.
 * Rejects with `not_possible` or `not_a_database` and a sentence that says what to do, without a
 * change.
 */
export async function openCommitLogTree(
  tree: LmdbTree,
  path: string,
  options: CommitLogOptions,
): Promise<CommitLogTree> {
  const { emit = emitNothing } = options
  const known = await knownLog(tree, path)
  const began_ms = performance.now()
  const recovered = await recoverCommitLog(path, known)
  const claim = options.claim?.(recoveredView(tree, recovered)) ?? newChangeBuffer()
  const manifest = known?.manifest ?? { id: options.id, seq: 0, is_open: false }
  const id = manifest.id.toString('hex')
  const unsupported = new Set<string>()
  const commit_log_options = {
    ...options,
    emit,
    onUnsupported(flag: string) {
      if (!unsupported.has(flag)) emit('slow_writes', { flag })
      unsupported.add(flag)
    },
  }
  /** The file is incomplete without the commit log from here on. */
  const markOpen = (seq = manifest.seq): Promise<void> =>
    writeLogMark(path, { state: 'open', id, seq })
  const openIt = async (): Promise<CommitLogWriter | undefined> => {
    if (recovered === undefined) return startCommitLog(tree, path, manifest, commit_log_options)
    if (known?.tail !== undefined) await restoreSegments(path, recovered)
    return continueCommitLog(path, manifest, recovered, commit_log_options)
  }
  /**
   * A file without a record says in LMDB that it needs its commit log. The commit also restores
   * lost sums of the file's last pages; a large file gets them later.
   */
  async function commitFirst(): Promise<void> {
    const has_record = known?.state !== undefined || recovered !== undefined
    const has_sums = tree.has_last_sums || tree.verified() !== undefined
    if ((claim.size === 0 && has_record && has_sums) || isEmpty(tree)) return
    const required = has_record ? {} : { manifest: { ...manifest, is_open: true } }
    await tree.write({ frames: [frameOf(claim)], ...required })
  }
  const commit_log = await openIt().catch((error) => {
    throw openingFault(path, error)
  })
  const files: CommitLogFiles = {
    paths: segmentPaths(path),
    async start() {
      const started = await startCommitLog(tree, path, manifest, commit_log_options)
      if (started !== undefined) await markOpen()
      return started
    },
    async finish({ frames, first_seq, last_seq: seq }) {
      if (frames.length === 0) await writeLogMark(path, { state: 'closed', id, seq })
      else {
        const at = endOfBlock(tree.usage().end_bytes)
        await writeTail(path, frames, { at, first_seq, id, seq })
      }
      await removeSegments(path)
    },
  }
  try {
    if (commit_log !== undefined) await commitFirst()
    if (commit_log !== undefined && known?.state !== 'open') await markOpen()
  } catch (error) {
    await commit_log?.close()
    throw openingFault(path, error)
  }
  if (recovered !== undefined && known?.tail === undefined) {
    const frames = recovered.flatMap((segment) => segment.frames)
    let [changes, bytes] = [0, 0]
    for (const frame of frames) {
      changes += frame.count
      bytes += frame.bytes.length
    }
    const ms = Math.round(performance.now() - began_ms)
    emit('recovered', { commits: frames.length, changes, bytes, ms })
  }
  const opened = commitLogTree(tree, path, manifest, commit_log, { ...commit_log_options, files })
  if (known === undefined && tree.get(node_mark_key) !== undefined) claim.put(node_mark_key, null)
  if (claim.size > 0) {
    await opened.commit(claim).catch(async (error) => {
      await opened.close()
      throw openingFault(path, error)
    })
  }
  return opened
}

function openingFault(path: string, error: unknown): unknown {
  if (isFull(error)) return fileFault(path, { code: 'ENOSPC' })
  return isFault(error) ? error : fileFault(path, error)
}

function isEmpty(tree: Pick<Tree, 'range'>): boolean {
  for (const _ of tree.range('', '\xff', false)) return false
  return true
}
