/**
 * Group commit over a Tree: makes the Store that the engine sees.
 *
 * A transaction runs at once on the main thread, over two layers of changes and the tree: `open`
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
import { checkKeySize } from './key-size.ts'
import { type Layer, newLayer } from './layer.ts'
import { mergedRange } from './merged-range.ts'
import type { Entry, Range, Store, Tree, Tx } from './store.ts'

interface Group {
  readonly layer: Layer
  /** Transactions in it. */
  updates: number
  readonly done: Promise<void>
  resolve(): void
  reject(error: Fault): void
}

export interface GroupOptions {
  /** Told once, when a commit has failed. */
  readonly onFail?: (failure: Fault) => void
}

export function storeOf(tree: Tree, options: GroupOptions = {}): Store {
  const nothing: Layer = newLayer()
  let open: Group = newGroup()
  let flying: Group | undefined
  let takeoff: NodeJS.Immediate | undefined
  let failure: Fault | undefined
  let closing: Promise<void> | undefined
  /** What the transaction that runs now replaced in `open`, so that a throw can put it back. */
  const replaced: { keys: Key[]; values: (Buffer | null | undefined)[] } = { keys: [], values: [] }

  const write = (key: Key, value: Buffer | null): void => {
    checkKeySize(key)
    replaced.keys.push(key)
    replaced.values.push(open.layer.changes.get(key))
    open.layer.set(key, value)
  }
  const durable = viewOf(tree)
  const tx: Tx = {
    get(key) {
      const mine = open.layer.changes.get(key)
      if (mine !== undefined) return mine ?? undefined
      const theirs = flying?.layer.changes.get(key)
      if (theirs !== undefined) return theirs ?? undefined
      return tree.get(key)
    },
    scan: (range) => scanOver(tree, [open.layer, flying?.layer ?? nothing], range),
    put: write,
    del: (key) => write(key, null),
  }

  function update<T>(fn: (tx: Tx) => T, is_gathered = false): Promise<T> {
    if (failure !== undefined) return Promise.reject(failure)
    if (closing !== undefined) return Promise.reject(fault('shutting_down', 'the store is closed'))
    replaced.keys.length = 0
    replaced.values.length = 0
    let result: T
    try {
      result = fn(tx)
    } catch (error) {
      undo()
      return Promise.reject(error)
    }
    if (replaced.keys.length === 0 && open.layer.changes.size === 0) {
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

  function undo(): void {
    for (let at = replaced.keys.length - 1; at >= 0; at--) {
      const key = replaced.keys[at] as Key
      const value = replaced.values[at]
      if (value === undefined) open.layer.unset(key)
      else open.layer.set(key, value)
    }
  }

  function fly(): void {
    takeoff = undefined
    const group = open
    flying = group
    open = newGroup()
    tree.commit(group.layer.changes, group.updates === 1).then(
      () => {
        flying = undefined
        group.resolve()
        if (open.layer.changes.size > 0) fly()
      },
      (cause: unknown) => {
        failure = fault('store_failed', undefined, { cause })
        flying = undefined
        group.reject(failure)
        open.reject(failure)
        open = newGroup()
        options.onFail?.(failure)
      },
    )
  }

  async function drain(): Promise<void> {
    while (failure === undefined && (flying !== undefined || open.layer.changes.size > 0)) {
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

function newGroup(): Group {
  let resolve = (): void => {}
  let reject: (error: Fault) => void = () => {}
  const done = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Each update hangs its own reaction on `done`; a group nobody waits for must not be "unhandled".
  done.catch(() => {})
  return { layer: newLayer(), updates: 0, done, resolve, reject }
}

function viewOf(tree: Tree): Pick<Tx, 'get' | 'scan'> {
  return { get: (key) => tree.get(key), scan: (range) => scanOver(tree, [], range) }
}

/** The tree with the layers above it, the newest first. */
function scanOver(tree: Tree, layers: readonly Layer[], range: Range): Entry[] {
  const { from, to, limit, reverse = false } = range
  const out: Entry[] = []
  if (limit <= 0) return out
  const over = layers.filter(({ changes }) => changes.size > 0)
  const below = tree.range(from, to, reverse)
  const entries =
    over.length === 0
      ? below
      : mergedRange([...over.map((layer) => layer.range(from, to, reverse)), below], reverse)
  for (const entry of entries) {
    out.push(entry)
    if (out.length >= limit) break
  }
  return out
}
