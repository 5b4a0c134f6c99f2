/**
 * Group commit: makes the engine's Store from a Tree.
 *
 * A transaction runs at once on the main thread and writes into the open group's change buffer.
 * While one commit is in flight, the next transactions form a group, so one sync serves many. A
 * transaction sees all earlier ones, durable or not, and resolves only after its own commit and
 * every earlier one; one that writes nothing or throws waits for the commits that it may have read.
 * Views read durable state only.
 *
 * A commit refused for lack of disk space takes the open group with it, which may have read the
 * refused changes. After any other failure every open and later update rejects with `store_failed`,
 * and `onFail` is called once.
 */
import type { Key } from '../codec/keys.ts'
import { systemClock } from '../core/clock.ts'
import { type Emit, emitNothing } from '../core/events.ts'
import { type Fault, fault, isFault, wholeFaults } from '../core/faults.ts'
import { limitTable } from '../core/limits.ts'
import type { BloomFilter } from './bloom-filter.ts'
import { type ChangeBuffer, newChangeBuffer } from './changes/change-buffer.ts'
import { isFull } from './disk/file-system.ts'
import { mergedRange } from './merged-range.ts'
import { newSlowWatch } from './slow-watch.ts'
import { newSpaceWatch } from './space-watch.ts'
import type { CommitListener, Entry, Range, Store, Tx, View } from './store.ts'
import { checkKeyBytes, type Tree } from './tree.ts'

interface Group {
  readonly changes: ChangeBuffer
  /** When its first caller began to wait. */
  began_ms: number
  readonly done: Promise<void>
  resolve(): void
  reject(error: Fault): void
}

export interface StoreOptions {
  /** Called once, when a commit has failed. */
  readonly onFail?: (failure: Fault) => void
  readonly filter?: BloomFilter
  readonly emit?: Emit
  /** A slower commit is logged. */
  readonly slow_commit_ms?: number
  /** Requests are refused below. */
  readonly free_bytes_min?: number
}

