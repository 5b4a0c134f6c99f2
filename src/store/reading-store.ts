/**
 * A store that only reads, over a tree that another process changes. A transaction that writes is
 * refused. Each transaction and view is synchronous, so it sees one state.
 */
import type { Fault } from '../core/faults.ts'
import { scanOver } from './group-commit.ts'
import type { Store, Tx, View } from './store.ts'
import type { Tree } from './tree.ts'

export interface ReadingStoreOptions {
  /** Why nothing is read now; undefined while something is. */
  readonly unavailable: () => Fault | undefined
  /** Why nothing is written. */
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
