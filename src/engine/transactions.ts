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
import type { CommitEvents, ReusableContext, TransactionContext } from './transaction-context.ts'

export interface Transactions {
  /**
   * Resolves with what `fn` returned once all it did is on disk; rejects with what it threw, or as
   * `Store.update` does. `fn` is synchronous and may run twice.
   */
  run<T>(fn: (context: TransactionContext) => T): Promise<T>
  /** The same for what is no work on tasks. */
  change<T>(fn: (tx: Tx) => T): Promise<T>
  /** Begins with what has been asked for. */
  flush(): void
}

export interface TransactionsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly workspace: ReusableContext
  publish(events: CommitEvents): void
}

interface QueuedRequest {
  fn(context: TransactionContext): unknown
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Behind so much, answers are made and sent first, so that they do not pile up in memory. */
const shown_bytes_max = 1024 * 1024

export function newTransactions(port: TransactionsOptions): Transactions {
  const { store, clock, workspace } = port
  let queued: QueuedRequest[] = []
  let turn: NodeJS.Immediate | undefined

  function takeTurn(): void {
    turn = undefined
    const begun = begin(queued)
    queued = queued.slice(begun)
    if (queued.length > 0) turn = setImmediate(takeTurn)
  }

  function flush(): void {
    while (queued.length > 0) {
      clearImmediate(turn)
      takeTurn()
    }
  }

  /** How many of the group are in this transaction: all, but for those behind a large answer. */
  function begin(group: readonly QueuedRequest[]): number {
    let begun = group.length
    let events: CommitEvents | undefined
    let thrown: unknown
    const runAll = (tx: Tx): unknown[] => {
      const context = workspace.begin(tx, clock.now_ms())
      try {
        const results: unknown[] = []
        let shown_bytes = 0
        for (const { fn } of group) {
          beginRequest(context)
          results.push(fn(context))
          shown_bytes += context.shown_bytes
          if (shown_bytes > shown_bytes_max) break
        }
        begun = results.length
        events = workspace.end()
        return results
      } catch (error) {
        thrown = error
        throw error
      }
    }
    store.update(runAll).then(
      (results) => {
        if (events !== undefined) port.publish(events)
        for (let at = 0; at < begun; at++) (group[at] as QueuedRequest).resolve(results[at])
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
    run: <T>(fn: (context: TransactionContext) => T) =>
      new Promise<T>((resolve, reject) => {
        turn ??= setImmediate(takeTurn)
        queued.push({ fn, resolve: resolve as QueuedRequest['resolve'], reject })
      }),
    change(fn) {
      flush()
      return store.update(fn)
    },
    flush,
  }
}
