/**
 * The public interface of the engine, as types; those of its parts are in files such as task-api.
 * `apply`, `create` and `modify` take ops; the other calls are administration.
 *
 * A refused op is a result, never a rejection. A rejection is a Fault (core/faults), recognised by
 * its `code`. Each call that uses the store can reject with `store_failed` and `shutting_down`, and
 * each that writes with `no_space`. Calls on a missing process reject with `conv_not_found`, on a
 * missing user with `user_not_found`, with a malformed user id or certificate name with
 * `not_possible`. Each call states its other faults. A malformed option is a RangeError.
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
import type { GivenHandlers, Handler, HandlerOptions } from './handler-api.ts'
import type { GivenVariables, Processes } from './process-api.ts'
import type { Schedules } from './schedule-api.ts'
import type { EngineStatistics, Readiness } from './statistics-api.ts'
import type { CreateInput, ModifyInput, ResultOptions, TargetInput, Tasks } from './task-api.ts'
import type { TypedProcess } from './typed-process-api.ts'
import type { Users } from './user-api.ts'

export interface StaleReads {
  /**
   * Called with an engine for reads, which answers shows, searches and lists, and refuses all else
   * with `overloaded`; and with undefined when its time is over, which waits for what this returns.
   */
  use(reader: Engine | undefined): void | Promise<void>
  /** Reads of what may be older are refused with `overloaded`; default: none is. */
  readonly age_ms_max?: number
}

export interface EngineOptions {
  /** Those that differ from the defaults, which `Engine.limits` has. The unit is in the name. */
  readonly limits?: Partial<Record<LimitName, number>>
  /**
   * Whether a short commit may block the event loop while recent commits took less than 0.3 ms: a
   * single caller gets half as much throughput again. Default true. A server sets it to false,
   * because it has other callers to answer meanwhile; then no close blocks on a disk that hangs.
   */
  readonly blocking_commits?: boolean
  /**
   * Lets a child process open the file first, in about 60 ms, because LMDB kills its process
   * without a message if the file cannot be mapped. Default false.
   */
  readonly probe?: boolean
  /** Opens the admin socket through which the command line reaches this process; default false. */
  readonly admin?: boolean
  /**
   * The folder of the admin socket; default `/tmp/conveyor-<uid>`. Must be our own, with mode 0700.
   */
  readonly runtime_dir?: string
  /**
   * Whether this engine works by itself: fires timers and schedules, starts jobs, removes ended
   * tasks and old replays. Default true.
   */
  readonly background?: boolean
  /**
   * What a request is answered that was applied before: a signed one again, or a call with its
   * `request_key`. `answer`, the default: as it was. `reject`: `repeated_request`. `off`: nothing
   * is kept, a signed request is applied again, and a `request_key` is refused, `format_error`.
   */
  readonly replay?: ReplayMode
  /** Called once, when a commit has failed and the engine has stopped writing. */
  readonly onFailure?: (failure: Fault) => void
  /** Called for a bug: an exception that is no Fault. The caller gets `internal_error`. */
  readonly onBug?: (error: unknown) => void
  /** The key that encrypts the secrets, instead of the key file: 32 bytes in hex or base64. */
  readonly secret_key?: string
  /** Values for `{{env_var[@name].key}}`, by name; `Engine.setVariables` replaces them. */
  readonly variables?: GivenVariables
  /** Handlers that are there before any job starts; `Engine.handle` adds others. */
  readonly handlers?: GivenHandlers
  /**
   * Where lines of the log go: a pino logger, or anything with its four levels; default silent. A
   * line has `event`, one of the table in core/event-table, ids, codes and times; never data.
   */
  readonly logger?: Logger
  /** Makes spans, such as `openTelemetryTracing()` of `conveyor-engine/tracing`; default none. */
  readonly tracing?: Tracing | undefined
  /**
   * What callback addresses begin with, such as `https://api.example.com`; default: the `url` of an
   * HTTP server, once it listens.
   */
  readonly public_url?: string | undefined
  /** `host:port` of endpoints that calls may reach although their address is not public. */
  readonly allow_hosts?: readonly string[]
  /**
   * Where commits become durable, if not in files beside the data file: `postgresLog(...)` of
   * `conveyor-engine/postgres`. Then `openEngine` resolves once this node owns the data.
   */
  readonly commit_log?: CommitLogSource | undefined
  /**
   * While this node is a standby, once it has had everything that was committed: an engine that
   * reads what it has. See cluster/README.md.
   */
  readonly stale_reads?: StaleReads | undefined
  /** In place of the system's, for tests: what the engine knows of time it has from here. */
  readonly clock?: Clock
  readonly chance?: Chance
}

