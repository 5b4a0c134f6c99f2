/**
 * The tree with a commit log in front of LMDB: a commit is one synced write to the commit log. Its
 * changes are in the active segment and its memtable, which reads use. A large enough segment is
 * frozen and written into LMDB by a checkpoint, while commits continue in the other. Then the
 * frozen memtable is cleared, and its segment may be overwritten.
 *
 *     segment 0   ▓▓▓▓▓▓ frozen: checkpoint running ▓▓▓▓▓▓   memtable
 *     segment 1   ███ active: written ███ · · · · · · · ·   memtable
 *
 * Invariants: each acknowledged change is always in LMDB or in a segment that is not overwritten.
 * Commits that outrun the checkpoint wait for it. Only the checkpoint process commits to LMDB.
 *
 * Without disk space commits are refused and checkpoints postponed; without space for a commit log,
 * commits go directly into LMDB. After a failed write or checkpoint, or the loss of a file, nothing
 * more is written, and the commit log stays for the next open.
 */
import type { Key } from '../../codec/keys.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { ChangeBuffer } from '../changes/change-buffer.ts'
import { isFull } from '../disk/file-system.ts'
import { growthOf, spareBytes } from '../lmdb/disk-space.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'
import { mergedRange } from '../merged-range.ts'
import { freeBytesAgain } from '../space-watch.ts'
import type { Entry } from '../store.ts'
import type { Tree } from '../tree.ts'
import { boundsFor, type CommitLogBounds } from './bounds.ts'
import { writeDirectly } from './checkpoint.ts'
import { type CheckpointerOptions, newCheckpointer } from './checkpointer.ts'
import { watchFiles } from './file-watch.ts'
import { frameBytes } from './frame.ts'
import { type FrameReader, newFrameReader, type OnNewFrames } from './frame-reader.ts'
import { newFreeSpace } from './free-space.ts'
import { backup_mark_key, type Manifest, manifest_key } from './manifest.ts'
import { node_mark_key } from './node-mark.ts'
import { newScanHints } from './scan-hints.ts'
import { block_bytes } from './segment-file.ts'
import type { CommitLogWriter, FrameRange } from './writer.ts'

const index_bytes_per_key = 128

/** A commit log in files beside the data file, which are removed once merged. */
export interface CommitLogFiles {
  /** Files that must not be replaced. */
  readonly paths: readonly string[]
  /** Creates a commit log that lacked disk space before; undefined while it still does. */
  start(): Promise<CommitLogWriter | undefined>
  /**
   * The last step of a close: completes the data file with the frames that LMDB lacks and removes
   * the files. If the disk refuses, it rejects and the files stay.
   */
  finish(left: FrameRange): Promise<void>
}

export interface CommitLogTree extends Tree {
  /** Makes durable frames of another process, which follow the last one, visible. */
  take(frames: readonly Buffer[]): Promise<void>
  /** Position of the last frame. */
  seq(): number
  /** For one reader, such as a continuous backup. */
  readFrames(onNew: OnNewFrames): FrameReader
  /** Runs `work` once LMDB has all earlier commits. Checkpoints wait for it, commits do not. */
  atRest<T>(work: () => Promise<T>): Promise<T>
}

export interface CommitLogTreeOptions extends CheckpointerOptions {
  /** Undefined for a commit log that is elsewhere. */
  readonly files?: CommitLogFiles
  /** Bytes of the disk to leave free if possible. */
  readonly reserve_bytes?: number
  /** As the limit of this name; default 0. */
  readonly checkpoint_bytes?: number
  readonly bounds?: Partial<CommitLogBounds>
}

/** May await a checkpoint even if the disk has only its reserve left. */
const debt_min_bytes = 8 * 1024 * 1024

