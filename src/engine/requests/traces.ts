/**
 * The spans of ops, commits, task runs and jobs, each made once, of committed work. A task runs in
 * its own trace; an op of another trace and the run link to each other. Ops of an unsampled trace
 * make no spans, but their tasks keep it.
 */
import { isOp } from '../../codec/op.ts'
import { shownConvId } from '../../core/alias.ts'
import { codeOf, isStoreUnavailable } from '../../core/faults.ts'
import type { Caller, Op, OpResult, Task } from '../../core/model.ts'
import { isSampled, type Span, type TraceContext, type Tracing } from '../../core/tracing.ts'
import type { JobOrder, JobOutcome } from '../../process/logic.ts'
import type { ApplyOps, Outcome } from '../replays/replays.ts'
import { applyOps } from '../tasks/ops.ts'
import type { TaskRun } from '../transactions/task-spans.ts'
import type { Transaction } from '../transactions/transaction.ts'
import type { TransactionQueue } from '../transactions/transaction-queue.ts'

export interface Traces {
  /** The given trace, else that of the active span. */
  of(caller: Caller): TraceContext | undefined
  /** Calls `run` with the function that applies ops; its outcome, once durable. */
  apply(
    queue: TransactionQueue,
    ops: readonly (Op | OpResult)[],
    trace: TraceContext,
    run: (tx: Transaction, apply: ApplyOps) => Outcome,
  ): Promise<Outcome>
  /** As `TransactionQueue.run`, for an action on one task. */
  run<Result extends OpResult>(
    queue: TransactionQueue,
    order: TracedOrder,
    trace: TraceContext,
    change: (tx: Transaction) => Result,
  ): Promise<Result>
  onCommitted(runs: readonly TaskRun[]): void
  /** The span of an attempt; undefined if its task has no trace. */
  beginJob(job: TracedJob): Span | undefined
  endJob(span: Span, outcome: JobOutcome): void
  /** Runs `fn` under the span or, without one, detached from any active span. */
  under<T>(span: Span | undefined, fn: () => T): T
}

export interface TracedJob {
  readonly order: JobOrder | { readonly job: 'none' }
  readonly task: Task
  readonly trace: TraceContext | undefined
  readonly attempts: number
}

export interface TracedOrder {
  readonly name: 'cancel' | 'move' | 'retry'
  readonly conv_id: string
}

/** Ops of a request with their own spans; the rest share the request's. */
const op_spans_max = 100

