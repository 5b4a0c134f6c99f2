/**
 * A tree whose disk fails at the n-th commit: with nothing written, or with everything written and
 * the acknowledgement lost.
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
