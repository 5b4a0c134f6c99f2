/**
 * The public interface of the engine, as types; files such as task-api have its parts.
 *
 * A refused op is a result, never a rejection. A rejection is a Fault (core/faults) with a `code`.
 * Calls that use the store can reject with `store_failed` and `shutting_down`, writes also with
 * `no_space`, a missing process with `conv_not_found`, a missing user with `user_not_found`, a
 * malformed user id or certificate name with `not_possible`. Each call states its other faults. A
 * malformed option is a RangeError.
 */
import type { Chance, Clock } from '../../core/clock.ts'
import type { Fault } from '../../core/faults.ts'
import type { LimitName, Limits } from '../../core/limits.ts'
import type { Logger } from '../../core/log.ts'
import type { Caller, OpResult, Task } from '../../core/model.ts'
import type { Tracing } from '../../core/tracing.ts'
import type { ProcessDefinition, ProcessTypes } from '../../process/process-types.ts'
import type { CommitLogSource } from '../../store/commit-log/source.ts'
import type { BackupFile } from '../../store/store.ts'
import type { Changes } from './change-api.ts'
import type { GivenDatabases } from './database-api.ts'
import type { Drafts } from './draft-api.ts'
import type { GivenHandlers, Handler, HandlerOptions } from './handler-api.ts'
import type { GivenVariables, Processes } from './process-api.ts'
import type { Schedules } from './schedule-api.ts'
import type { EngineStatistics, Readiness } from './statistics-api.ts'
import type { CreateInput, ModifyInput, ResultOptions, TargetInput, Tasks } from './task-api.ts'
import type { TypedProcess } from './typed-process-api.ts'
import type { Users } from './user-api.ts'

export interface StaleReads {
  /**
   * Receives an engine that answers shows, searches and lists and refuses all else with
   * `overloaded`; then undefined when its time is over, which waits for the returned promise.
   */
  use(reader: Engine | undefined): void | Promise<void>
  /** Maximum staleness; older reads are refused with `overloaded`. Default: unlimited. */
  readonly age_ms_max?: number
}

export interface EngineOptions {
  /** Overrides of the defaults. The unit is in the name. */
  readonly limits?: Partial<Record<LimitName, number>>
  /**
   * Whether a short commit may block the event loop while recent ones took under 0.3 ms, which
   * gives a single caller half as much throughput again. Default true. Servers set false, because
   * they have other callers; then no close blocks on a hanging disk.
   */
  readonly blocking_commits?: boolean
  /**
   * Opens the file in a child process first (about 60 ms), because LMDB kills its process without a
   * message if it cannot map the file. Default false.
   */
  readonly probe?: boolean
  /** Opens the admin socket, by which the CLI reaches this process. Default false. */
  readonly admin?: boolean
  /** Folder of the admin socket, ours with mode 0700; default `/tmp/conveyor-<uid>`. */
  readonly runtime_dir?: string
  /**
   * Whether this engine fires timers and schedules, starts jobs, and removes ended tasks and old
   * replays. Default true.
   */
  readonly background?: boolean
  /**
   * What a repeated request gets: a signed one, or a call with its `request_key`. `answer`
   * (default): its first answer. `reject`: `repeated_request`. `off`: nothing is kept, a signed
   * request is applied again, a `request_key` is refused with `format_error`.
   */
  readonly replay?: ReplayMode
  /** Called once, when a failed commit has stopped all writes. */
  readonly onFailure?: (failure: Fault) => void
  /** Called for an exception that is not a Fault. The caller gets `internal_error`. */
  readonly onBug?: (error: unknown) => void
  /** Encrypts the secrets, instead of the key file: 32 bytes in hex or base64. */
  readonly secret_key?: string
  /** Values for `{{env_var[@name].key}}`; `Engine.setVariables` replaces them. */
  readonly variables?: GivenVariables
  /** Registered before any job starts; `Engine.handle` adds others. */
  readonly handlers?: GivenHandlers
  /**
   * A pino logger, or anything with its four levels; default silent. A line has `event`, of the
   * table in core/event-table, ids, codes and times; never data.
   */
  readonly logger?: Logger
  /** Such as `openTelemetryTracing()` of `conveyor-engine/tracing`; default none. */
  readonly tracing?: Tracing | undefined
  /**
   * The beginning of callback addresses, such as `https://api.example.com`; default: the `url` of a
   * listening HTTP server.
   */
  readonly public_url?: string | undefined
  /**
   * The databases that `db_call` logics may query, by the `instance_id` that they name; default
   * none, and such a logic needs a handler. Each is `pg` or, to be installed, `mysql2`.
   */
  readonly databases?: GivenDatabases
  /** `host:port` entries that calls may reach although their address is not public. */
  readonly allow_hosts?: readonly string[]
  /**
   * Where commits become durable, if not in files beside the data file: `postgresLog(...)` of
   * `conveyor-engine/postgres`. `openEngine` then resolves once this node owns the data.
   */
  readonly commit_log?: CommitLogSource | undefined
  /**
   * A folder to which each change is shipped within `backup_lag_ms` (default 1,000), behind the
   * answers. `conveyor restore --from` makes a data file of any moment. See backups/README.md.
   */
  readonly backup_to?: string | undefined
  readonly backup_lag_ms?: number | undefined
  /** Reads on a standby, once it has caught up. See cluster/README.md. */
  readonly stale_reads?: StaleReads | undefined
  /** Replaces the system's in tests. */
  readonly clock?: Clock
  readonly chance?: Chance
}

