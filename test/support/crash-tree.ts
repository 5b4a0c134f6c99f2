/**
 * A tree whose disk breaks at its n-th commit, in each way a disk does: with nothing written, or
 * with all of it written and the word of it lost.
 */
import type { Tree } from '../../src/store/tree.ts'

export interface BreakingTree extends Tree {
  /** How many commits have been asked for. */
  asked(): number
}

/** The n-th commit, counted from 1, rejects; so does every one behind it, which writes nothing. */
export function breakingTree(below: Tree, n: number, writes_all: boolean): BreakingTree {
  let asked = 0
  return {
    ...below,
    asked: () => asked,
    commit: async (writes) => {
      asked++
      if (asked < n) return below.commit(writes)
      if (asked === n && writes_all) await below.commit(writes)
      throw new Error('the disk is broken')
    },
  }
}
