/**
 * The engine as its callers see it: embedders, doors and the command line. Types only.
 *
 * `apply` is the one door for ops; everything else is administration. Ops come back as results,
 * never as rejections. A rejection carries a Fault (core/faults): a whole-request fault of
 * `apply`, or an admin fault of the other calls, told by its `code`.
 */
import type { Chance, Clock } from '../core/clock.ts'
import type { Fault, WholeFaultCode } from '../core/faults.ts'
import type { LimitName, Limits } from '../core/limits.ts'
import type { Caller, Change, OpResult, Status, Task } from '../core/model.ts'
import type { AnswerAccount } from './unread-answers.ts'

export interface EngineOptions {
  readonly limits?: Partial<Record<LimitName, number>>
  /**
   * Whether a short commit may hold up the event loop where the disk lately took less than 0.3 ms
   * for one: a lone caller gets half as much again. Default true. A server, which has others to
   * answer meanwhile, sets it to false.
   */
  readonly blocking_commits?: boolean
  /**
   * Lets a process of its own open the file first, in about 60 ms: LMDB ends its process, without a
   * word, where a file cannot be mapped. Default false.
   */
  readonly probe?: boolean
  /** Opens the admin socket through which the command line reaches this process. */
  readonly admin?: boolean
  /** The folder of the admin socket, instead of `/tmp/conveyor-<uid>`; must be ours and 0700. */
  readonly runtime_dir?: string
  /** False: no timer fires and nothing is swept by this engine. */
  readonly timers?: boolean
  /** Told once, when a commit has failed and the engine has stopped writing. */
  readonly onFailure?: (failure: Fault) => void
  /** Told, in a sentence each, what the disk does not take or has no room for. */
  readonly onNotice?: (sentence: string) => void
  /** Told of a bug: an exception that is no Fault. The caller got `internal_error`. */
  readonly onBug?: (error: unknown) => void
  /** 32 bytes in hex or base64 that seal the secrets, instead of the key file. */
  readonly secret_key?: string
  /** What `{{env_var[@name].key}}` reads, by name. */
  readonly variables?: Readonly<Record<string, unknown>>
  /** `host:port` that calls may reach although it is not a public address. */
  readonly allow_hosts?: readonly string[]
  readonly clock?: Clock
  readonly chance?: Chance
}

/**
 * The embedder's own code for a node. What it returns, a plain JSON object or nothing, is merged
 * into the task, which goes on; a throw, once the tries are used up, goes to the err_node_id.
 * Called at least once for each visit of a task, each time with the same `key`.
 */
export type Handler = (
  task: Task,
  context: { readonly signal: AbortSignal; readonly key: string },
) => unknown

export interface HandlerOptions {
  /** Calls under way at once; default 16. */
  readonly threads_max?: number
  /** Until `signal` is aborted and the try has failed; default 60,000. */
  readonly time_ms_max?: number
  /** Tries before a throw is final; default 5. */
  readonly attempts_max?: number
}

/** What `create`, `modify` and `task` take: an op without `type` and `obj`. */
export interface CreateInput {
  readonly conv_id: string | number
  readonly ref?: string | number | null
  /** A plain JSON value, or `rawJson(text)`. */
  readonly data: unknown
}

export interface TargetInput {
  readonly conv_id: string | number
  readonly ref?: string | number | null
  readonly obj_id?: string
}

export interface ModifyInput extends TargetInput {
  readonly data: unknown
  readonly is_sync?: boolean
  readonly node_id?: string
}

export interface Engine {
  /** The data file's real path, or `:memory:`. */
  readonly path: string
  readonly limits: Limits
  readonly clock: Clock

