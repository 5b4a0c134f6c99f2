/**
 * Trees around a tree that show what a healthy disk does not: one whose commits wait to be
 * released, one whose n-th commit fails.
 */
import type { Tree } from '../../src/store/tree.ts'

export interface HeldTree {
  readonly tree: Tree
  /** How many commits have been asked for. */
  asked(): number
  /** Lets the oldest waiting commit through to the tree below. */
  letThrough(): void
}

export function heldTree(below: Tree): HeldTree {
  const gates: (() => void)[] = []
  let asked = 0
  return {
    asked: () => asked,
    letThrough: () => gates.shift()?.(),
    tree: {
      ...below,
      commit: async (writes) => {
        asked++
        await new Promise<void>((resolve) => gates.push(resolve))
        await below.commit(writes)
      },
    },
  }
}

/** The n-th commit, counted from 1, and every one behind it rejects and writes nothing. */
export function failingTree(below: Tree, n: number): Tree {
  let asked = 0
  return {
    ...below,
    commit: async (writes) => {
      asked++
      if (asked >= n) throw new Error('the disk is broken')
      await below.commit(writes)
    },
  }
}

/** A few turns of the event loop, so that whatever may happen by itself has happened. */
export async function turns(count = 5): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}