export interface Engine {
  /** The real path of the data file, or `:memory:`. */
  readonly path: string
  readonly limits: Limits
  readonly clock: Clock

  /**
   * Applies ops in order, in one durable commit; results[i] belongs to ops[i]. An op is an object
   * of the JSON API; its `data` is a plain JSON object or `rawJson(text)`. Without `caller.user`
   * every process may be used. A call for which the queue (`queue_ops_max`, `queue_bytes_max`) has
   * no room waits for it, behind the earlier calls; `overloaded` comes only where all that wait
   * would be over `waiting_bytes_max`, 1.5 KiB and its data for each op, or the ops alone over
   * `queue_ops_max`. Rejects with a whole-request Fault: `format_error` (no op), `too_many_ops`,
   * `rate_limited`, `shutting_down`, `store_failed`, `overloaded`, `no_space`, `internal_error`.
   *
   * With `caller.request_key` the call may be repeated: within 24 hours the same ops under the same
   * key of the same user return what they did the first time, and are not applied again, also after
   * a crash. A show among them is answered again. Other ops under that key: `request_key_reused`.
   */
  apply(ops: readonly unknown[], caller?: Caller): Promise<OpResult[]>
  /**
   * Puts a task into the start node of a process and runs it until it waits, ends or fails. The
   * same create again, while its task lives, is `ok` with the same obj_id; with other data under
   * that ref it is refused, `not_unical_ref`. Rejects as `apply`.
   *
   *     const { proc, description, obj_id } =
   *       await engine.create({ conv_id: 1234, ref: 'order-1', data: { amount: 120 } })
   */
  create(op: CreateInput, caller?: Caller): Promise<OpResult>
  /**
   * Merges data into a live task. A task that waits for a callback goes on, another stays where it
   * is. Refused with `not_found_task` where no live task has the ref. Rejects as `apply`.
   */
  modify(op: ModifyInput, caller?: Caller): Promise<OpResult>
  /**
   * The task, or undefined. A ref finds its live task, or else the newest ended one that is kept.
   * Rejects with `task_damaged`, and with a TypeError for a malformed target.
   */
  task(target: TargetInput): Promise<Task | undefined>
  /**
   * The task once it has ended (`processed`, `canceled`) or is `failed`, which is at once if it has
   * already. By ref it is the task that holds the ref at the call. A task whose end node keeps
   * nothing is returned as it ended, to callers who already wait. A failed task that is retried
   * lives on: a wait that begins after the retry waits for its next end.
   *
   *     const task = await engine.result({ conv_id, ref: 'order-4' }, { timeout_ms: 30_000 })
   *     if (task.status === 'processed') ship(task.data)
   *
   * A wait costs no polling. Rejects with `not_found_task`, `result_timeout`, the reason of
   * `signal`, `overloaded` while `results_waiting_max` calls wait, and `task_damaged`.
   */
  result(target: TargetInput, options?: ResultOptions): Promise<Task>
  /** The feed of committed changes, from a position on; see `Changes`. */
  readonly changes: Changes

