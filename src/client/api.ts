/**
 * The public types of the client: one interface over signed HTTP and over gRPC with certificates.
 *
 * The outcome of an op is a value, also when it is refused. A call rejects with a ClientFault,
 * recognised by its `code`, when it is refused as a whole, does not get through or times out; and
 * with the reason of the caller's AbortSignal when that cancels it.
 */
import type { Chance, Clock } from '../core/clock.ts'
import type { OpFaultCode, WholeFaultCode } from '../core/faults.ts'
import type { Status, Task } from '../core/model.ts'
import type { ChangesOptions, TaskChange } from '../engine/api/change-api.ts'
import type { CountFilter, TaskCounts, TaskPage, TaskQuery } from '../engine/api/search-api.ts'
import type { CreateInput, ModifyInput, TargetInput } from '../engine/api/task-api.ts'

export type ConnectOptions = (HttpTarget | GrpcTarget) & {
  /** Milliseconds for a call, including its retries; default 30,000. */
  readonly timeout_ms?: number
  /** Retries of a repeatable call; default 4, with several addresses until its time-out. */
  readonly retries_max?: number
  readonly clock?: Clock
  readonly chance?: Chance
}

/** Signed HTTP, as a user with a secret. */
export interface HttpTarget {
  /**
   * With the base path, such as `http://127.0.0.1:8080`; `https:` where a proxy terminates TLS.
   * Several are the nodes of one cluster: calls go to its owner.
   */
  readonly url: string | readonly string[]
  readonly user: string | number
  readonly secret: string
  /** `hmac` signs in headers; `path` (default) in the path, for servers of every version. */
  readonly sign?: 'path' | 'hmac'
  /** The maximum of connections, for which further calls wait. Default 16. */
  readonly sockets_max?: number
  /** For `https:`: the authorities to trust instead of the system's. PEM, or the path of a file. */
  readonly ca?: string | Uint8Array
}

/** gRPC over mutual TLS, as the certificate. Each of the three is PEM, or the path of a file. */
export interface GrpcTarget {
  /** HOST:PORT, or several: the nodes of one cluster. Each is verified by its own name. */
  readonly address: string | readonly string[]
  readonly ca: string | Uint8Array
  readonly cert: string | Uint8Array
  readonly key: string | Uint8Array
}

/**
 * `data` is a JSON object, or `rawJson(text)` where numbers must keep their exact text. An object
 * with `toJSON`, such as a Date, is converted; a value without a JSON form rejects with a
 * TypeError.
 */
export type ClientOp =
  | (CreateInput & Named & { readonly type: 'create' })
  | (ModifyInput & Named & { readonly type: 'modify' })
  | (TargetInput & Named & { readonly type: 'show' })

interface Named {
  readonly obj?: 'task'
  /** Returned in the op's result. */
  readonly id?: string
}

/** A task. Over HTTP its times are whole seconds. */
export type ClientTask = Omit<Task, 'ref_is_number'>

export interface ClientResult {
  /** The op's `id`, if given. */
  readonly id?: string
  readonly ref: string | null
  readonly obj_id?: string
  readonly proc: 'ok' | OpFaultCode
  /** The reason, where `proc` is not `ok`. */
  readonly description?: string
  /** The task of a show. */
  readonly task?: ClientTask
}

/** The outcome of a cancel or a retry. */
export interface ClientAction extends ClientResult {
  /** If accepted, the task's state before; `task` is the task after. */
  readonly was?: { readonly status: Status; readonly node_id: string }
}

/** A page of tasks, as `TaskPage` of the engine has it. */
export type ClientPage = Omit<TaskPage, 'tasks'> & { readonly tasks: readonly ClientTask[] }

/** A change of a task, as `TaskChange` of the engine has it. */
export type ClientChange = Omit<TaskChange, 'task'> & { readonly task?: ClientTask }

/** The answer to a batch of a stream; without results if the whole batch was refused. */
export interface BatchResult {
  readonly proc: 'ok' | WholeFaultCode
  readonly description?: string
  readonly results: readonly ClientResult[]
}

export interface CallOptions {
  readonly signal?: AbortSignal
  /** Overrides the client's. */
  readonly timeout_ms?: number
}

/** Of a call that returns a task. */
export interface TaskOptions extends CallOptions {
  /** Returns the task with its `history`. Over gRPC only; over HTTP it rejects with `not_found`. */
  readonly history?: boolean
}