export interface Engine {
  /** The data file's real path, or `:memory:`. */
  readonly path: string
  readonly limits: Limits
  readonly clock: Clock

  /**
   * Applies ops in order, in one durable commit; results[i] belongs to ops[i]. An op is an object
   * of the JSON API, with plain JSON or `rawJson(text)` as `data`. Without `caller.user` every
   * process may be used. A call without room in the queue (`queue_ops_max`, `queue_bytes_max`)
   * waits in line; `overloaded` only if the line exceeds `waiting_bytes_max` (1.5 KiB and the data
   * of each op), or the ops alone `queue_ops_max`. Rejects with a whole-request Fault:
   * `format_error` (no op), `too_many_ops`, `rate_limited`, `shutting_down`, `store_failed`,
   * `overloaded`, `no_space`, `internal_error`.
   *
   * With `caller.request_key` a call may be repeated: within 24 hours, also after a crash, the same
   * ops under the same key of the same user return their first results and are not applied again;
   * only shows are read again. Other ops under that key: `request_key_reused`.
   */
  apply(ops: readonly unknown[], caller?: Caller): Promise<OpResult[]>
  /**
   * Creates a task in the start node of a process and runs it until it waits, ends or fails. The
   * same create, while its task lives, is `ok` with the same obj_id; with other data the ref is
   * refused, `not_unical_ref`. Rejects as `apply`.
   *
   *     const { proc, description, obj_id } =
   *       await engine.create({ conv_id: 1234, ref: 'order-1', data: { amount: 120 } })
   */
  create(op: CreateInput, caller?: Caller): Promise<OpResult>
  /**
   * Merges data into a live task, and resumes it if it waits for a callback. Refused with
   * `not_found_task` if no live task has the ref. Rejects as `apply`.
   */
  modify(op: ModifyInput, caller?: Caller): Promise<OpResult>
  /**
   * A ref finds its live task, or else the newest ended one that is kept. Rejects with
   * `task_damaged`, and with a TypeError for a malformed target.
   */
  task(target: TargetInput): Promise<Task | undefined>
  /**
   * The task once it has ended (`processed`, `canceled`) or is `failed`, or at once if it has
   * already. By ref it is the task that holds the ref at the call. A task whose end node keeps
   * nothing is returned to callers who already wait. After a retry a new wait lasts until the next
   * end.
   *
   *     const task = await engine.result({ conv_id, ref: 'order-4' }, { timeout_ms: 30_000 })
   *     if (task.status === 'processed') ship(task.data)
   *
   * No polling. Rejects with `not_found_task`, `result_timeout`, the reason of `signal`,
   * `overloaded` while `results_waiting_max` calls wait, and `task_damaged`.
   */
  result(target: TargetInput, options?: ResultOptions): Promise<Task>
  readonly changes: Changes