  /**
   * Applies a list of ops in order, in one durable commit: results[i] belongs to ops[i]. An op is
   * an object as wire 1.1 describes, its `data` a plain JSON value or `rawJson(text)`. Without
   * `caller.user` every process is open. Rejects with a whole-request Fault: `shutting_down`,
   * `store_failed`, `overloaded`, `no_space`, `rate_limited`, `format_error` (an empty list),
   * `too_many_ops`, `internal_error`.
   */
  apply(ops: readonly unknown[], caller?: Caller): Promise<OpResult[]>
  create(op: CreateInput, caller?: Caller): Promise<OpResult>
  modify(op: ModifyInput, caller?: Caller): Promise<OpResult>
  /** The task, or undefined where there is none. Ended ones are found by obj_id. */
  task(target: TargetInput): Promise<Task | undefined>
  /**
   * Changes from now on, after their commit. A watcher that falls too far behind is ended by a
   * throw.
   */
  watch(filter?: { readonly conv_id?: string | number }): AsyncIterableIterator<Change>

  /** Reads, checks, compiles and stores a definition; `bad_definition`, `tasks_in_node`. */
  putProcess(definition: unknown, options?: PutOptions): Promise<PutResult>
  /**
   * Stores the definitions of an export that name each other, all in one transaction or none: one
   * definition or an array, as JSON text or plain values. Folders in it are passed over, `@name` is
   * looked up among its aliases. Refusals as `putProcess`, each mistake with its definition.
   */
  putProcesses(definitions: unknown, options?: PutManyOptions): Promise<PutResult[]>
  readonly processes: Processes
  readonly tasks: Tasks
  readonly users: Users

  /**
   * Runs the embedder's code for a logic kind that is not run here (`db_call`), or for each node of
   * this title that waits for a callback. The answer takes it back. A kind must have its handler
   * before a definition with it comes in. A task that came to rest in a node of this title before
   * goes on waiting for a modify; one that rests for a handler is moved by nothing else but its
   * timer, retry and cancel, and waits while none is registered: a modify is merged alone.
   * Throws a RangeError for an option that is no whole number above 0.
   */
  handle(name: string, handler: Handler, options?: HandlerOptions): () => void

  /** `ok`, or why the engine cannot write now. */
  health(): 'ok' | WholeFaultCode
  /**
   * For a server that refuses before it reads: throws `rate_limited` while the user is over the
   * rate, as `apply` does.
   */
  checkRate(user: string): void
  /** For a server: the account of a new connection for answers that it has not read yet. */
  answerAccount(): AnswerAccount
  /** Resolves once all that was asked for before is on disk, or has failed. */
  flush(): Promise<void>
  /** Walks every invariant of the key table; a sentence for each breach. */
  check(): Promise<CheckReport>
  /** Writes a synced and checked copy to a path that does not exist yet. */
  backup(path: string): Promise<{ readonly path: string; readonly bytes: number }>
  /** Refuses new ops with `shutting_down`, waits for those under way, lets go of the file. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface PutOptions {
  /** Instead of the definition's own `obj_id`; only where there is one definition. */
  readonly conv_id?: string | number
  /** For nodes that the new definition drops: old node id → the node their tasks go to. */
  readonly moves?: Readonly<Record<string, string>>
}

export interface PutManyOptions extends PutOptions {
  /** Old id of a process, or `@name`, → its new id here, also wherever it is named in the file. */
  readonly map?: Readonly<Record<string, string>>
}

export interface PutResult {
  readonly conv_id: string
  readonly version: number
  readonly state: 'created' | 'updated' | 'unchanged'
  readonly warnings: readonly string[]
}

export interface ProcessInfo {
  readonly conv_id: string
  readonly title: string
  readonly status: 'active' | 'paused'
  readonly version: number
  /** SHA-256 of the definition's canonical text, hex. */
  readonly hash: string
  /** Live tasks. */
  readonly tasks: number
}

