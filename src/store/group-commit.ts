/**
 * Group commit over a Tree: makes the Store that the engine sees.
 *
 * A transaction runs at once on the main thread, over two sheets of changes and the tree: `open`
 * takes its writes, `flying` is what a commit is writing now. When no commit is under way, `open`
 * takes off; what arrives while it flies forms the next. So one transaction sees those before it,
 * durable or not, and that is safe because it resolves only when the commit it is in, and every one
 * before it, is on disk. A transaction that wrote nothing waits for what it could have read.
 *
 * Views read the tree alone, which is durable state.
 *
 * Where the disk is full a commit is refused, and with it what came meanwhile and may have seen its
 * changes; then all goes on. Once a commit fails, or the tree is broken, nothing is written any
 * more: every open and later update rejects with `store_failed`, and `onFail` is told once.
 */
import type { Key } from '../codec/keys.ts'
import { type Fault, fault, isFault } from '../core/faults.ts'
import type { BloomFilter } from './bloom-filter.ts'
import { newSheet, type Sheet } from './change-buffer.ts'
import { checkKeySize } from './key-size.ts'
import { mergedRange } from './merged-range.ts'
import type { Entry, Range, Store, Tree, Tx } from './store.ts'

interface Group {
  readonly sheet: Sheet
  readonly done: Promise<void>
  resolve(): void
  reject(error: Fault): void
}

export interface StoreOptions {
  /** Told once, when a commit has failed. */
  readonly onFail?: (failure: Fault) => void
  /** Of this tree. */
  readonly filter?: BloomFilter
}

export function storeOf(tree: Tree, { onFail, filter }: StoreOptions = {}): Store {
  let open: Group = newGroup(newSheet())
  let flying: Group | undefined
  /** The sheet of the group that flew last, for the one that opens next. */
  let spare: Sheet = newSheet()
  let failure: Fault | undefined
  let closing: Promise<void> | undefined
  tree.onBroken?.(fail)

  const write = (key: Key, value: Buffer | null): void => {
    checkKeySize(key)
    if (value !== null) filter?.add(key)
    open.sheet.put(key, value)
  }
  const durable = viewOf(tree)
  const tx: Tx = {
    get(key) {
      const mine = open.sheet.get(key)
      if (mine !== undefined) return mine ?? undefined
      const theirs = flying?.sheet.get(key)
      if (theirs !== undefined) return theirs ?? undefined
      return filter?.isAbsent(key) === true ? undefined : tree.get(key)
    },
    scan: (range) =>
      scanOver(tree, flying === undefined ? [open.sheet] : [open.sheet, flying.sheet], range),
    put: write,
    del: (key) => write(key, null),
  }

  function update<T>(fn: (tx: Tx) => T): Promise<T> {
    if (failure !== undefined) return Promise.reject(failure)
    if (closing !== undefined) return Promise.reject(fault('shutting_down', 'the store is closed'))
    open.sheet.mark()
    let result: T
    try {
      result = fn(tx)
    } catch (error) {
      open.sheet.undo()
      return Promise.reject(error)
    }
    if (open.sheet.size === 0) {
      return flying === undefined ? Promise.resolve(result) : flying.done.then(() => result)
    }
    const { done } = open
    if (flying === undefined) fly()
    return done.then(() => result)
  }

  function fly(): void {
    const group = open
    flying = group
    open = newGroup(spare)
    tree.commit(group.sheet).then(
      () => {
        flying = undefined
        spare = group.sheet
        spare.clear()
        group.resolve()
        if (open.sheet.size > 0 && failure === undefined) fly()
        filter?.fill()
      },
      (cause: unknown) => {
        flying = undefined
        if (isFault(cause) && cause.code === 'no_space') giveUp([group, open], cause)
        else {
          fail(cause)
          group.reject(failure as Fault)
        }
      },
    )
  }

  function giveUp(groups: readonly Group[], why: Fault): void {
    open = newGroup(newSheet())
    spare = newSheet()
    for (const group of groups) group.reject(why)
  }

  function fail(cause: unknown): void {
    if (failure !== undefined) return
    failure = fault('store_failed', isFault(cause) ? cause.message : undefined, { cause })
    giveUp([open], failure)
    onFail?.(failure)
  }

  async function drain(): Promise<void> {
    while (flying !== undefined || (open.sheet.size > 0 && failure === undefined)) {
      await (flying ?? open).done.catch(() => {})
    }
    await tree.close()
  }

  return {
    update,
    view: async (fn) => {
      if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
      return fn(durable)
    },
    room: () => tree.room(),
    backup: (path) => tree.backup(path),
    close: () => {
      closing ??= drain()
      return closing
    },
  }
}

function newGroup(sheet: Sheet): Group {
  let resolve = (): void => {}
  let reject: (error: Fault) => void = () => {}
  const done = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Each update hangs its own reaction on `done`; a group nobody waits for must not be "unhandled".
  done.catch(() => {})
  return { sheet, done, resolve, reject }
}

function viewOf(tree: Tree): Pick<Tx, 'get' | 'scan'> {
  return { get: (key) => tree.get(key), scan: (range) => scanOver(tree, [], range) }
}

/** The tree with the sheets above it, the newest first. */
function scanOver(tree: Tree, sheets: readonly Sheet[], range: Range): Entry[] {
  const { from, to, limit, reverse = false } = range
  const out: Entry[] = []
  if (limit <= 0) return out
  const over = sheets.filter(({ size }) => size > 0)
  const below = tree.range(from, to, reverse)
  const entries =
    over.length === 0
      ? below
      : mergedRange([...over.map((sheet) => sheet.range(from, to, reverse)), below], reverse)
  for (const entry of entries) {
    out.push(entry)
    if (out.length >= limit) break
  }
  return out
}
