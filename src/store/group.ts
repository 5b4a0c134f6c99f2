/**
 * Group commit over a Tree: makes the Store that the engine sees.
 *
 * A transaction runs at once on the main thread, over two sheets of changes and the tree: `open`
 * takes its writes, `flying` is what a commit is writing now. When no commit is under way, `open`
 * takes off at the end of the event-loop turn, so that all ops that came in with it share one
 * commit; what arrives while it flies forms the next. So one transaction sees those before it,
 * durable or not, and that is safe because it resolves only when the commit it is in, and every one
 * before it, is on disk. A transaction that wrote nothing waits for what it could have read.
 *
 * Views read the tree alone, which is durable state.
 *
 * Once a commit fails, nothing is written any more: every open and later update rejects with
 * `store_failed`, and `onFail` is told once.
 */
import type { Key } from '../bytes/keys.ts'
import { type Fault, fault } from '../words/faults.ts'
import type { Absence } from './absence.ts'
import { checkKeySize } from './key-size.ts'
import { mergedRange } from './merged-range.ts'
import { newSheet, type Sheet } from './sheet.ts'
import type { Entry, Range, Store, Tree, Tx } from './store.ts'

interface Group {
  readonly sheet: Sheet
  /** Transactions in it. */
  updates: number
  readonly done: Promise<void>
  resolve(): void
  reject(error: Fault): void
}

export interface GroupOptions {
  /** Told once, when a commit has failed. */
  readonly onFail?: (failure: Fault) => void
  /** Of this tree. */
  readonly absence?: Absence
}

export function storeOf(tree: Tree, { onFail, absence }: GroupOptions = {}): Store {
  let open: Group = newGroup(newSheet())
  let flying: Group | undefined
  /** The sheet of the group that flew last, for the one that opens next. */
  let spare: Sheet = newSheet()
  let takeoff: NodeJS.Immediate | undefined
  let failure: Fault | undefined
  let closing: Promise<void> | undefined

  const write = (key: Key, value: Buffer | null): void => {
    checkKeySize(key)
    if (value !== null) absence?.note(key)
    open.sheet.put(key, value)
  }
  const durable = viewOf(tree)
  const tx: Tx = {
    get(key) {
      const mine = open.sheet.get(key)
      if (mine !== undefined) return mine ?? undefined
      const theirs = flying?.sheet.get(key)
      if (theirs !== undefined) return theirs ?? undefined
      return absence?.lacks(key) === true ? undefined : tree.get(key)
    },
    scan: (range) =>
      scanOver(tree, flying === undefined ? [open.sheet] : [open.sheet, flying.sheet], range),
    put: write,
    del: (key) => write(key, null),
  }

  function update<T>(fn: (tx: Tx) => T, is_gathered = false): Promise<T> {
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
    open.updates++
    const { done } = open
    if (takeoff === undefined && flying === undefined) {
      if (is_gathered) fly()
      else takeoff = setImmediate(fly)
    }
    return done.then(() => result)
  }

  function fly(): void {
    takeoff = undefined
    const group = open
    flying = group
    open = newGroup(spare)
    tree.commit(group.sheet, group.updates === 1).then(
      () => {
        flying = undefined
        spare = group.sheet
        spare.clear()
        group.resolve()
        if (open.sheet.size > 0) fly()
        absence?.learn()
      },
      (cause: unknown) => {
        failure = fault('store_failed', undefined, { cause })
        flying = undefined
        group.reject(failure)
        open.reject(failure)
        open = newGroup(newSheet())
        onFail?.(failure)
      },
    )
  }

  async function drain(): Promise<void> {
    while (failure === undefined && (flying !== undefined || open.sheet.size > 0)) {
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
    freeBytes: () => tree.freeBytes(),
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
  return { sheet, updates: 0, done, resolve, reject }
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
