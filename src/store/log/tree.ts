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
 * over, and memory holds two segments at most: a writer that outruns the merger waits for it. An
 * opening takes a log that was left over as it is. Only the merger's thread commits to the tree as
 * long as it lives; before it is started and once it has ended, this one does.
 *
 * A commit for which the disk has no room is refused, and a merge waits for room; where there is
 * none for a log, commits go into the tree one by one until there is. After a failed write or
 * merge, or once a file is not there any more, nothing is written, and the log stays for the next
 * opening.
 */
import type { Key } from '../../codec/keys.ts'
import { type Fault, fault } from '../../core/faults.ts'
import { type Sheet, sheetOf } from '../change-buffer.ts'
import { growthOf, spareBytes } from '../lmdb/disk-space.ts'
import type { LmdbTree } from '../lmdb/tree.ts'
import { mergedRange } from '../merged-range.ts'
import type { Entry, Tree, Writes } from '../store.ts'
import { block_bytes } from './blocks.ts'
import { type SliceBounds, slice_bounds } from './checkpoint.ts'
import { newCheckpointer } from './checkpointer.ts'
import { watchFiles } from './file-watch.ts'
import { frameBytes } from './frame.ts'
import { encodeManifest, type Manifest, manifest_key } from './manifest.ts'
import type { Image } from './memtable.ts'
import { removeSegments, segmentPaths } from './recovery.ts'
import { newScanHints } from './scan-hints.ts'
import type { SegmentOptions } from './segment.ts'
import type { OnNotice } from './segment-file.ts'
import { putInto, startLog } from './start.ts'
import type { LogWriter } from './writer.ts'

/** Of the young segment: bytes of its frames, and what its changes take in memory beside them. */
export interface LogBounds {
  /** From here on it is merged, if no other is. */
  readonly checkpoint_bytes: number
  /** Here commits wait for the merger. */
  readonly bytes_max: number
  readonly slice: SliceBounds
}

const log_bounds: LogBounds = {
  checkpoint_bytes: 32 * 1024 * 1024,
  bytes_max: 64 * 1024 * 1024,
  slice: slice_bounds,
}
const change_bytes = 128

export interface LogTreeOptions extends SegmentOptions {
  readonly onNotice: OnNotice
  /** Of the disk; what is there or on its way leaves so much free if it can. */
  readonly reserve_bytes?: number
  readonly bounds?: Partial<LogBounds>
}

/** Where the disk has no more than its reserve, at least so much may be on its way at once. */
const least_debt_bytes = 8 * 1024 * 1024

