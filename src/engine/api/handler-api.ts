/**
 * Public types of handlers: the embedder's code for nodes of a title, and for logic types that the
 * engine does not run. executors/README describes the life of a handled task.
 */
import type { Task } from '../../core/model.ts'

/**
 * The embedder's code for a node. The task resumes with the returned plain JSON object (or nothing)
 * merged into its data. Called outside transactions, at least once per visit of a task, each time
 * with the same `key`.
 *
 * A throw, or no answer within `time_ms_max`, is a failed attempt. After the last one the task goes
 * to the `err_node_id` of the logic (tag `handler_error` or `handler_timeout`), else it fails in
 * its node. Any other return value is final at once, and so is a throw of the Fault
 * `wrong_validate_params` (a schema refused the data, `TypedProcess`).
 *
 *     engine.handle('charge', async (task, { key, signal }) => {
 *       const { id } = await bank.charge(task.data, { idempotencyKey: key, signal })
 *       return { charge_id: id }
 *     })
 */
export type Handler = (task: Task, context: HandlerContext) => unknown

export interface HandlerContext {
  /**
   * Aborted at the time limit, and when a close has waited `drain_ms_max`. At the time limit the
   * attempt is over, whatever the handler does then.
   */
  readonly signal: AbortSignal
  /** An idempotency key, unique to this visit of its node, for all attempts, also after a crash. */
  readonly key: string
}

/** Positive integers. */
export interface HandlerOptions {
  /** Concurrent calls; default 16. The limit `jobs_max` bounds all handlers together. */
  readonly threads_max?: number
  /** The time limit of an attempt in milliseconds; default 60,000. */
  readonly time_ms_max?: number
  /**
   * Attempts before a throw is final; default 5. Use `Infinity` where a throw may follow the
   * effect, such as a charge: a retry of the failed task has another key.
   */
  readonly attempts_max?: number
  /**
   * Milliseconds between the first two attempts; default 1,000. Doubles each time, up to 300,000,
   * with jitter that at most halves it.
   */
  readonly backoff_ms?: number
}

/**
 * Handlers by name: a node title or a logic type, for every process (`charge`), for the process of
 * an id (`1234/charge`) or of an alias (`@shop/charge`). Ids take precedence over aliases, and both
 * over plain titles. Names are compared as a whole, so `a/b` covers the title `a/b` everywhere and
 * the title `b` in process `a`.
 */
export type GivenHandlers = Readonly<
  Record<string, Handler | (HandlerOptions & { readonly handler: Handler })>
>