export function storeOf(tree: Tree, options: StoreOptions = {}): Store {
  const { onFail, filter, emit = emitNothing, free_bytes_min = 0 } = options
  let open: Group = newGroup(newChangeBuffer())
  let in_flight: Group | undefined
  /** The last commit's buffer, for the next group. */
  let recycled: ChangeBuffer = newChangeBuffer()
  let failure: Fault | undefined
  let closing: Promise<void> | undefined
  let commits = 0
  let commit_listener: CommitListener | undefined
  const watch = newSlowWatch(
    options.slow_commit_ms ?? limitTable.slow_commit_ms.value,
    (fields) => {
      const { changes } = in_flight as Group
      emit('slow_commit', { ...fields, changes: changes.size, bytes: changes.bytes() })
    },
  )
  const freeBytes = (): number | undefined => tree.freeBytes()
  const space = newSpaceWatch({ emit, clock: systemClock, freeBytes, free_bytes_min })
  const unavailable = (): Fault | undefined => tree.unavailable?.()
  tree.onBroken?.(fail)

  const write = (key: Key, value: Buffer | null): void => {
    checkKeyBytes(key.length)
    if (value !== null) filter?.add(key)
    open.changes.put(key, value)
  }
  const durable: View = {
    get: (key) => tree.get(key),
    scan: (range) => scanOver(tree, [], range),
  }
  const tx: Tx = {
    get(key) {
      const own = open.changes.get(key)
      if (own !== undefined) return own ?? undefined
      const pending = in_flight?.changes.get(key)
      if (pending !== undefined) return pending ?? undefined
      return filter?.isAbsent(key) === true ? undefined : tree.get(key)
    },
    scan(range) {
      const { changes } = open
      return scanOver(tree, in_flight ? [changes, in_flight.changes] : [changes], range)
    },
    put: write,
    del: (key) => write(key, null),
  }

  function update<T>(fn: (tx: Tx) => T): Promise<T> {
    if (failure !== undefined) return Promise.reject(failure)
    if (closing !== undefined) return Promise.reject(fault('shutting_down', 'the store is closed'))
    open.changes.mark()
    let result: T
    try {
      result = fn(tx)
    } catch (error) {
      open.changes.undo()
      return refused(error)
    }
    if (open.changes.size === 0) {
      const reason = unavailable()
      if (reason !== undefined) return Promise.reject(reason)
      return in_flight === undefined ? Promise.resolve(result) : in_flight.done.then(() => result)
    }
    const { done } = open
    if (open.began_ms === 0) open.began_ms = performance.now()
    if (in_flight === undefined) flush(open.began_ms)
    return done.then(() => result)
  }

  /** A refusal may show what was read, so it waits for those commits like any answer. */
  async function refused(error: unknown): Promise<never> {
    const reason = unavailable()
    if (reason !== undefined) throw reason
    if (open.changes.size > 0) await open.done
    else await in_flight?.done
    throw error
  }

  function flush(now_ms: number): void {
    const group = open
    in_flight = group
    open = newGroup(recycled)
    watch.began(now_ms)
    tree.commit(group.changes).then(
      () => {
        const ended_ms = performance.now()
        commitEnded(group, ended_ms)
        in_flight = undefined
        recycled = group.changes
        recycled.clear()
        group.resolve()
        if (open.changes.size > 0 && failure === undefined) flush(ended_ms)
        filter?.fill()
      },
      (cause: unknown) => {
        watch.ended(performance.now(), { write_ms: 0 })
        in_flight = undefined
        if (isFault(cause) && isFull(cause)) {
          space.commitRefused()
          refuse([group, open], cause)
        } else {
          fail(cause)
          group.reject(failure as Fault)
        }
      },
    )
  }

  function commitEnded({ began_ms }: Group, now_ms: number): void {
    const write_ms = tree.write_ms?.() ?? 0
    commits++
    space.committed()
    watch.ended(now_ms, { write_ms: Math.round(write_ms) })
    commit_listener?.(now_ms - began_ms, write_ms)
  }

  function refuse(groups: readonly Group[], reason: Fault): void {
    open = newGroup(newChangeBuffer())
    recycled = newChangeBuffer()
    for (const group of groups) group.reject(reason)
  }

  function fail(cause: unknown): void {
    if (failure !== undefined) return
    const sentence = isFault(cause) ? cause.message : undefined
    failure = fault('store_failed', sentence, { cause, outside: wholeFaults.store_failed.text })
    refuse([open], failure)
    if (tree.emitBroken !== undefined) tree.emitBroken(cause)
    else emit('store_failed', { code: failure.code, error: textOf(cause) })
    onFail?.(failure)
  }

  async function drain(): Promise<void> {
    while (in_flight !== undefined || (open.changes.size > 0 && failure === undefined)) {
      await (in_flight ?? open).done.catch(() => {})
    }
    await tree.close()
  }

  return {
    update,
    view: async (fn) => {
      if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
      const reason = unavailable()
      if (reason !== undefined) throw reason
      return fn(durable)
    },
    async settledKeys(range) {
      if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
      return scanOver(tree.parts?.().below ?? tree, [], range).map(({ key }) => key)
    },
    freeBytes,
    unavailable,
    commitLogError: tree.commitLogError,
    commit_ms: watch.ms,
    isCheckpointSlow: () => tree.isCheckpointSlow?.() ?? false,
    hasRoom(bytes) {
      const free_bytes = freeBytes()
      if (free_bytes === undefined || free_bytes >= bytes) return true
      space.refused()
      return false
    },
    isFull: space.isFull,
    damage: async () => (await tree.damage?.()) ?? [],
    async backup(path) {
      const began_ms = performance.now()
      emit('backup_begun', {})
      const made = await tree.backup(path)
      const { bytes, damage } = made
      if (damage !== undefined) emit('backup_damaged', { count: damage.count })
      else emit('backup_done', { bytes, ms: Math.round(performance.now() - began_ms) })
      return made
    },
    numbers: () => ({ commits, file: tree.numbers?.() }),
    onCommit(listener) {
      commit_listener = listener
    },
    close: () => {
      space.close()
      closing ??= drain()
      return closing
    },
  }
}

function newGroup(changes: ChangeBuffer): Group {
  let resolve = (): void => {}
  let reject: (error: Fault) => void = () => {}
  const done = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Each update adds its own reaction; a group without one must not be an unhandled rejection.
  done.catch(() => {})
  return { changes, began_ms: 0, done, resolve, reject }
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

/** The first entries of a range under these change buffers, the newest buffer first. */
export function scanOver(
  tree: Pick<Tree, 'range'>,
  buffers: readonly ChangeBuffer[],
  range: Range,
): Entry[] {
  const { from, to, limit, reverse = false } = range
  const out: Entry[] = []
  if (limit <= 0) return out
  const over = buffers.filter(({ size }) => size > 0)
  const below = tree.range(from, to, reverse)
  const entries =
    over.length === 0
      ? below
      : mergedRange([...over.map((buffer) => buffer.range(from, to, reverse)), below], reverse)
  for (const entry of entries) {
    out.push(entry)
    if (out.length >= limit) break
  }
  return out
}