/** Over a log that is open, or none where the disk had no room for it. */
export function logTree(
  tree: LmdbTree,
  path: string,
  head: Manifest,
  opened_log: LogWriter | undefined,
  how: LogTreeOptions,
): Tree {
  const bounds: LogBounds = { ...log_bounds, ...how.bounds }
  const skips = newScanHints()
  let log = opened_log
  let broken: unknown
  /** Only the log is lost, and all that it held is in memory. */
  let is_log_lost = false
  let tellBroken: ((cause: unknown) => void) | undefined
  let free_bytes = tree.freeBytes()
  let closing: Promise<void> | undefined
  let turn: Promise<unknown> = Promise.resolve()
  let copies_waiting = 0
  let unwatch = watch()
  const merging = newCheckpointer({
    tree,
    path,
    id: head.id,
    slice: bounds.slice,
    log: () => log,
    onMerged() {
      skips.clear()
      // What came meanwhile is merged behind it, not when the next commit has come.
      void inTurn(async () => mergeWhereFull())
    },
    onPutOff: () => how.onNotice(`${path}: the disk is full, so its log cannot be folded in`),
    onBroken: breakWith,
  })

  /** One after the other: commits, and all else that goes on from a segment to the next. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work)
    turn = result.catch(() => {})
    return result
  }

  function breakWith(cause: unknown): void {
    if (broken !== undefined) return
    broken = cause
    unwatch()
    tellBroken?.(cause)
  }

  function watch(): () => void {
    const paths = log === undefined ? [path] : [path, ...segmentPaths(path)]
    const onLook = (): void => {
      free_bytes = tree.freeBytes()
      void inTurn(async () => mergeWhereFull())
    }
    return watchFiles(paths, onLook, (lost) => {
      is_log_lost = lost !== path
      breakWith(fault('store_failed', `${lost} was removed, replaced or cut short while in use`))
    })
  }

  const images = (): Image[] =>
    log === undefined ? [] : [log.active(), log.frozen()].filter((image) => image.changes() > 0)

  function weight(image: Image): number {
    return image.bytes() + image.changes() * change_bytes
  }

  /** What the tree will take for all that it does not have yet. */
  function debt(): number {
    let [bytes, changes] = [0, 0]
    for (const image of images()) {
      bytes += image.bytes()
      changes += image.changes()
    }
    return growthOf({ bytes, changes }, tree, bounds.slice.changes_max)
  }

  /** So much the tree may take for it: what is left, and a little where that is nothing. */
  function debtMax(): number {
    const left = free_bytes + spareBytes(tree) - (how.reserve_bytes ?? 0)
    return Math.max(left, least_debt_bytes)
  }

  /** Whether the log has place for it as it is. */
  function fits(log: LogWriter, sheet: Sheet): boolean {
    const bytes = frameBytes(sheet.bytes()) + block_bytes
    return log.preallocatedBytes() >= bytes || tree.freeBytes() >= bytes + fill_bytes
  }

  async function commit(writes: Writes): Promise<void> {
    if (broken !== undefined) throw broken
    const sheet = sheetOf(writes)
    if (log === undefined) await startLate()
    if (log === undefined) {
      if (!putInto(tree, sheet)) throw fault('no_space')
      return
    }
    await makeWay(log, sheet)
    mergeWhereFull()
    try {
      await log.write(sheet)
    } catch (error) {
      breakWith(error)
      throw error
    }
    free_bytes = tree.freeBytes()
    if (skips.isEmpty()) return
    for (const [key, value] of sheet) if (value !== null) skips.notePut(key)
  }

  /**
   * Waits for the merger where the young segment is full, or what is to be merged may take as much
   * of the disk as there is. Throws `no_space` where the log has no place for these.
   */
  async function makeWay(log: LogWriter, sheet: Sheet): Promise<void> {
    for (;;) {
      const has_place = weight(log.active()) < bounds.bytes_max && fits(log, sheet)
      if (has_place && debt() <= debtMax()) return
      if (merging.underWay() === undefined) merging.begin()
      const done = merging.underWay()
      if (done === undefined) {
        if (has_place) return
        throw fault('no_space')
      }
      await done
      // What is old now is nowhere but in its segment, which nobody may write over.
      if (broken !== undefined) throw broken
    }
  }

  function mergeWhereFull(): void {
    if (log === undefined || broken !== undefined || closing !== undefined) return
    const merges_at = copies_waiting > 0 ? bounds.bytes_max : bounds.checkpoint_bytes
    // Well before commits have to wait.
    const is_tight = 2 * debt() > debtMax()
    if (log.frozen().bytes() > 0 || weight(log.active()) >= merges_at || is_tight) merging.begin()
  }

  /** There is room for a log by now. */
  async function startLate(): Promise<void> {
    const started = await startLog(tree, path, head, how)
    if (started === undefined) return
    tree.commit((batch) => batch.put(manifest_key, encodeManifest({ ...head, is_open: true })))
    log = started
    unwatch()
    unwatch = watch()
  }

  /**
   * A copy of the tree with all that was committed in it. While it is made nothing is merged, for
   * the copy would have a part of it; commits go on.
   */
  async function backup(target: string): Promise<number> {
    copies_waiting++
    try {
      for (;;) {
        await merging.underWay()
        const made = await inTurn(async () =>
          merging.underWay() === undefined ? beginCopy(target) : {},
        )
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
    const is_behind = (log?.frozen().bytes() ?? 0) > 0
    if (images().length > 0) {
      merging.begin()
      if (merging.underWay() === undefined) throw fault('no_space')
    }
    // Then there is young behind what is old.
    if (is_behind) return {}
    const copy = Promise.resolve(merging.underWay()).then(() => {
      if (broken !== undefined) throw broken
      if ((log?.frozen().bytes() ?? 0) > 0) throw fault('no_space')
      return tree.backup(target)
    })
    const ended = (): void => {}
    void merging.hold(copy.then(ended, ended))
    return { copy }
  }

  async function drain(): Promise<void> {
    unwatch()
    try {
      const can_finish = broken === undefined || is_log_lost
      const is_finished = can_finish && (await merging.finish())
      await merging.close()
      await log?.close()
      if (is_finished) await removeSegments(path)
    } finally {
      await tree.close()
    }
  }

  function* range(from: Key, to: Key, reverse: boolean): Generator<Entry> {
    const start = reverse ? from : skips.startOf(from)
    if (start >= to) return
    const counts = { deleted: 0 }
    const sources = images().map((image) => image.range(start, to, reverse))
    const below = tree.range(start, to, reverse)
    let is_first = !reverse
    for (const entry of mergedRange([...sources, below], reverse, counts)) {
      if (entry.key === manifest_key) continue
      if (is_first) skips.notePassed(from, entry.key, counts.deleted)
      is_first = false
      yield entry
    }
    if (is_first) skips.notePassed(from, to, counts.deleted)
  }

  return {
    get(key) {
      if (log === undefined) return tree.get(key)
      const newest = log.active().get(key)
      if (newest !== undefined) return newest ?? undefined
      const older = log.frozen().get(key)
      return older === undefined ? tree.get(key) : (older ?? undefined)
    },
    range,
    commit(writes) {
      if (closing !== undefined) return Promise.reject(shut())
      return inTurn(() => commit(writes))
    },
    onBroken(told) {
      tellBroken = told
      if (broken !== undefined) told(broken)
    },
    room: () => free_bytes + spareBytes(tree),
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

/** So much the file of a segment may be filled ahead besides. */
const fill_bytes = 2 * 1024 * 1024

function shut(): Fault {
  return fault('shutting_down', 'the store is closed')
}
