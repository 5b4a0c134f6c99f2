/**
 * The entry of ops: admits a request, or lets it wait for room, and puts it into the queue of
 * transactions. What fails there is a fault of the store, or a bug, which the caller gets as
 * `internal_error`.
 */
import { checkOpCount } from '../codec/op.ts'
import type { Counters } from '../core/counters.ts'
import { codeOf, fault, isStoreUnavailable } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Caller, ModifyOp, Op, OpResult } from '../core/model.ts'
import type { TraceContext } from '../core/tracing.ts'
import type { Admission } from './admission.ts'
import type { TracedOrder, Traces } from './traces.ts'
import type { Transaction } from './transaction.ts'
import type { TransactionQueue } from './transaction-queue.ts'

export interface Submission {
  /**
   * As `ServedEngine.submit`; what `may_wait`, a call of this process, waits for room in the queue.
   */
  submit(ops: readonly (Op | OpResult)[], caller: Caller, may_wait?: boolean): Promise<OpResult[]>
  /** A change of one task for a server, under the bounds of ops. */
  change(
    name: 'cancel' | 'retry',
    op: ModifyOp,
    caller: Caller,
    change: (tx: Transaction) => OpResult,
  ): Promise<OpResult>
  /** A change of one task for the embedder, without bounds. */
  run<Result extends OpResult>(
    order: TracedOrder,
    caller: Caller,
    change: (tx: Transaction) => Result,
  ): Promise<Result>
  /** Resolves once everything requested before is on disk, also the calls that wait for room. */
  flush(): Promise<void>
}

export interface SubmissionOptions {
  readonly limits: Limits
  readonly admission: Admission
  readonly transactions: TransactionQueue
  readonly counters: Counters
  readonly traces: Traces | undefined
  /** Called for a bug: an exception that is no Fault. */
  onBug(error: unknown): void
}

export function newSubmission(options: SubmissionOptions): Submission {
  const { limits, admission, transactions, counters, traces } = options

  async function submit(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    may_wait = false,
  ): Promise<OpResult[]> {
    const began_ms = may_wait ? counters.beginRequest() : 0
    let is_admitted = false
    let bytes: number | undefined
    try {
      checkOpCount(ops.length, limits.ops_max)
      // Now: a call that waits for room is queued in a turn of others. Servers name the trace.
      const trace = may_wait ? traces?.of(caller) : caller.trace
      bytes = admission.enter(ops, caller, may_wait)
      is_admitted = true
      const results = await (bytes === undefined
        ? applyInTurn(ops, caller, trace)
        : apply(ops, caller, trace))
      counters.countOps(results)
      if (may_wait) counters.countRequest('library', 'ok', began_ms)
      return results
    } catch (error) {
      const reason = is_admitted ? faultOf(error) : error
      if (may_wait) counters.countRequest('library', codeOf(reason), began_ms)
      throw reason
    } finally {
      if (bytes !== undefined) admission.leave(ops.length, bytes)
    }
  }

  /** Waits for room; the ops are queued in the turn that gives it, before any later ones. */
  function applyInTurn(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    trace: TraceContext | undefined,
  ): Promise<OpResult[]> {
    return new Promise((resolve, reject) => {
      const start = (bytes: number): void => {
        const applied = apply(ops, caller, trace)
        void applied.finally(() => admission.leave(ops.length, bytes)).then(resolve, reject)
      }
      admission.wait(ops, start, reject)
    })
  }

  function apply(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    trace: TraceContext | undefined,
  ): Promise<OpResult[]> {
    if (traces === undefined || trace === undefined) return transactions.apply(ops, caller)
    return traces.apply(transactions, ops, caller, trace)
  }

  function run<Result extends OpResult>(
    order: TracedOrder,
    caller: Caller,
    change: (tx: Transaction) => Result,
  ): Promise<Result> {
    const trace = traces?.of(caller)
    if (traces === undefined || trace === undefined) return transactions.run(change)
    return traces.run(transactions, order, trace, change)
  }

  async function change(
    name: 'cancel' | 'retry',
    op: ModifyOp,
    caller: Caller,
    change: (tx: Transaction) => OpResult,
  ): Promise<OpResult> {
    const bytes = admission.enter([op], caller, false) as number
    try {
      const result = await run({ name, conv_id: op.conv_id }, caller, change)
      counters.countOp(name, result.proc)
      return result
    } catch (error) {
      throw faultOf(error)
    } finally {
      admission.leave(1, bytes)
    }
  }

  function faultOf(error: unknown): unknown {
    if (isStoreUnavailable(error)) return error
    options.onBug(error)
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

  return { submit, change, run, flush }
}