/** `opened_commit_log` is undefined if the disk had no space for it. */
export function commitLogTree(
  tree: LmdbTree,
  path: string,
  manifest: Manifest,
  opened_commit_log: CommitLogWriter | undefined,
  options: CommitLogTreeOptions,
): CommitLogTree {
  const { files, reserve_bytes = 0 } = options
  const bounds: CommitLogBounds = {
    ...boundsFor(options.checkpoint_bytes ?? 0),
    ...options.bounds,
  }
  const hints = newScanHints()
  let commit_log = opened_commit_log
  let broken: unknown
  /** The commit log is lost or takes no more, but LMDB is sound and memory has all its frames. */
  let is_log_lost = false
  let brokenCallback: ((cause: unknown) => void) | undefined
  const free = newFreeSpace(tree)
  let closing: Promise<void> | undefined
  let turn: Promise<unknown> = Promise.resolve()
  let backups_waiting = 0
  let write_ms = 0
  /** Bytes written into LMDB without a commit log. */
  let direct_bytes = 0
  let reader: FrameReader | undefined
  /** Position at the last check. */
  let checked_seq: number | undefined
  let unwatch = watch()
  const checkpointer = newCheckpointer({
    tree,
    id: manifest.id,
    slice: bounds.slice,
    options,
    commitLog: () => commit_log,
    left_bytes_max: files === undefined ? 0 : bounds.slice.bytes_max,
    onMerged: () => reader?.read(),
    onDone() {
      hints.clear()
      // The next checkpoint need not wait for a commit.
      void checkpointer.running()?.then(() => inTurn(async () => checkpointIfFull()))
    },
    onBroken: breakWith,
  })

  /** Serialises commits and all that changes which segment is active. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work)
    turn = result.catch(() => {})
    return result
  }

  function breakWith(cause: unknown): void {
    if (broken !== undefined) return
    broken = cause
    unwatch()
    brokenCallback?.(cause)
  }

  function watch(): () => void {
    const paths = commit_log === undefined ? [path] : [path, ...(files?.paths ?? [])]
    const onCheck = (): void => {
      free.ask()
      const is_idle = commit_log?.seq() === checked_seq && isWorthwhile()
      checked_seq = commit_log?.seq()
      // Deletes free pages of the file only after a checkpoint.
      const is_full = free.bytes() + spareBytes(tree) < freeBytesAgain(reserve_bytes)
      void inTurn(async () => checkpointIfFull(is_full || is_idle))
    }
    return watchFiles(paths, onCheck, (lost) => {
      is_log_lost = lost !== path
      breakWith(fault('store_failed', `${lost} was removed, replaced or cut short while in use`))
    })
  }

  /** Less may stay in the commit log, also at a close. */
  const isWorthwhile = (): boolean => (commit_log?.unmergedBytes() ?? 0) > bounds.slice.bytes_max

  const memtables = (): ChangeBuffer[] =>
    commit_log === undefined
      ? []
      : [commit_log.active(), commit_log.frozen()].filter(({ size }) => size > 0)

  function memoryOf(memtable: ChangeBuffer): number {
    return memtable.bytes() + memtable.size * index_bytes_per_key
  }

  /** Bytes by which LMDB may grow for the changes that it lacks. */
  function debt(): number {
    let [bytes, changes] = [0, 0]
    for (const memtable of memtables()) {
      bytes += memtable.bytes()
      changes += memtable.size
    }
    return growthOf({ bytes, changes }, tree, bounds.slice.changes_max)
  }

  function debtMax(): number {
    return Math.max(free.bytes() + spareBytes(tree) - reserve_bytes, debt_min_bytes)
  }

  function fits(commit_log: CommitLogWriter, frame_bytes: number): boolean {
    const bytes = frame_bytes + block_bytes
    if (commit_log.preallocatedBytes() >= bytes) return true
    return tree.freeBytes() >= bytes + preallocation_bytes
  }

  async function commit(changes: ChangeBuffer): Promise<void> {
    if (broken !== undefined) throw broken
    if (commit_log === undefined) await startLate()
    if (commit_log === undefined) {
      // A backup may copy the file, and a thread compare its sums.
      await checkpointer.running()
      const began_ms = performance.now()
      // Its frames no longer lead from one state to the next.
      changes.put(backup_mark_key, null)
      if (!(await writeDirectly(tree, changes))) throw fault('no_space')
      write_ms = performance.now() - began_ms
      direct_bytes += changes.bytes()
      return
    }
    try {
      if (!commit_log.isSettled()) await commit_log.settle()
      await makeRoom(commit_log, frameBytes(changes.bytes()))
      checkpointIfFull()
      write_ms = await commit_log.write(changes)
    } catch (error) {
      if (!isFull(error)) {
        is_log_lost ||= files === undefined
        breakWith(error)
      }
      throw error
    } finally {
      free.committed()
    }
    if (hints.isEmpty()) return
    for (const [key, value] of changes) if (value !== null) hints.onPut(key)
  }

  async function take(commit_log: CommitLogWriter, frames: readonly Buffer[]): Promise<void> {
    hints.clear()
    for (const frame of frames) {
      await makeRoom(commit_log, frame.length)
      checkpointIfFull()
      commit_log.take(frame)
    }
    free.ask()
  }

  /**
   * Waits for checkpoints while the active segment is full, or while later ones may take all free
   * space. Throws `no_space` if the commit log has no room for the frame.
   */
  async function makeRoom(commit_log: CommitLogWriter, frame_bytes: number): Promise<void> {
    for (;;) {
      const has_room =
        memoryOf(commit_log.active()) < bounds.bytes_max && fits(commit_log, frame_bytes)
      if (has_room && debt() <= debtMax()) return
      if (checkpointer.running() === undefined) checkpointer.begin()
      const running = checkpointer.running()
      if (running === undefined) {
        if (has_room) return
        throw fault('no_space')
      }
      await running
      // After a failed checkpoint only the frozen segment has its changes: keep it.
      if (broken !== undefined) throw broken
    }
  }

  function checkpointIfFull(is_due = false): void {
    if (commit_log === undefined || broken !== undefined || closing !== undefined) return
    const starts_at = backups_waiting > 0 ? bounds.bytes_max : bounds.checkpoint_bytes
    // Well before commits have to wait.
    const is_tight = 2 * debt() > debtMax()
    const is_large = commit_log.frozen().bytes() > 0 || memoryOf(commit_log.active()) >= starts_at
    if (is_large || is_tight || is_due) checkpointer.begin()
  }

  /** Starts a commit log that had no disk space at the open, if there is some now. */
  async function startLate(): Promise<void> {
    const started = await files?.start()
    if (started === undefined) return
    commit_log = started
    unwatch()
    unwatch = watch()
  }

  /** With `merges` false, unmerged changes stay in the commit log. */
  async function atRest<T>(work: () => Promise<T>, merges = true): Promise<T> {
    backups_waiting++
    try {
      for (;;) {
        await checkpointer.running()
        const begun = await inTurn(async () =>
          checkpointer.running() !== undefined
            ? {}
            : merges
              ? beginRest(work)
              : { work: checkpointer.holdWhile(work()) },
        )
        if (begun.work !== undefined) return await begun.work
      }
    } finally {
      backups_waiting--
    }
  }

  /** The promise is wrapped, so that the turn does not wait for the work. */
  function beginRest<T>(work: () => Promise<T>): { readonly work?: Promise<T> } {
    if (broken !== undefined) throw broken
    if (closing !== undefined) throw shut()
    const has_frozen = (commit_log?.frozen().bytes() ?? 0) > 0
    if (memtables().length > 0) {
      checkpointer.begin()
      if (checkpointer.running() === undefined) throw fault('no_space')
    }
    // The active segment needs a checkpoint after this one.
    if (has_frozen) return {}
    const begun = Promise.resolve(checkpointer.running()).then(() => {
      if (broken !== undefined) throw broken
      if ((commit_log?.frozen().bytes() ?? 0) > 0) throw fault('no_space')
      return work()
    })
    return { work: checkpointer.holdWhile(begun) }
  }

  async function drain(): Promise<void> {
    unwatch()
    try {
      await commit_log?.end()
      const can_finish = broken === undefined || is_log_lost
      const is_finished = can_finish && (await checkpointer.finish())
      await checkpointer.close()
      const left = commit_log?.activeFrames()
      await commit_log?.close()
      if (is_finished && left !== undefined) await files?.finish(left).catch(() => {})
    } finally {
      await tree.close()
    }
  }

  function* range(from: Key, to: Key, reverse: boolean): Generator<Entry> {
    const start = reverse ? from : hints.startOf(from)
    if (start >= to) return
    const counts = { deleted: 0 }
    const sources = memtables().map((memtable) => memtable.range(start, to, reverse))
    const below = tree.range(start, to, reverse)
    let is_first = !reverse
    for (const entry of mergedRange([...sources, below], reverse, counts)) {
      if (entry.key === manifest_key || entry.key === node_mark_key) continue
      if (is_first) hints.addGap(from, entry.key, counts.deleted)
      is_first = false
      yield entry
    }
    if (is_first) hints.addGap(from, to, counts.deleted)
  }

  return {
    get(key) {
      if (commit_log === undefined) return tree.get(key)
      const newest = commit_log.active().get(key)
      if (newest !== undefined) return newest ?? undefined
      const older = commit_log.frozen().get(key)
      return older === undefined ? tree.get(key) : (older ?? undefined)
    },
    range,
    parts: () => ({ newer: memtables(), below: tree }),
    commit(changes) {
      if (closing !== undefined) return Promise.reject(shut())
      return inTurn(() => commit(changes))
    },
    take(frames) {
      if (closing !== undefined) return Promise.reject(shut())
      const writer = commit_log
      if (broken !== undefined || writer === undefined) return Promise.reject(broken ?? shut())
      return inTurn(() => take(writer, frames))
    },
    seq: () => commit_log?.seq() ?? manifest.seq,
    readFrames(onNew) {
      const writer = () => commit_log
      reader = newFrameReader(manifest.id, writer, () => direct_bytes, onNew)
      return reader
    },
    onBroken(callback) {
      brokenCallback = callback
      if (broken !== undefined) callback(broken)
    },
    freeBytes: () => free.recentBytes() + spareBytes(tree),
    isCheckpointSlow: checkpointer.isSlow,
    write_ms: () => write_ms,
    numbers: () => ({
      written_bytes: direct_bytes + (commit_log?.writtenBytes() ?? 0),
      debt_bytes: commit_log?.unmergedBytes() ?? 0,
      checkpoints: checkpointer.count(),
      checkpoint_ms: checkpointer.ms(),
      ...tree.usage(),
      free_bytes: free.bytes(),
    }),
    damage: async () => (closing === undefined ? atRest(() => tree.damage(), false) : []),
    async backup(target) {
      if (closing !== undefined) throw shut()
      return atRest(() => tree.backup(target))
    },
    atRest,
    close: () => {
      closing ??= inTurn(drain)
      return closing
    },
  }
}

/** How far a segment's file may grow ahead of a write. */
const preallocation_bytes = 2 * 1024 * 1024

function shut(): Fault {
  return fault('shutting_down', 'the store is closed')
}
