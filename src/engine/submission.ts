/**
 * The entry of ops: admits a request, or lets it wait for room, and puts it into the queue of
 * transactions. What fails there is a fault of the store, or a bug, which the caller gets as
 * `internal_error`.
 */
import { checkOpCount } from '../codec/op.ts'
import { fault, isStoreUnavailable } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Caller, ModifyOp, Op, OpResult } from '../core/model.ts'
import type { Admission } from './admission.ts'
import type { Transaction } from './transaction.ts'
import type { TransactionQueue } from './transaction-queue.ts'

export interface Submission {
  /** As `ServedEngine.submit`; what `may_wait` waits for room in the queue. */
  submit(ops: readonly (Op | OpResult)[], caller: Caller, may_wait?: boolean): Promise<OpResult[]>
  /** A change of one task for a server, under the bounds of ops. */
  change(op: ModifyOp, caller: Caller, run: (tx: Transaction) => OpResult): Promise<OpResult>
  /** Resolves once everything requested before is on disk, also the calls that wait for room. */
  flush(): Promise<void>
}

export interface SubmissionOptions {
  readonly limits: Limits
  readonly admission: Admission
  readonly transactions: TransactionQueue
  /** Called for a bug: an exception that is no Fault. */
  onError(error: unknown): void
}

export function newSubmission(options: SubmissionOptions): Submission {
  const { limits, admission, transactions } = options

  async function submit(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    may_wait = false,
  ): Promise<OpResult[]> {
    checkOpCount(ops.length, limits.ops_max)
    const bytes = admission.enter(ops, caller, may_wait)
    if (bytes === undefined) return submitInTurn(ops, caller)
    try {
      return await transactions.apply(ops, caller)
    } catch (error) {
      throw faultOf(error)
    } finally {
      admission.leave(ops.length, bytes)
    }
  }

  /** Waits for room; the ops are queued in the turn that gives it, before any later ones. */
  function submitInTurn(ops: readonly (Op | OpResult)[], caller: Caller): Promise<OpResult[]> {
    return new Promise((resolve, reject) => {
      const start = (bytes: number): void => {
        const applied = transactions.apply(ops, caller)
        void applied
          .finally(() => admission.leave(ops.length, bytes))
          .then(resolve, (error: unknown) => reject(faultOf(error)))
      }
      admission.wait(ops, start, reject)
    })
  }

  async function change(
    op: ModifyOp,
    caller: Caller,
    run: (tx: Transaction) => OpResult,
  ): Promise<OpResult> {
    const bytes = admission.enter([op], caller, false) as number
    try {
      return await transactions.run(run)
    } catch (error) {
      throw faultOf(error)
    } finally {
      admission.leave(1, bytes)
    }
  }

  function faultOf(error: unknown): unknown {
    if (isStoreUnavailable(error)) return error
    options.onError(error)
    return fault('internal_error', undefined, { cause: error })
  }

  function flush(): Promise<void> {
    return new Promise((resolve) => {
      const start = (): void => {
        void transactions.update(() => {}).then(resolve, () => resolve())
      }
      if (!admission.hasLine()) start()
      else admission.wait([], start, start)
    })
  }

  return { submit, change, flush }
}