export interface ProcessDetails extends ProcessInfo {
  /** The definition as it was given. */
  readonly definition_text: string
  readonly nodes: readonly {
    readonly id: string
    readonly title: string
    readonly kind: 'logic' | 'start' | 'end' | 'escalation'
    readonly tasks: number
    readonly to: readonly string[]
  }[]
  readonly shared_with: readonly { readonly user: string; readonly can: readonly Can[] }[]
}

export type Can = 'create' | 'modify' | 'show'

export interface Processes {
  list(): Promise<ProcessInfo[]>
  /** Rejects with `conv_not_found`, as do those below. */
  show(conv_id: string | number): Promise<ProcessDetails>
  /** Default: create, modify and show. `user_not_found`. */
  share(conv_id: string | number, user: string | number, can?: readonly Can[]): Promise<void>
  unshare(conv_id: string | number, user: string | number): Promise<void>
  pause(conv_id: string | number): Promise<void>
  resume(conv_id: string | number): Promise<void>
  /** `process_has_tasks` while live tasks are in it. */
  remove(conv_id: string | number): Promise<void>
}

export interface TaskFilter {
  readonly node_id?: string
  readonly status?: Status
  /** At most so many tasks; default 100. */
  readonly limit?: number
  /** Goes on behind this one, the last of an earlier list; it need not be there any more. */
  readonly after?: TaskPlace
}

/** Where a task stood in a list. */
export type TaskPlace = Pick<Task, 'obj_id' | 'node_id' | 'change_time_ms'>

export interface Tasks {
  list(conv_id: string | number, filter?: TaskFilter): Promise<Task[]>
  /** Runs a failed task again, from its node or from `node_id`. */
  retry(target: TargetInput, node_id?: string): Promise<OpResult>
  /** Ends a live task as `canceled`, frees its ref and disarms its timer. */
  cancel(target: TargetInput): Promise<OpResult>
}

export interface UserInfo {
  readonly id: string
  readonly name: string
  readonly create_time_ms: number
  /** How many secrets are valid now: 2 while a rotation's grace runs. */
  readonly secrets: number
  readonly grants: readonly { readonly conv_id: string; readonly can: readonly Can[] }[]
}

export interface NewSecret {
  readonly id: string
  /** Shown this once. */
  readonly secret: string
}

export interface Binding {
  readonly name: string
  /** A user's id, `all`, or null for a refusal. */
  readonly acts_as: string | null
}

export interface Users {
  /** Without an id: one above the highest so far, from 13000 on. `user_exists`, `key_missing`. */
  add(options?: { readonly id?: string | number; readonly name?: string }): Promise<NewSecret>
  list(): Promise<UserInfo[]>
  /** The old secrets end after `grace_ms` (default at once). `user_not_found`, `key_missing`. */
  rotate(id: string | number, options?: { readonly grace_ms?: number }): Promise<NewSecret>
  remove(id: string | number): Promise<void>
  /** Seals all secrets anew under a fresh key file, or under `secret_key`. */
  rekey(options?: { readonly secret_key?: string }): Promise<{ readonly secrets: number }>
  /** Lets a certificate name act as a user. `user_not_found`; `not_possible` for a bad name. */
  bind(id: string | number, name: string): Promise<void>
  /** Lets a certificate name use every process. */
  bindAll(name: string): Promise<void>
  /** Leaves a refusal, also for a name that was not bound: the deny list. */
  unbind(name: string): Promise<void>
  bindings(): readonly Binding[]
  /**
   * For a door that knows its callers by certificate: whom they act as, or undefined where a name
   * is refused or two names disagree. Names without a binding may use every process, unless
   * `strict`.
   */
  callerOf(names: readonly string[], options?: { readonly strict?: boolean }): Caller | undefined
  /**
   * For a door that checks signatures: the secrets of a user valid now, none for an unknown user.
   * Throws `store_failed` with a sentence that names the missing file where the key is missing.
   */
  secrets(id: string): readonly string[]
}

export interface CheckReport {
  readonly breaches: readonly string[]
  readonly counts: Readonly<Record<string, number>>
}
