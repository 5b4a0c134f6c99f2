/**
 * The entry of ops: admits a request, or lets it wait for room, and puts it into the queue of
 * transactions. What fails there is a fault of the store, or a bug, which the caller gets as
 * `internal_error`.
 */
import { checkOpCount } from '../codec/op.ts'
import { codeOf, fault, isStoreUnavailable } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Caller, ModifyOp, Op, OpResult } from '../core/model.ts'
import type { OpKind, Statistics } from '../core/statistics.ts'
import type { Admission } from './admission.ts'
import type { Transaction } from './transaction.ts'
import type { TransactionQueue } from './transaction-queue.ts'

export interface Submission {
  /**
   * As `ServedEngine.submit`; what `may_wait`, a call of this process, waits for room in the queue.
   */
  submit(ops: readonly (Op | OpResult)[], caller: Caller, may_wait?: boolean): Promise<OpResult[]>
  /** A change of one task for a server, under the bounds of ops. */
  change(
    kind: OpKind,
    op: ModifyOp,
    caller: Caller,
    run: (tx: Transaction) => OpResult,
  ): Promise<OpResult>
  /** Resolves once everything requested before is on disk, also the calls that wait for room. */
  flush(): Promise<void>
}

export interface SubmissionOptions {
  readonly limits: Limits
  readonly admission: Admission
  readonly transactions: TransactionQueue
  readonly statistics: Statistics
  /** Called for a bug: an exception that is no Fault. */
  onError(error: unknown): void
}

export function newSubmission(options: SubmissionOptions): Submission {
  const { limits, admission, transactions, statistics } = options

  async function submit(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    may_wait = false,
  ): Promise<OpResult[]> {
    const began_ms = may_wait ? statistics.beginRequest() : 0
    let is_admitted = false
    let bytes: number | undefined
    try {
      checkOpCount(ops.length, limits.ops_max)
      bytes = admission.enter(ops, caller, may_wait)
      is_admitted = true
      const results = await (bytes === undefined
        ? applyInTurn(ops, caller)
        : transactions.apply(ops, caller))
      statistics.addOps(results)
      if (may_wait) statistics.endRequest('library', 'ok', began_ms)
      return results
    } catch (error) {
      const reason = is_admitted ? faultOf(error) : error
      if (may_wait) statistics.endRequest('library', codeOf(reason), began_ms)
      throw reason
    } finally {
      if (bytes !== undefined) admission.leave(ops.length, bytes)
    }
  }

  /** Waits for room; the ops are queued in the turn that gives it, before any later ones. */
  function applyInTurn(ops: readonly (Op | OpResult)[], caller: Caller): Promise<OpResult[]> {
    return new Promise((resolve, reject) => {
      const start = (bytes: number): void => {
        const applied = transactions.apply(ops, caller)
        void applied.finally(() => admission.leave(ops.length, bytes)).then(resolve, reject)
      }
      admission.wait(ops, start, reject)
    })
  }

  async function change(
    kind: OpKind,
    op: ModifyOp,
    caller: Caller,
    run: (tx: Transaction) => OpResult,
  ): Promise<OpResult> {
    const bytes = admission.enter([op], caller, false) as number
    try {
      const result = await transactions.run(run)
      statistics.addOp(kind, result.proc)
      return result
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
