/**
 * A tree with a log before it: a commit is one write to the log, synced as it is made.
 *
 * What was committed stands in two places: in the young segment of the log, and in memory over the
 * tree in the image of that segment, where reads find it. Once that is enough for large commits of
 * the tree, it becomes the old segment, and a merger brings it into the tree while commits go on in
 * the other one. When all of that is on disk, the old image is emptied, and the old segment may be
 * written over.
 *
 *     segment 0   ▓▓▓▓▓▓ old: being merged ▓▓▓▓▓▓      image
 *     segment 1   ███ young: written ███ · · · ·       image
 *
 * So each acknowledged change is at every moment in the tree or in a segment that nobody writes
 * over, and memory holds two segments at most: a writer that outruns the merger waits for it. After
 * a failed write or merge nothing is written any more, and the log stays for the next opening.
 */
import type { Key } from '../../bytes/keys.ts'
import { type Fault, fault } from '../../words/faults.ts'
import type { LmdbTree } from '../lmdb-tree.ts'
import { mergedRange } from '../merged-range.ts'
import type { Entry, Tree, Writes } from '../store.ts'
import { decodeHead, type Head, head_key } from './head.ts'
import { mergeFrames, type SliceBounds, slice_bounds } from './merge.ts'
import { type Merger, mergeSegment } from './merger.ts'
import { removeLog } from './recover.ts'
import { newSkips } from './skip.ts'
import { newThread } from './thread.ts'
import { createLog, type LogWriter } from './writer.ts'

export interface LogOptions {
  /** 8 random bytes, for a file that never had a log. */
  readonly id: Buffer
  readonly bounds?: Partial<LogBounds>
}

/** Of the young segment: bytes of its frames, and what its changes take in memory beside them. */
export interface LogBounds {
  /** From here on it is merged, if no other is. */
  readonly merge_bytes: number
  /** Here commits wait for the merger. */
  readonly bytes_max: number
  readonly slice: SliceBounds
}

const log_bounds: LogBounds = {
  merge_bytes: 32 * 1024 * 1024,
  bytes_max: 64 * 1024 * 1024,
  slice: slice_bounds,
}
const change_bytes = 128

/**
 * Starts a log before the tree of the data file at `path`, beside which there is none (recoverLog).
 * Closing folds it in. Rejects with the system's error where the files cannot be made.
 */
export async function openLogTree(
  tree: LmdbTree,
  path: string,
  options: LogOptions,
): Promise<Tree> {
  const stored = tree.get(head_key)
  const before: Head =
    stored === undefined ? { id: options.id, seq: 0, is_open: false } : decodeHead(stored)
  const log = await createLog(path, before)
  await mergeFrames(tree, [], { ...before, is_open: true })
  return logTree(tree, path, log, before.id, { ...log_bounds, ...options.bounds })
}

