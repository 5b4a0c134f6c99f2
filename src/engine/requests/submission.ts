/**
 * The entry of ops: admits a request, or lets it wait for room, into the transaction queue. A
 * failure there is a fault of the store, or a bug, which the caller gets as `internal_error`.
 */
import { checkOpCount } from '../../codec/op.ts'
import { codeOf, fault, isFault, isStoreUnavailable } from '../../core/faults.ts'
import type { Caller, ModifyOp, Op, OpResult } from '../../core/model.ts'
import type { ApplyOps, Outcome, Replays } from '../replays/replays.ts'
import type { RequestName } from '../replays/request-name.ts'
import { applyOps } from '../tasks/ops.ts'
import { isRead } from '../transactions/admission.ts'
import type { Parts } from '../transactions/parts.ts'
import type { Transaction } from '../transactions/transaction.ts'
import type { QueuedRequest } from '../transactions/transaction-queue.ts'
import type { TracedOrder, Traces } from './traces.ts'

export interface Submission {
  /** As `ServedEngine.submit`; `may_wait` lets a call of this process wait for room. */
  submit(ops: readonly (Op | OpResult)[], caller: Caller, may_wait?: boolean): Promise<OpResult[]>
  /** A server's change of one task, under the bounds of ops. */
  change(
    name: 'cancel' | 'retry',
    op: ModifyOp,
    caller: Caller,
    change: (tx: Transaction) => OpResult,
  ): Promise<OpResult>
  /** The embedder's change of one task, without bounds. */
  run<Result extends OpResult>(
    order: TracedOrder,
    caller: Caller,
    change: (tx: Transaction) => Result,
  ): Promise<Result>
  /** Also waits for the calls that wait for room. */
  flush(): Promise<void>
}

export function newSubmission(
  { limits, admission, transactions, counters, onBug }: Parts,
  replays: Replays,
  traces: Traces | undefined,
): Submission {
  /** One promise per request: the rest are plain calls. */
  function submit(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    may_wait = false,
  ): Promise<OpResult[]> {
    return new Promise((resolve, reject) => {
      const began_ms = may_wait ? counters.beginRequest() : 0
      let entered_bytes = 0
      let begin = (): void => {}
      const refuse = (reason: unknown): void => {
        if (may_wait) counters.countRequest('library', codeOf(reason), began_ms)
        reject(reason)
      }
      let name: RequestName | undefined
      const run = (tx: Transaction, apply: ApplyOps = applyOps): Outcome =>
        name === undefined
          ? apply(tx, ops, caller)
          : replays.applyOnce(tx, name, ops, caller, apply)
      const request: QueuedRequest<Outcome> = {
        run,
        resolve(outcome) {
          admission.leave(ops.length, entered_bytes)
          if ('code' in outcome) return refuse(outcome)
          const is_repeat = 'is_repeat' in outcome
          if (is_repeat) counters.countReplay()
          else {
            counters.countOps(outcome)
            if (name?.kept !== undefined) replays.onKept(name.kept)
          }
          if (may_wait) counters.countRequest('library', 'ok', began_ms)
          resolve(is_repeat ? outcome.results : outcome)
        },
        reject(error) {
          // Reads were refused together with a write, and run again.
          if (isFault(error) && error.code === 'no_space' && ops.every(isRead)) return begin()
          admission.leave(ops.length, entered_bytes)
          // After the turn of the queue, because `onBug` may call the engine or throw.
          Promise.reject(error).catch(throwFault).catch(refuse)
        },
      }
      try {
        checkOpCount(ops.length, limits.ops_max)
        name = replays.nameOf(ops, caller)
        // Now: a call that waits for room is queued in a turn of others. Servers name the trace.
        const trace = may_wait ? traces?.of(caller) : caller.trace
        begin = (): void => {
          if (traces === undefined || trace === undefined) transactions.enter(request)
          else traces.apply(transactions, ops, trace, run).then(request.resolve, request.reject)
        }
        const enter = (bytes: number): void => {
          entered_bytes = bytes
          begin()
        }
        const bytes = admission.enter(ops, caller, may_wait)
        // Queued in the turn that frees room, before later ones.
        if (bytes === undefined) admission.wait(ops, enter, refuse)
        else enter(bytes)
      } catch (error) {
        refuse(error)
      }
    })
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
    // A cancel frees room, so it is taken on a full disk.
    const bytes = admission.enter([op], caller, false, name === 'cancel') as number
    try {
      const result = await run({ name, conv_id: op.conv_id }, caller, change)
      counters.countOp(name, result.proc)
      return result
    } catch (error) {
      throwFault(error)
    } finally {
      admission.leave(1, bytes)
    }
  }

  function throwFault(error: unknown): never {
    if (isStoreUnavailable(error)) throw error
    onBug(error)
    throw fault('internal_error', undefined, { cause: error })
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
