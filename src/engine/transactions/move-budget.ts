/**
 * How far one transaction runs tasks. An op has `moves_per_transaction_max` moves, and a request
 * ten times as many; tasks that are still ready after that run in a later transaction.
 */
import type { Transaction } from './transaction.ts'

/** A request has the moves of this many ops in one transaction. */
const full_budgets_max = 10

/** Moves after which a transaction takes no further request, so that other work gets its turn. */
export function isSpent({ engine }: Transaction, moves: number): boolean {
  return moves >= full_budgets_max * engine.limits.moves_per_transaction_max
}

/** Called before each request. */
export function beginRequest(tx: Transaction): void {
  tx.cause = undefined
  tx.moves_made = 0
  tx.shown_bytes = 0
}

/** Called before each op, so that an op cannot use up the moves of the next. */
export function beginOp(tx: Transaction): void {
  const each_max = tx.engine.limits.moves_per_transaction_max
  tx.moves_left = Math.min(each_max, each_max * full_budgets_max - tx.moves_made)
  tx.chain_moves = 0
}