function logTree(
  tree: LmdbTree,
  path: string,
  log: LogWriter,
  id: Buffer,
  bounds: LogBounds,
): Tree {
  /** Settles, never rejects, when what is old is in the tree or `broken` says why not. */
  let merging: Promise<void> | undefined
  let thread: Merger | undefined
  let broken: unknown
  let closing: Promise<void> | undefined
  let turn: Promise<unknown> = Promise.resolve()
  let copies_waiting = 0
  const skips = newSkips()

  /** One after the other: commits, and all else that goes on from a segment to the next. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work)
    turn = result.catch(() => {})
    return result
  }

  function weight(): number {
    const young = log.young()
    return young.bytes() + young.changes() * change_bytes
  }

  async function commit(writes: Writes, is_alone: boolean): Promise<void> {
    if (merging !== undefined && weight() >= bounds.bytes_max) await merging
    // Before all else: what is old now is nowhere but in its segment, which nobody may write over.
    if (broken !== undefined) throw broken
    mergeWhereFull()
    try {
      await log.write(writes, is_alone)
    } catch (error) {
      broken = error
      throw error
    }
    if (skips.isEmpty()) return
    for (const [key, value] of writes) if (value !== null) skips.notePut(key)
  }

  function mergeWhereFull(): void {
    const merges_at = copies_waiting > 0 ? bounds.bytes_max : bounds.merge_bytes
    if (merging !== undefined || weight() < merges_at) return
    // What came meanwhile is merged behind it, not when the next commit has come.
    void turnOver(inThread()).then(() => inTurn(goOn))
  }

  async function goOn(): Promise<void> {
    try {
      if (broken === undefined && closing === undefined) mergeWhereFull()
    } catch (error) {
      broken = error
    }
  }

  /** Begins to merge what is young; nothing else may be merging. */
  function turnOver(merger: Pick<Merger, 'merge'>): Promise<void> {
    const written = log.turnOver()
    const head = { id, seq: written.last_seq, is_open: true }
    const isDone = (): void => {
      // Reads must see what was merged in the tree before they miss it in the image.
      tree.refresh()
      log.freeOld()
      skips.clear()
    }
    const isBroken = (error: unknown): void => {
      broken = error
    }
    return wait(merger.merge({ written, head, slice: bounds.slice }).then(isDone, isBroken))
  }

  /** Nothing is merged until this has settled. */
  function wait(until: Promise<void>): Promise<void> {
    const mine = until.then(() => {
      if (merging === mine) merging = undefined
    })
    merging = mine
    return mine
  }

  function inThread(): Merger {
    thread ??= newThread(path)
    return thread
  }

  /** A little is merged sooner than a thread has started. */
  function suited(): Pick<Merger, 'merge'> {
    const is_little = thread === undefined && weight() < bounds.slice.bytes_max
    return is_little ? { merge: (job) => mergeSegment(tree, job) } : inThread()
  }

  /**
   * A copy of the tree with all that was committed in it. While it is made nothing is merged, for
   * the copy would have a part of it; commits go on.
   */
  async function backup(target: string): Promise<number> {
    copies_waiting++
    try {
      for (;;) {
        await merging
        const made = await inTurn(async () => (merging === undefined ? beginCopy(target) : {}))
        if (made.copy !== undefined) return await made.copy
      }
    } finally {
      copies_waiting--
    }
  }

  /** Wrapped, so that whose turn it is need not wait for it. */
  function beginCopy(target: string): { readonly copy?: Promise<number> } {
    if (broken !== undefined) throw broken
    if (closing !== undefined) throw shut()
    // Where nothing is young, the last frame must stand: it tells what this log belongs to.
    if (log.young().bytes() > 0) void turnOver(suited())
    const copy = Promise.resolve(merging).then(() => {
      if (broken !== undefined) throw broken
      return tree.backup(target)
    })
    const ended = (): void => {}
    void wait(copy.then(ended, ended))
    return { copy }
  }

  async function drain(): Promise<void> {
    await merging
    if (broken === undefined) await turnOver(suited())
    await thread?.close()
    await log.close()
    if (broken === undefined) await removeLog(tree, path)
    await tree.close()
  }

  function* range(from: Key, to: Key, reverse: boolean): Generator<Entry> {
    const start = reverse ? from : skips.startOf(from)
    if (start >= to) return
    const counts = { deleted: 0 }
    const sources = [log.young(), log.old()]
      .filter((image) => image.changes() > 0)
      .map((image) => image.range(start, to, reverse))
    const below = tree.range(start, to, reverse)
    let is_first = !reverse
    for (const entry of mergedRange([...sources, below], reverse, counts)) {
      if (entry.key === head_key) continue
      if (is_first) skips.notePassed(from, entry.key, counts.deleted)
      is_first = false
      yield entry
    }
    if (is_first) skips.notePassed(from, to, counts.deleted)
  }

  return {
    get(key) {
      const newest = log.young().get(key)
      if (newest !== undefined) return newest ?? undefined
      const older = log.old().get(key)
      return older === undefined ? tree.get(key) : (older ?? undefined)
    },
    range,
    commit(writes, is_alone = false) {
      if (closing !== undefined) return Promise.reject(shut())
      return inTurn(() => commit(writes, is_alone))
    },
    freeBytes: () => tree.freeBytes(),
    async backup(target) {
      if (closing !== undefined) throw shut()
      return backup(target)
    },
    close: () => {
      closing ??= inTurn(drain)
      return closing
    },
  }
}

function shut(): Fault {
  return fault('shutting_down', 'the store is closed')
}
