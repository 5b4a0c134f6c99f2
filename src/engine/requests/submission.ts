/**
 * The entry of ops: admits a request, or lets it wait for room, into the transaction queue. A
 * failure there is a fault of the store, or a bug, which the caller gets as `internal_error`.
 */
import { checkOpCount } from '../../codec/op.ts'
import { codeOf, fault, isFault, isStoreUnavailable } from '../../core/faults.ts'
import type { Caller, ModifyOp, Op, OpResult } from '../../core/model.ts'
import type { TraceContext } from '../../core/tracing.ts'
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
  submit(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    may_wait?: boolean,
    others?: OtherOps,
  ): Promise<OpResult[]>
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

/** How a request is applied that has ops on other objects than tasks. */
export interface OtherOps {
  /** In place of `applyOps`; it may run twice. */
  readonly apply: ApplyOps
  /** Whether its answer is kept for a repeat. */
  readonly is_change: boolean
}

/** A request on its way, until its promise settles. */
interface Submitted extends QueuedRequest<Outcome> {
  readonly ops: readonly (Op | OpResult)[]
  readonly caller: Caller
  /** Of a call of this process, which is counted here. */
  readonly began_ms: number | undefined
  /** Not of other ops, whose servers count them. */
  readonly is_counted: boolean
  readonly settle: (results: OpResult[]) => void
  readonly fail: (reason: unknown) => void
  name: RequestName | undefined
  trace: TraceContext | undefined
  /** Of `Admission.enter`. */
  bytes: number
}

export function newSubmission(
  { limits, admission, transactions, counters, onBug }: Parts,
  replays: Replays,
  traces: Traces | undefined,
): Submission {
  /** One promise and one record per request: the rest are plain calls. */
  function submit(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    may_wait = false,
    others?: OtherOps,
  ): Promise<OpResult[]> {
    return new Promise((settle, fail) => {
      const request: Submitted = {
        run: others === undefined ? applyIn : (tx) => applied(request, tx, others.apply),
        resolve: settleWith,
        reject: retryOrFail,
        ops,
        caller,
        began_ms: may_wait ? counters.beginRequest() : undefined,
        is_counted: others === undefined,
        settle,
        fail,
        name: undefined,
        trace: undefined,
        bytes: 0,
      }
      try {
        checkOpCount(ops.length, limits.ops_max)
        request.name = replays.nameOf(ops, caller, others?.is_change)
        // Now: a call that waits for room is queued in a turn of others. Servers name the trace.
        const trace = may_wait ? traces?.of(caller) : caller.trace
        request.trace = others === undefined ? trace : undefined
        const bytes = admission.enter(ops, caller, may_wait)
        // Queued in the turn that frees room, before later ones.
        if (bytes === undefined) waitForRoom(request)
        else begin(request, bytes)
      } catch (error) {
        refuse(request, error)
      }
    })
  }

  function waitForRoom(request: Submitted): void {
    admission.wait(
      request.ops,
      (bytes) => begin(request, bytes),
      (reason) => refuse(request, reason),
    )
  }

  function begin(request: Submitted, bytes: number): void {
    request.bytes = bytes
    const { ops, trace } = request
    if (traces === undefined || trace === undefined) transactions.enter(request)
    else {
      const run = (tx: Transaction, apply: ApplyOps): Outcome => applied(request, tx, apply)
      traces.apply(transactions, ops, trace, run).then(
        (outcome) => request.resolve(outcome),
        (error) => request.reject(error),
      )
    }
  }

  function applied({ ops, caller, name }: Submitted, tx: Transaction, apply: ApplyOps): Outcome {
    return name === undefined
      ? apply(tx, ops, caller)
      : replays.applyOnce(tx, name, ops, caller, apply)
  }

  function applyIn(this: Submitted, tx: Transaction): Outcome {
    return applied(this, tx, applyOps)
  }

  function settleWith(this: Submitted, outcome: Outcome): void {
    const { ops, bytes, name, began_ms, is_counted } = this
    admission.leave(ops.length, bytes)
    if ('code' in outcome) return void refuse(this, outcome)
    const is_repeat = 'is_repeat' in outcome
    if (is_repeat) counters.countReplay()
    else {
      if (is_counted) counters.countOps(outcome)
      if (name?.kept !== undefined) replays.onKept(name.kept)
    }
    if (began_ms !== undefined) counters.countRequest('library', 'ok', began_ms)
    this.settle(is_repeat ? outcome.results : outcome)
  }

  function retryOrFail(this: Submitted, error: unknown): void {
    const { ops, bytes } = this
    // Reads were refused together with a write, and run again.
    const is_for_reads = isFault(error) && error.code === 'no_space' && ops.every(isRead)
    if (is_for_reads) return void begin(this, bytes)
    admission.leave(ops.length, bytes)
    // After the turn of the queue, because `onBug` may call the engine or throw.
    Promise.reject(error)
      .catch(throwFault)
      .catch((reason) => refuse(this, reason))
  }

  function refuse({ began_ms, fail }: Submitted, reason: unknown): void {
    if (began_ms !== undefined) counters.countRequest('library', codeOf(reason), began_ms)
    fail(reason)
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
