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
import type { Entry, Range, Store, Tree, Tx } from './store.ts'

type Layer = Map<Key, Buffer | null>

interface Group {
  readonly layer: Layer
  readonly done: Promise<void>
  resolve(): void
  reject(error: Fault): void
}

export interface GroupOptions {
  /** Told once, when a commit has failed. */
  readonly onFail?: (failure: Fault) => void
}

export function storeOf(tree: Tree, options: GroupOptions = {}): Store {
  const nothing: Layer = new Map()
  let open: Group = newGroup()
  let flying: Group | undefined
  let takeoff: NodeJS.Immediate | undefined
  let failure: Fault | undefined
  let closing: Promise<void> | undefined
  /** What the transaction that runs now replaced in `open`, so that a throw can put it back. */
  let replaced: [Key, Buffer | null | undefined][] = []

  const write = (key: Key, value: Buffer | null): void => {
    checkKeySize(key)
    replaced.push([key, open.layer.get(key)])
    open.layer.set(key, value)
  }
  const tx: Tx = {
    get(key) {
      const mine = open.layer.get(key)
      if (mine !== undefined) return mine ?? undefined
      const theirs = flying?.layer.get(key)
      if (theirs !== undefined) return theirs ?? undefined
      return tree.get(key)
    },
    scan: (range) => scanLayers(tree, [flying?.layer ?? nothing, open.layer], range),
    put: write,
    del: (key) => write(key, null),
  }

  function update<T>(fn: (tx: Tx) => T): Promise<T> {
    if (failure !== undefined) return Promise.reject(failure)
    if (closing !== undefined) return Promise.reject(fault('shutting_down', 'the store is closed'))
    replaced = []
    let result: T
    try {
      result = fn(tx)
    } catch (error) {
      undo()
      return Promise.reject(error)
    }
    if (replaced.length === 0 && open.layer.size === 0) {
      return flying === undefined ? Promise.resolve(result) : flying.done.then(() => result)
    }
    if (takeoff === undefined && flying === undefined) takeoff = setImmediate(fly)
    return open.done.then(() => result)
  }

  function undo(): void {
    for (const [key, value] of replaced.reverse()) {
      if (value === undefined) open.layer.delete(key)
      else open.layer.set(key, value)
    }
  }

  function fly(): void {
    takeoff = undefined
    const group = open
    flying = group
    open = newGroup()
    tree.commit(group.layer).then(
      () => {
        flying = undefined
        group.resolve()
        if (open.layer.size > 0) fly()
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
    while (failure === undefined && (flying !== undefined || open.layer.size > 0)) {
      await (flying ?? open).done.catch(() => {})
    }
    await tree.close()
  }

  return {
    update,
    view: async (fn) => {
      if (closing !== undefined) throw fault('shutting_down', 'the store is closed')
      return fn(viewOf(tree))
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
  return { layer: new Map(), done, resolve, reject }
}

function viewOf(tree: Tree): Pick<Tx, 'get' | 'scan'> {
  return { get: (key) => tree.get(key), scan: (range) => scanLayers(tree, [], range) }
}

/** Merges the tree with the layers above it; where several hold a key, the last layer counts. */
function scanLayers(tree: Tree, layers: readonly Layer[], range: Range): Entry[] {
  const { from, to, limit, reverse = false } = range
  const over = new Map<Key, Buffer | null>()
  for (const layer of layers) {
    for (const [key, value] of layer) if (key >= from && key < to) over.set(key, value)
  }
  const changed = [...over.keys()].sort()
  if (reverse) changed.reverse()
  const comesBefore = reverse ? (a: Key, b: Key) => a > b : (a: Key, b: Key) => a < b
  const out: Entry[] = []
  let next = 0
  const takeChanged = (until: Key | undefined): void => {
    while (next < changed.length && out.length < limit) {
      const key = changed[next] as Key
      if (until !== undefined && !comesBefore(key, until)) return
      const value = over.get(key)
      if (value) out.push({ key, value })
      next++
    }
  }
  if (limit <= 0) return out
  for (const entry of tree.range(from, to, reverse)) {
    takeChanged(entry.key)
    if (out.length >= limit) return out
    if (!over.has(entry.key)) out.push(entry)
    if (out.length >= limit) return out
  }
  takeChanged(undefined)
  return out
}
