/**
 * Decides when a checkpoint runs: one frozen segment at a time, written by another process. A
 * checkpoint without disk space is postponed; after any other failure there is no further one.
 */
import type { Emit } from '../../core/events.ts'
import { limitTable } from '../../core/limits.ts'
import { isFull } from '../disk/file-system.ts'
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'
import { newSlowWatch } from '../slow-watch.ts'
import type { SliceBounds } from './bounds.ts'
import type { CommitLogWriter } from './writer.ts'

export interface Checkpointer {
  /** Resolves, never rejects, when it is done, postponed or failed; undefined if none runs. */
  running(): Promise<void> | undefined
  /**
   * Starts a checkpoint of the frozen segment, or else freezes the active one and starts. Does
   * nothing if a checkpoint runs or was just postponed, or there are no changes.
   */
  begin(): void
  /** Prevents checkpoints until this settles, as which it does; none may run. */
  holdWhile<T>(work: Promise<T>): Promise<T>
  /** Checkpoints all changes, or leaves a few in the active segment; false if more are left. */
  finish(): Promise<boolean>
  /** What is not checkpointed stays in the commit log. */
  close(): Promise<void>
  /** How many have succeeded since the open. */
  count(): number
  /** The time of all of them. */
  ms(): number
  /** Whether a commit of one is under way for longer than `slow_commit_ms`. */
  isSlow(): boolean
}

export interface CheckpointerOptions {
  readonly emit: Emit
  /** As the limit of this name. */
  readonly slow_commit_ms?: number
}

export interface CheckpointerPort {
  readonly options: CheckpointerOptions
  readonly tree: LmdbTree
  /** Id of the commit log. */
  readonly id: Buffer
  readonly slice: SliceBounds
  /** Undefined if there is no commit log. */
  commitLog(): CommitLogWriter | undefined
  /** So many bytes of frames need no checkpoint at the close. */
  readonly left_bytes_max: number
  /** The frozen segment is in LMDB and free. */
  onDone(): void
  onBroken(error: unknown): void
}

/** After a checkpoint without disk space none is tried for so long, unless so much more is free. */
const postponed_ms = 900
const more_bytes = 1024 * 1024

export function newCheckpointer(port: CheckpointerPort): Checkpointer {
  const { tree, id, slice } = port
  const { emit, slow_commit_ms = limitTable.slow_commit_ms.value } = port.options
  let running: Promise<void> | undefined
  let is_broken = false
  let is_postponed = false
  let postponed_until_ms = 0
  /** Free where it was postponed. */
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

  // A checkpoint would copy a damaged page, and give the copy a sum that is right.
  const verified = tree.verified()
  const scan = verified && hold(verified.catch(port.onBroken))

  /** Commits that go on meanwhile must not take the room that others have made for it. */
  function mustWait(): boolean {
    if (performance.now() >= postponed_until_ms) return false
    return tree.freeBytes() < postponed_bytes + more_bytes
  }

  /** False if there was nothing to begin. At the close no later frame needs the unsettled place. */
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
    // Reads must see the changes in LMDB before they miss them in the memtable.
    tree.refresh()
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

  /** Returns the error of a data file that takes nothing more, as a full disk may have left it. */
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
      // A file that is only read may be closed before all of it is compared.
      if (running !== scan) await running
    },
    count: () => count,
    ms: () => all_ms,
    isSlow: watch.isSlow,
  }
}
