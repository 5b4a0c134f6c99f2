/**
 * The queue of everything that changes tasks: ops, timers, job results, retry and cancel. All
 * requests of one turn of the event loop run in order in one store transaction and one commit; then
 * the effects are published. Administration runs in separate transactions, after everything queued
 * before it. If a request throws, the transaction is rolled back and its requests run again alone,
 * so that only the one at fault is rejected.
 */
import { type Clock, dropTurn, onNextTurn } from '../../core/clock.ts'
import type { Store, Tx } from '../../store/store.ts'
import {
  type CommitEffects,
  type EngineContext,
  newReusableTransaction,
  type Transaction,
} from './transaction.ts'

export interface TransactionQueue {
  /** Queues a request; it settles once everything it did is durable. */
  enter(request: QueuedRequest): void
  /**
   * Resolves with the value of `change` once durable; rejects with its throw, or as `Store.update`
   * does. `change` is synchronous and may run twice.
   */
  run<T>(change: (tx: Transaction) => T): Promise<T>
  /** Like `Store.update`, after all requests queued before. */
  update<T>(change: (tx: Tx) => T): Promise<T>
  flush(): void
}

export interface TransactionQueueOptions {
  readonly store: Store
  readonly clock: Clock
  readonly engine: EngineContext
  publish(effects: CommitEffects): void
}

/** Neither `resolve` nor `reject` may throw. */
export interface QueuedRequest<Result = unknown> {
  /** Synchronous; it may run twice. */
  run(tx: Transaction): Result
  resolve(result: Result): void
  reject(error: unknown): void
}

/** Ends a transaction, to bound the answers in memory. */
const shown_bytes_max = 1024 * 1024

export function newTransactionQueue(options: TransactionQueueOptions): TransactionQueue {
  const { store, clock } = options
  const reusable = newReusableTransaction(options.engine)
  let queue: QueuedRequest[] = []
  let turn: NodeJS.Immediate | undefined

  function enter(request: QueuedRequest): void {
    turn ??= onNextTurn(takeTurn)
    queue.push(request)
  }

  function takeTurn(): void {
    turn = undefined
    const started = transact(queue)
    queue = queue.slice(started)
    if (queue.length > 0) turn = onNextTurn(takeTurn)
  }

  /** Runs requests in one transaction; returns how many. */
  function transact(requests: readonly QueuedRequest[]): number {
    let started = requests.length
    let effects: CommitEffects | undefined
    let thrown: unknown
    const runAll = (store_tx: Tx): unknown[] => {
      const tx = reusable.begin(store_tx, clock.now_ms())
      try {
        const results: unknown[] = []
        let shown_bytes = 0
        let moves = 0
        for (const request of requests) {
          beginRequest(tx)
          results.push(request.run(tx))
          shown_bytes += tx.shown_bytes
          moves += tx.moves_made
          if (shown_bytes > shown_bytes_max || isSpent(tx, moves)) break
        }
        started = results.length
        effects = reusable.end()
        return results
      } catch (error) {
        thrown = error
        throw error
      }
    }
    const committed = store.update(runAll)
    if (thrown !== undefined && requests.length > 1) {
      // All was rolled back; later requests must not overtake.
      committed.catch(() => {})
      for (const one of requests) transact([one])
      return started
    }
    committed.then(
      (results) => {
        if (effects !== undefined) options.publish(effects)
        for (let at = 0; at < started; at++) requests[at]?.resolve(results[at])
      },
      (error: unknown) => {
        for (let at = 0; at < started; at++) requests[at]?.reject(error)
      },
    )
    return started
  }

  function flush(): void {
    while (queue.length > 0) {
      dropTurn(turn)
      takeTurn()
    }
  }

  return {
    enter,
    run: (change) =>
      new Promise((resolve, reject) =>
        enter({ run: change, resolve: resolve as (result: unknown) => void, reject }),
      ),
    update(change) {
      flush()
      return store.update(change)
    },
    flush,
  }
}

/** A request may use the moves of this many ops in one transaction. */
const full_budgets_max = 10

/** Whether a transaction takes no more requests, so that other work gets its turn. */
export function isSpent({ engine }: Transaction, moves: number): boolean {
  return moves >= full_budgets_max * engine.limits.moves_per_transaction_max
}

export function beginRequest(tx: Transaction): void {
  tx.cause = undefined
  tx.moves_made = 0
  tx.shown_bytes = 0
}

/** Call before each op, so that an op cannot use up the next one's moves. */
export function beginOp(tx: Transaction): void {
  const each_max = tx.engine.limits.moves_per_transaction_max
  tx.moves_left = Math.min(each_max, each_max * full_budgets_max - tx.moves_made)
  tx.chain_moves = 0
}
