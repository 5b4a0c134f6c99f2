/**
 * Decides when a checkpoint runs: one frozen segment at a time, written by another process. Without
 * disk space it is postponed; after any other failure there are no more.
 */
import type { Emit } from '../../core/events.ts'
import { limitTable } from '../../core/limits.ts'
import { isFull } from '../disk/file-system.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'
import { newSlowWatch } from '../slow-watch.ts'
import type { SliceBounds } from './bounds.ts'
import type { CommitLogWriter } from './writer.ts'

export interface Checkpointer {
  /** Resolves when it is done, postponed or failed; never rejects. Undefined if none runs. */
  running(): Promise<void> | undefined
  /**
   * Starts a checkpoint of the frozen segment, else of the active one, which it freezes. Does
   * nothing if one runs or was just postponed, or without changes.
   */
  begin(): void
  /** Prevents checkpoints until `work` settles; none may run. */
  holdWhile<T>(work: Promise<T>): Promise<T>
  /** Checkpoints all changes, or leaves a few in the active segment; false if more are left. */
  finish(): Promise<boolean>
  /** Unmerged changes stay in the commit log. */
  close(): Promise<void>
  /** Successful ones since the open. */
  count(): number
  /** Their total time. */
  ms(): number
  /** Whether a commit has been under way for longer than `slow_commit_ms`. */
  isSlow(): boolean
}

export interface CheckpointerOptions {
  readonly emit: Emit
  readonly slow_commit_ms?: number
}

export interface CheckpointerPort {
  readonly options: CheckpointerOptions
  readonly tree: LmdbTree
  readonly id: Buffer
  readonly slice: SliceBounds
  commitLog(): CommitLogWriter | undefined
  /** Up to this many bytes of frames need no checkpoint at the close. */
  readonly left_bytes_max: number
  /** The frozen segment is in LMDB, and its memtable is about to be cleared. */
  onMerged(): void
  /** The frozen segment is in LMDB and free. */
  onDone(): void
  onBroken(error: unknown): void
}

/** After a checkpoint without disk space none is tried for this long, unless space was freed. */
const postponed_ms = 900
const more_bytes = 1024 * 1024

export function newCheckpointer(port: CheckpointerPort): Checkpointer {
  const { tree, id, slice } = port
  const { emit, slow_commit_ms = limitTable.slow_commit_ms.value } = port.options
  let running: Promise<void> | undefined
  let is_broken = false
  let is_postponed = false
  let postponed_until_ms = 0
  /** Free bytes when it was postponed. */
  let postponed_bytes = 0
  let count = 0
  let all_ms = 0
  const watch = newSlowWatch(slow_commit_ms, (fields) => emit('slow_checkpoint', fields))

  function hold(until: Promise<void>): Promise<void> {
    const held = until.then(() => {
      if (running === held) running = undefined
    })
    running = held
    return held
  }

  // A checkpoint would copy a damaged page and give the copy a valid sum.
  const verified = tree.verified()
  const scan = verified && hold(verified.catch(port.onBroken))

  /** Concurrent commits must not use up the space that others have freed. */
  function mustWait(): boolean {
    if (performance.now() >= postponed_until_ms) return false
    return tree.freeBytes() < postponed_bytes + more_bytes
  }

  /** False without work. At the close no later frame needs the unsettled place. */
  function begin(is_closing = false): boolean {
    const commit_log = port.commitLog()
    if (running !== undefined || commit_log === undefined || is_broken) return false
    if (mustWait()) return false
    if (commit_log.frozen().bytes() === 0) {
      if (commit_log.active().bytes() === 0) return false
      if (!commit_log.isSettled() && !is_closing) return false
      commit_log.rotate()
    }
    const { frames, ...seqs } = commit_log.frozenFrames()
    const manifest = { id, seq: seqs.last_seq, is_open: true }
    const began_ms = performance.now()
    const [bytes, changes] = [frames.length, commit_log.frozen().size]
    const done = (): void => onDone(performance.now() - began_ms, { bytes, changes })
    watch.began(began_ms)
    const job = { frames: [frames], commit_log: { id, ...seqs }, manifest, slice }
    const ran = tree.write(job, onCommit).finally(() => watch.ended(performance.now()))
    void hold(ran.then(done).catch(onError))
    return true
  }

  function onDone(ms: number, size: { readonly bytes: number; readonly changes: number }): void {
    count++
    all_ms += ms
    is_postponed = false
    emit('checkpoint', { ms: Math.round(ms), ...size })
    // Reads must see the changes in LMDB before the memtable drops them.
    tree.refresh()
    port.onMerged()
    port.commitLog()?.releaseFrozen()
    port.onDone()
  }

  function onError(error: unknown): void {
    const reason = isFull(error) ? postpone() : error
    if (reason === undefined) return
    is_broken = true
    const text = reason instanceof Error ? reason.message : String(reason)
    emit('checkpoint_failed', { error: text })
    port.onBroken(reason)
  }

  /** Returns the error of a data file that a full disk has left unwritable. */
  function postpone(): unknown {
    try {
      tree.refresh()
    } catch (error) {
      return error
    }
    postponed_until_ms = performance.now() + postponed_ms
    postponed_bytes = tree.freeBytes()
    if (!is_postponed) emit('checkpoint_waits', {})
    is_postponed = true
    return undefined
  }

  function onCommit(): void {
    const now_ms = performance.now()
    watch.ended(now_ms)
    watch.began(now_ms)
  }

  return {
    running: () => running,
    begin: () => void begin(),
    holdWhile(work) {
      const settled = (): void => {}
      void hold(work.then(settled, settled))
      return work
    },
    async finish() {
      postponed_until_ms = 0
      const isEnough = (): boolean =>
        (port.commitLog()?.unmergedBytes() ?? 0) <= port.left_bytes_max &&
        (port.commitLog()?.frozen().bytes() ?? 0) === 0
      while (!isEnough() && (running !== undefined || begin(true))) await running
      return !is_broken && port.commitLog() !== undefined && isEnough()
    },
    async close() {
      // A file that is only read may be closed before its scan ends.
      if (running !== scan) await running
    },
    count: () => count,
    ms: () => all_ms,
    isSlow: watch.isSlow,
  }
}
