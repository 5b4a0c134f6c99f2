/**
 * When the log is brought into the tree, and by whom.
 *
 * What is old is merged, one segment at a time, by a thread that is started for the first; only at
 * the end, where no thread is there and little is left, by this one. A merge for which the disk has
 * no room is put off, and tried again when it is asked for; any other that fails is the last.
 */
import { isFault } from '../../core/faults.ts'
import type { LmdbTree } from '../lmdb/tree.ts'
import type { SliceBounds } from './checkpoint.ts'
import { type CheckpointRunner, runCheckpoint } from './checkpoint-job.ts'
import { newCheckpointThread } from './checkpoint-thread.ts'
import { encodeManifest, manifest_key } from './manifest.ts'
import type { LogWriter } from './writer.ts'

export interface Checkpointer {
  /** Resolves, and never rejects, once it is done, put off or failed; undefined where none is. */
  underWay(): Promise<void> | undefined
  /**
   * Begins to merge what is old, or else what is young, which is old from now on. Does nothing
   * where a merge is under way or was just put off, or nothing is there.
   */
  begin(): void
  /** Nothing is merged until this has settled; none may be under way. */
  hold(until: Promise<void>): Promise<void>
  /** Merges all that is left and ends the thread; false where something is left all the same. */
  finish(): Promise<boolean>
  /** Ends the thread and leaves what there is. */
  close(): Promise<void>
}

export interface CheckpointerPort {
  readonly tree: LmdbTree
  readonly path: string
  /** Of the log. */
  readonly id: Buffer
  readonly slice: SliceBounds
  /** Undefined where there is none. */
  log(): LogWriter | undefined
  /** What was old is in the tree now. */
  onMerged(): void
  /** Tells of a merge that was put off. */
  onPutOff(): void
  onBroken(error: unknown): void
}

/** A merge for which there was no room is not tried again for so long. */
const put_off_ms = 900

export function newCheckpointer(port: CheckpointerPort): Checkpointer {
  const { tree, path, id, slice } = port
  let under_way: Promise<void> | undefined
  let thread: CheckpointRunner | undefined
  let is_broken = false
  /** Before then none is tried again. */
  let put_off_until_ms = 0

  function hold(until: Promise<void>): Promise<void> {
    const mine = until.then(() => {
      if (under_way === mine) under_way = undefined
    })
    under_way = mine
    return mine
  }

  /** False where there was nothing to begin. */
  function begin(merger: () => Pick<CheckpointRunner, 'run'>): boolean {
    const log = port.log()
    if (under_way !== undefined || log === undefined || is_broken) return false
    if (performance.now() < put_off_until_ms) return false
    const image = log.frozen().bytes() > 0 ? log.frozen() : log.active()
    if (image.bytes() === 0) return false
    if (image === log.active()) log.rotate()
    const written = log.frozenFrames()
    const head = { id, seq: written.last_seq, is_open: true }
    void hold(merger().run({ written, head, slice }).then(isDone).catch(isNotDone))
    return true
  }

  function isDone(): void {
    // Reads must see what was merged in the tree before they miss it in the image.
    tree.refresh()
    port.log()?.releaseFrozen()
    port.onMerged()
  }

  function isNotDone(error: unknown): void {
    if (isFault(error) && error.code === 'no_space') {
      put_off_until_ms = performance.now() + put_off_ms
      tree.refresh()
      port.onPutOff()
    } else {
      is_broken = true
      port.onBroken(error)
    }
  }

  function inThread(): CheckpointRunner {
    thread ??= newCheckpointThread(path)
    return thread
  }

  const here: Pick<CheckpointRunner, 'run'> = { run: async (job) => runCheckpoint(tree, job) }

  /** A little is merged sooner than a thread has started. */
  function suited(): Pick<CheckpointRunner, 'run'> {
    const log = port.log() as LogWriter
    const is_little = log.frozen().bytes() < slice.bytes_max
    return thread === undefined && is_little ? here : inThread()
  }

  return {
    underWay: () => under_way,
    begin: () => void begin(inThread),
    hold,
    async finish() {
      await under_way
      put_off_until_ms = 0
      while (begin(suited)) await under_way
      await thread?.close()
      const log = port.log()
      if (is_broken || log === undefined) return false
      if (log.frozen().bytes() > 0 || log.active().bytes() > 0) return false
      const head = { id, seq: log.seq(), is_open: false }
      tree.commit((batch) => batch.put(manifest_key, encodeManifest(head)))
      return true
    },
    async close() {
      await under_way
      await thread?.close()
    },
  }
}
