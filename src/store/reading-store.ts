/**
 * A read-only store over a tree that another process changes. A transaction that writes is refused.
 * Transactions and views are synchronous, so each sees one state.
 */
import type { Fault } from '../core/faults.ts'
import { scanOver } from './group-commit.ts'
import type { Store, Tx, View } from './store.ts'
import type { Tree } from './tree.ts'

export interface ReadingStoreOptions {
  /** Why reads fail now; undefined while they work. */
  readonly unavailable: () => Fault | undefined
  /** The fault of a write. */
  readonly refusal: () => Fault
}

export function readingStore(
  tree: Pick<Tree, 'get' | 'range'>,
  { unavailable, refusal }: ReadingStoreOptions,
): Store {
  const refuse = (): never => {
    throw refusal()
  }
  const tx: Tx = {
    get: (key) => tree.get(key),
    scan: (range) => scanOver(tree, [], range),
    put: refuse,
    del: refuse,
  }
  async function read<T>(fn: (view: View & Tx) => T): Promise<T> {
    const reason = unavailable()
    if (reason !== undefined) throw reason
    return fn(tx)
  }
  return {
    update: read,
    view: read,
    settledKeys: async (range) => scanOver(tree, [], range).map(({ key }) => key),
    freeBytes: () => undefined,
    unavailable,
    commitLogError: () => undefined,
    commit_ms: () => 0,
    isCheckpointSlow: () => false,
    hasRoom: () => true,
    isFull: () => false,
    damage: async () => [],
    backup: async () => refuse(),
    numbers: () => ({ commits: 0, file: undefined }),
    onCommit() {},
    close: async () => {},
  }
}