  /**
   * The calls for one process, typed and checked by the schemas of its `defineProcess`; see
   * `TypedProcess`. It stores nothing; `processes.put` does, before or after. Throws a TypeError
   * for any other value.
   */
  process<Types extends ProcessTypes>(definition: ProcessDefinition<Types>): TypedProcess<Types>
  readonly processes: Processes
  readonly tasks: Tasks
  readonly users: Users
  /** Tasks that are created at their due times. */
  readonly schedules: Schedules

  /**
   * Replaces the values of `EngineOptions.variables`. They count before those that imports have
   * stored, are kept in memory only, and are masked in the descriptions of failures. Throws a
   * TypeError for a value that is no plain JSON value, and then changes nothing.
   */
  setVariables(variables: GivenVariables): void

  /**
   * Registers a handler, in place of an earlier one of this name (`GivenHandlers`); the returned
   * function removes it, and leaves what it is doing. It covers the nodes of its title that wait
   * for a callback, and logics of its type that the engine does not run (`db_call`; `api_code` for
   * another language than `js`). A type needs its handler before a definition in which a task can
   * reach it is stored. `handle` of `process` has the types of the data.
   *
   * Tasks that rest in such a node already are handed to it in the background, whenever they came.
   * A modify of a task that waits for its handler merges its data and does not resume the task
   * (`OpResult.resumed`); with `is_sync` or `node_id` it is refused. Without a handler a task waits
   * for one; in a node that waits for a callback a modify resumes it then, as without handlers.
   * Throws a RangeError for an option that is no whole number above 0, and for an empty name, and a
   * TypeError for a handler that is no function.
   */
  handle(name: string, handler: Handler, options?: HandlerOptions): () => void

  /**
   * What the engine has done since it was opened, and what it has to do now: plain data, for those
   * who measure with something else than `engineMetrics` of `conveyor-engine/metrics`.
   *
   *     const { ops, queue } = engine.statistics()
   *     console.log(ops.create?.ok, queue.ops)
   */
  statistics(): EngineStatistics
  /**
   * Whether the engine can do its work, for probes: whether a commit succeeds, whether the disk has
   * room, whether secrets can be read, and why not. Where no commit has succeeded lately a tiny one
   * is made, at most one a second, and waited for at most `ready_ms_max`. Never rejects.
   *
   *     const { ok, checks } = await engine.ready()
   *     if (!ok) console.error(checks.commit.reason ?? checks.disk.reason ?? checks)
   */
  ready(): Promise<Readiness>
  /** Resolves once everything requested before is on disk or has failed. */
  flush(): Promise<void>
  /** Checks every invariant of the key table; one sentence for each breach. */
  check(): Promise<CheckReport>
  /**
   * Writes a synced and checked copy of all that was acknowledged before to a new path, while the
   * engine goes on. The key of the secrets is no part of it. Where pages or tasks are damaged the
   * result has `damage`, and the copy is kept with `.damaged` at the end of its name. Rejects with
   * `not_possible`, and with `no_space` where the disk of the copy is full.
   */
  backup(path: string): Promise<BackupResult>
  /**
   * Starts no job and no timer any more, and refuses requests of servers with `shutting_down`; the
   * embedder's own calls, also those of handlers, still work. Handlers, calls and code under way
   * get `drain_ms_max` to finish, then their `signal` is aborted and they get one second more.
   * What they returned is committed; what was cut off starts again when the file is opened, under
   * the same key, and so does what was done for a paused process. Then the file is closed. Each
   * later call returns the same promise.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface BackupResult extends BackupFile {
  /** The id of the key that its secrets need; undefined where there is none, or it is missing. */
  readonly key_id?: string
}

export interface CheckReport {
  readonly breaches: readonly string[]
  readonly counts: Readonly<Record<string, number>>
  /** When a task last changed, of what is kept. */
  readonly last_change_ms?: number
}

/** What a repeat is answered: the same, a refusal, or as if it were new. */
export type ReplayMode = 'answer' | 'reject' | 'off'