export function newTraces(tracing: Tracing, masked: (text: string) => string): Traces {
  const open = new Map<string, Span>()

  function begin(name: string, conv_id: string | undefined, parent: TraceContext): Span {
    const attributes = conv_id === undefined ? {} : { 'conveyor.conv_id': conv_id }
    const span = tracing.begin({ name: `conveyor.${name}`, kind: 'internal', parent, attributes })
    open.set(span.context.span_id, span)
    return span
  }

  function end(span: Span, { proc, obj_id }: OpResult): void {
    open.delete(span.context.span_id)
    if (obj_id !== undefined) span.set({ 'conveyor.obj_id': obj_id })
    span.end(proc === 'ok' ? {} : { error: proc, is_failure: proc === 'task_damaged' })
  }

  /** `change` may run twice. */
  async function runSpans<T>(
    queue: TransactionQueue,
    spans: readonly Span[],
    commit: { readonly parent: TraceContext; readonly op_count: number },
    change: (tx: Transaction) => T,
  ): Promise<T> {
    let applied_ms = 0
    try {
      const result = await queue.run((tx) => {
        const changed = change(tx)
        applied_ms = performance.now()
        return changed
      })
      const attributes = { 'conveyor.ops': commit.op_count }
      const { parent } = commit
      const named = { name: 'conveyor.commit', kind: 'internal' } as const
      tracing.begin({ ...named, parent, attributes, began_ms: applied_ms }).end()
      return result
    } catch (thrown) {
      endAll(spans, answeredCode(thrown))
      throw thrown
    }
  }

  function endAll(spans: readonly Span[], error: string): void {
    for (const span of spans) {
      open.delete(span.context.span_id)
      span.end({ error })
    }
  }

  async function applySpans(
    queue: TransactionQueue,
    ops: readonly (Op | OpResult)[],
    trace: TraceContext,
    run: (tx: Transaction, apply: ApplyOps) => Outcome,
  ): Promise<Outcome> {
    const spans = ops
      .slice(0, op_spans_max)
      .map((op) => begin(op.type ?? 'op', isOp(op) ? shownConvId(op.conv_id) : undefined, trace))
    const parent = ops.length === 1 ? (spans[0] as Span).context : trace
    const apply: ApplyOps = (tx, given, caller) =>
      given.map((op, at) => {
        const span = spans[given === ops ? at : ops.indexOf(op)]
        tx.cause = span?.context ?? trace
        return applyOps(tx, [op], caller)[0] as OpResult
      })
    const outcome = await runSpans(queue, spans, { parent, op_count: ops.length }, (tx) =>
      run(tx, apply),
    )
    if ('code' in outcome) endAll(spans, outcome.code)
    else {
      const results = 'is_repeat' in outcome ? outcome.results : outcome
      for (const [at, span] of spans.entries()) end(span, results[at] as OpResult)
    }
    return outcome
  }

  return {
    of: (caller) => caller.trace ?? tracing.active(),
    apply(queue, ops, trace, run) {
      if (isSampled(trace)) return applySpans(queue, ops, trace, run)
      return queue.run((tx) => {
        tx.cause = trace
        return run(tx, applyOps)
      })
    },
    async run(queue, { name, conv_id }, trace, change) {
      if (!isSampled(trace)) return queue.run(change)
      const span = begin(name, conv_id, trace)
      const commit = { parent: span.context, op_count: 1 }
      const result = await runSpans(queue, [span], commit, (tx) => {
        tx.cause = span.context
        return change(tx)
      })
      end(span, result)
      return result
    },
    onCommitted(runs) {
      for (const { trace, cause, attributes, began_ms, ended_ms, moves, error } of runs) {
        const is_own = cause?.trace_id === trace.trace_id
        const span = tracing.begin({
          ...{ name: 'conveyor.run', kind: 'internal', attributes, began_ms },
          parent: is_own ? cause : trace,
          link: is_own ? undefined : cause,
        })
        for (const move of moves) span.event('conveyor.move', move.attributes, move.at_ms)
        if (!is_own && cause !== undefined) open.get(cause.span_id)?.link(span.context)
        span.end({ error, at_ms: ended_ms })
      }
    },
    beginJob({ order, task, trace, attempts }) {
      if (trace === undefined || order.job === 'none') return undefined
      const { conv_id, obj_id, node_id } = task
      const attributes = {
        ...{ 'conveyor.conv_id': conv_id, 'conveyor.obj_id': obj_id, 'conveyor.node_id': node_id },
        'conveyor.attempt': attempts + 1,
      }
      if (order.job === 'code') {
        return tracing.begin({ name: 'conveyor.code', kind: 'internal', parent: trace, attributes })
      }
      if (order.job === 'handler') {
        const handled = { ...attributes, 'conveyor.handler': order.handler }
        const named = { name: 'conveyor.handler', kind: 'internal' } as const
        return tracing.begin({ ...named, parent: trace, attributes: handled })
      }
      if (order.job === 'db') {
        const queried = { ...attributes, 'conveyor.instance': order.instance }
        const named = { name: 'conveyor.query', kind: 'client' } as const
        return tracing.begin({ ...named, parent: trace, attributes: queried })
      }
      const { method, url } = order.request
      const called = { ...attributes, 'http.request.method': method, ...serverOf(masked(url)) }
      return tracing.begin({ name: method, kind: 'client', parent: trace, attributes: called })
    },
    endJob(span, outcome) {
      const status = outcome.figures?.status
      if (status !== undefined) span.set({ 'http.response.status_code': status })
      const is_refused = status !== undefined && status >= 400
      const error =
        outcome.outcome === 'failed' ? outcome.tag : is_refused ? `${status}` : undefined
      span.end({ error })
    },
    under: (span, fn) => (span === undefined ? tracing.detached(fn) : span.run(fn)),
  }
}

function answeredCode(thrown: unknown): string {
  return isStoreUnavailable(thrown) ? codeOf(thrown) : 'internal_error'
}

/** Without path and query, which may hold data or secrets. */
function serverOf(url: string): { 'server.address'?: string; 'server.port'?: number } {
  if (!URL.canParse(url)) return {}
  const { hostname, port, protocol } = new URL(url)
  return {
    'server.address': hostname,
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  }
}
