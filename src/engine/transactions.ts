/**
 * The one way in which the engine changes its store. What is asked for within one turn of the event
 * loop runs in one transaction, in the order in which it was asked for: so what all of it reads and
 * writes besides its own tasks (grants, process heads, counters, the last id) is read and written
 * once, and one commit serves all of it. What a transaction armed and changed is told once it is on
 * disk. What an administrator changes stands between them, in a transaction of its own.
 *
 * Where one of them throws, nothing of the transaction has happened, and each runs anew, alone: so
 * the error meets the one it belongs to.
 */

import type { Clock } from '../core/clock.ts'
import type { Store, Tx } from '../store/store.ts'
import { beginRequest } from './run-queue.ts'
import type { News, Work, Workspace } from './transaction-context.ts'

export interface Transactions {
  /**
   * Resolves with what `fn` returned once all it did is on disk; rejects with what it threw, or as
   * `Store.update` does. `fn` is synchronous and may run twice.
   */
  run<T>(fn: (work: Work) => T): Promise<T>
  /** The same for what is no work on tasks. */
  change<T>(fn: (tx: Tx) => T): Promise<T>
  /** Begins with what has been asked for. */
  flush(): void
}

export interface TransactionsPort {
  readonly store: Store
  readonly clock: Clock
  readonly workspace: Workspace
  tell(news: News): void
}

interface Asked {
  fn(work: Work): unknown
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Behind so much, answers are made and sent first, so that they do not pile up in memory. */
const shown_bytes_max = 1024 * 1024

export function newTransactions(port: TransactionsPort): Transactions {
  const { store, clock, workspace } = port
  let asked: Asked[] = []
  let turn: NodeJS.Immediate | undefined

  function takeTurn(): void {
    turn = undefined
    const begun = begin(asked)
    asked = asked.slice(begun)
    if (asked.length > 0) turn = setImmediate(takeTurn)
  }

  function flush(): void {
    while (asked.length > 0) {
      clearImmediate(turn)
      takeTurn()
    }
  }

  /** How many of the group are in this transaction: all, but for those behind a large answer. */
  function begin(group: readonly Asked[]): number {
    let begun = group.length
    let news: News | undefined
    let thrown: unknown
    const runAll = (tx: Tx): unknown[] => {
      const work = workspace.begin(tx, clock.now_ms())
      try {
        const results: unknown[] = []
        let shown_bytes = 0
        for (const { fn } of group) {
          beginRequest(work)
          results.push(fn(work))
          shown_bytes += work.shown_bytes
          if (shown_bytes > shown_bytes_max) break
        }
        begun = results.length
        news = workspace.end()
        return results
      } catch (error) {
        thrown = error
        throw error
      }
    }
    store.update(runAll).then(
      (results) => {
        if (news !== undefined) port.tell(news)
        for (let at = 0; at < begun; at++) (group[at] as Asked).resolve(results[at])
      },
      (error: unknown) => {
        // Any other error may have come after the commit.
        if (thrown === error && group.length > 1) for (const one of group) begin([one])
        else for (const { reject } of group.slice(0, begun)) reject(error)
      },
    )
    return begun
  }

  return {
    run: <T>(fn: (work: Work) => T) =>
      new Promise<T>((resolve, reject) => {
        turn ??= setImmediate(takeTurn)
        asked.push({ fn, resolve: resolve as Asked['resolve'], reject })
      }),
    change(fn) {
      flush()
      return store.update(fn)
    },
    flush,
  }
}
