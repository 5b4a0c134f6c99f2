/**
 * Public types of handlers: the embedder's code for nodes of a title, and for logic types that the
 * engine does not run. executors/README describes the life of a handled task.
 */
import type { Task } from '../../core/model.ts'

/**
 * The embedder's own code for a node. The task resumes with its return value, a plain JSON object
 * or nothing, merged into the data as it is then. It is called outside transactions, at least once
 * for each visit of a task, each time with the same `key`.
 *
 * A throw, or no answer within `time_ms_max`, is a failed attempt; after the last one the task goes
 * to the `err_node_id` of the logic (tag `handler_error` or `handler_timeout`), and without one it
 * has failed in its node. A return value that is no plain JSON object is final at once, and so is a
 * throw of the Fault `wrong_validate_params`: data that a schema refuses (`TypedProcess`).
 *
 *     engine.handle('charge', async (task, { key, signal }) => {
 *       const { id } = await bank.charge(task.data, { idempotencyKey: key, signal })
 *       return { charge_id: id }
 *     })
 */
export type Handler = (task: Task, context: HandlerContext) => unknown

export interface HandlerContext {
  /**
   * Aborted at the time limit, and when a close has waited `drain_ms_max`. The attempt is over at
   * the time limit whatever the handler does then; what it still holds is its own.
   */
  readonly signal: AbortSignal
  /**
   * The same for each attempt of one visit of a task to its node, also after a crash, and for no
   * other: the key under which a repeat must have no second effect.
   */
  readonly key: string
}

/** Whole numbers of 1 or more. */
export interface HandlerOptions {
  /**
   * Calls at the same time; default 16. The limit `jobs_max` bounds the calls of all handlers.
   */
  readonly threads_max?: number
  /** Milliseconds after which `signal` is aborted and the attempt has failed; default 60,000. */
  readonly time_ms_max?: number
  /**
   * Attempts before a throw is final; default 5. `Infinity` is right for what may have had its
   * effect although it threw, such as a charge: a retry of the failed task would have another key.
   */
  readonly attempts_max?: number
  /**
   * Milliseconds between the first two attempts; default 1,000. The pause doubles each time, up to
   * 300,000, and is shortened by chance, at most to half.
   */
  readonly backoff_ms?: number
}

/**
 * Handlers by name. A name is a node title or a logic type (`charge`: in each process), or one
 * behind the id of a process (`1234/charge`) or its alias (`@shop/charge`). An id comes before an
 * alias, and both before a title alone. A name is compared as a whole, so `a/b` covers the title
 * `a/b` everywhere and the title `b` in process `a`.
 */
export type GivenHandlers = Readonly<
  Record<string, Handler | (HandlerOptions & { readonly handler: Handler })>
>