/** Concurrent calls of `create`, `modify` and `task` may share a request. */
export interface Client {
  /**
   * If its answer is lost, the call is repeated and applied once at a server that keeps replays;
   * over HTTP only with a ref. At other servers only a create with a ref is repeated, after a
   * lookup of the ref: the repeat answers the first task while that lives; if the task has ended,
   * the call rejects with an unknown outcome. A task that ended and is not kept would be created a
   * second time; `retries_max: 0` prevents repeats.
   */
  create(op: CreateInput & Named, options?: CallOptions): Promise<ClientResult>
  modify(op: ModifyInput & Named, options?: CallOptions): Promise<ClientResult>
  /** Applies ops in order, in one durable commit: results[i] belongs to ops[i]. */
  apply(ops: readonly ClientOp[], options?: CallOptions): Promise<ClientResult[]>
  /**
   * Applies batches in order and yields their answers in that order. At most 8 are sent and not yet
   * read; while the caller does not read, none is taken from `batches`. A batch refused as a whole
   * yields its fault, and the stream continues. A fault that would refuse every batch ends the
   * stream with a rejection; the outcome of unanswered batches is then unknown. `timeout_ms` is for
   * each batch. Nothing is retried.
   */
  stream(
    batches: AsyncIterable<readonly ClientOp[]> | Iterable<readonly ClientOp[]>,
    options?: CallOptions,
  ): AsyncGenerator<BatchResult, void, undefined>
  /**
   * The task, or undefined if none is found. Ended tasks are found while they are kept. Rejects
   * with the op's code, such as `access_denied`.
   */
  task(target: TargetInput, options?: TaskOptions): Promise<ClientTask | undefined>
  /**
   * The task once it has ended (`processed`, `canceled`) or is `failed`, as `Engine.result`; with a
   * ref, the one that holds it. It waits without limit or for `timeout_ms`, also over broken
   * connections.
   *
   * Over gRPC the server reports the end. Over HTTP the task is polled, after 0.1 s at first and up
   * to 5 s later; a task whose end node keeps nothing rejects with `not_found_task`.
   *
   * Rejects with `not_found_task`, `access_denied` or another code of the op, `result_timeout`,
   * and `overloaded` while too many calls wait.
   */
  result(target: TargetInput, options?: TaskOptions): Promise<ClientTask>
  /**
   * Ends a live task as `canceled`, which frees its ref. Over gRPC only; over HTTP it rejects with
   * `not_found`. A user needs the right to modify.
   */
  cancel(target: TargetInput, options?: CallOptions): Promise<ClientAction>
  /** Runs a failed task again, from its node or from `node_id`. Over gRPC only, as `cancel`. */
  retry(
    target: TargetInput,
    options?: CallOptions & { readonly node_id?: string },
  ): Promise<ClientAction>
  /**
   * Finds tasks by a filter, page by page; without one, all live tasks. A user finds tasks of the
   * processes that he may see. Over gRPC only, as `cancel`.
   *
   *     let page = await client.list({ conv_id, status: 'failed' })
   *     for (const task of page.tasks) report(task)
   *     if (page.cursor !== undefined) page = await client.list({ …, cursor: page.cursor })
   *
   * Rejects with `bad_filter`, `bad_cursor`, `node_not_found`, `conv_not_found` or `access_denied`.
   */
  list(query?: TaskQuery, options?: CallOptions): Promise<ClientPage>
  /** Counts tasks by process, node and status, as `Tasks.count`. Over gRPC only, as `cancel`. */
  count(filter?: CountFilter, options?: CallOptions): Promise<TaskCounts>
  /**
   * The committed changes of tasks from a position on, as `Engine.changes`: in order and each once,
   * also over broken connections and restarts of the server. A user sees changes of the processes
   * that he may see. Over gRPC only, as `cancel`.
   *
   *     for await (const change of client.changes({ from: await savedPosition() })) {
   *       await handle(change)
   *       await savePosition(change.position)
   *     }
   *
   * It ends with its signal, by `return` and with the client. It rejects with `changes_gone` if
   * changes after the position are no longer kept, `not_possible` for a position of another file,
   * `conv_not_found`, `access_denied`, and if the server cannot be reached at first.
   */
  changes(options?: ChangesOptions): AsyncGenerator<ClientChange, void, undefined>
  /** Closes the connections; calls under way reject. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}