  /**
   * The typed calls of one process, checked by the schemas of its `defineProcess`; see
   * `TypedProcess`. Does not store it; `processes.put` does. Throws a TypeError for other values.
   */
  process<Types extends ProcessTypes>(definition: ProcessDefinition<Types>): TypedProcess<Types>
  readonly processes: Processes & Drafts
  readonly tasks: Tasks
  readonly users: Users
  readonly schedules: Schedules

  /**
   * Replaces the values of `EngineOptions.variables`. They take precedence over imported ones, stay
   * in memory only, and are masked in failure descriptions. Throws a TypeError, without a change,
   * for a value that is not plain JSON.
   */
  setVariables(variables: GivenVariables): void

  /**
   * Registers a handler, replacing one of this name (`GivenHandlers`); the returned function
   * removes it, but does not stop its calls. It runs for nodes of its title that wait for a
   * callback, and for logics of its type that the engine does not run (`db_call`; `api_code` in
   * another language than `js`). A type needs its handler before a definition that uses it is
   * stored. `handle` of `process` has the types of the data.
   *
   * Tasks that already wait in such a node are handed over in the background. A modify of a task
   * that waits for its handler merges data without resuming it (`OpResult.resumed`); with `is_sync`
   * or `node_id` it is refused. Without a handler a task waits for one; in a callback node a modify
   * resumes it then. Throws a RangeError for an option that is not a positive integer or an empty
   * name, a TypeError for a handler that is not a function.
   */
  handle(name: string, handler: Handler, options?: HandlerOptions): () => void

  /**
   * Counts since the open and the present backlog, for monitoring without `engineMetrics` of
   * `conveyor-engine/metrics`.
   *
   *     const { ops, queue } = engine.statistics()
   *     console.log(ops.create?.ok, queue.ops)
   */
  statistics(): EngineStatistics
  /**
   * Health for probes: whether a commit succeeds, the disk has room and secrets can be read, with
   * reasons. Without a recent commit it makes a tiny one, at most one a second, and waits at most
   * `ready_ms_max`. Never rejects.
   *
   *     const { ok, checks } = await engine.ready()
   *     if (!ok) console.error(checks.commit.reason ?? checks.disk.reason ?? checks)
   */
  ready(): Promise<Readiness>
  /** Resolves once everything requested before is durable or has failed. */
  flush(): Promise<void>
  /** Checks every invariant of the key table; one sentence per breach. */
  check(): Promise<CheckReport>
  /**
   * Writes a synced, checked copy of all acknowledged state to a new path, while the engine runs.
   * The key of the secrets is not included. With damaged pages or tasks the result has `damage` and
   * the copy is named `.damaged`. Rejects with `not_possible`, and with `no_space` on a full disk.
   */
  backup(path: string): Promise<BackupResult>
  /**
   * Starts no more jobs and timers and refuses server requests with `shutting_down`; the embedder's
   * calls, also of handlers, still work. Running handlers, calls and code get `drain_ms_max`, then
   * their `signal` is aborted and they get one more second. Their results are committed; aborted
   * jobs, and those of a paused process, start again at the next open under the same key. Then the
   * file is closed. Later calls return the same promise.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface BackupResult extends BackupFile {
  /** Identifies the key of its secrets; undefined without one, or if it is missing. */
  readonly key_id?: string
}

export interface CheckReport {
  readonly breaches: readonly string[]
  readonly counts: Readonly<Record<string, number>>
  /** The last change of a kept task. */
  readonly last_change_ms?: number
}

export type ReplayMode = 'answer' | 'reject' | 'off'
