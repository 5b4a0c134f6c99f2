/**
 * The engine as its servers see it: they submit typed ops, while embedders use `apply`.
 */
import type { Chance } from '../core/clock.ts'
import type { Counters } from '../core/counters.ts'
import type { Emit } from '../core/events.ts'
import type { WholeFaultCode } from '../core/faults.ts'
import type { Caller, ModifyOp, Op, OpResult, ShowOp, Task } from '../core/model.ts'
import type { Tracing } from '../core/tracing.ts'
import type { Addresses } from './access/addresses.ts'
import type { CertificateBindings } from './access/certificate-bindings.ts'
import type { Secrets } from './access/secrets.ts'
import type { Engine } from './api/engine-api.ts'
import type { CountFilter, TaskCounts, TaskPage, TaskQuery } from './api/search-api.ts'
import type { ResultOptions } from './api/task-api.ts'
import type { ConsoleRight, ServedUsers } from './api/user-api.ts'
import type { ChangeFeed } from './changes/changes.ts'
import type { EngineDiagnosis } from './file/diagnosis.ts'
import type { Flow } from './flow/flow.ts'
import type { Replays } from './replays/replays.ts'
import type { AnswerAccount } from './requests/unread-answers.ts'
import type { TaskWait } from './tasks/waits.ts'

/** How far a standby is whose answers say so. */
export interface Staleness {
  /** Position of the last frame that reads find; they may find later ones. */
  readonly seq: number
  /** For so long something may have been committed that reads do not find. */
  readonly age_ms: number
}

/** What callers from outside are told who want more of a standby. */
export const only_reads = 'this node is a standby: it answers reads only'

export interface FoundTask {
  readonly task: Task
  /** The task that waits for the reply of this one. */
  readonly caller_id?: string
}

export interface ServedEngine extends Engine {
  readonly users: ServedUsers
  /** Of an engine that only reads what a standby has; asked for before each read. */
  readonly staleness?: () => Staleness
  /**
   * Applies ops as `Engine.apply` does. A malformed op is its result already (codec/op), and comes
   * back in its place. From the beginning of a close on it is refused with `shutting_down`.
   */
  submit(ops: readonly (Op | OpResult)[], caller: Caller): Promise<OpResult[]>
  /**
   * `Tasks.cancel` and `Tasks.retry` with the rights of a caller, who needs `modify`, and under the
   * bounds of ops; a cancel is taken on a full disk too. Of `op` they use what names the task, and
   * for a retry `node_id`.
   */
  cancelTask(op: ModifyOp, caller: Caller): Promise<OpResult>
  retryTask(op: ModifyOp, caller: Caller): Promise<OpResult>
  /** `ok`, or why the engine takes no ops now. */
  health(): 'ok' | WholeFaultCode
  /** Before a body is parsed: throws `rate_limited` as `submit` does. */
  checkRate(user: string): void
  /** A search or a wait of a caller costs as much as an op. Throws `rate_limited`. */
  payForRead(caller: Caller): void
  readonly replays: Pick<Replays, 'mode' | 'onWindow'>
  /** The account of the unread answers of a new connection. */
  answerAccount(): AnswerAccount
  /**
   * The caller that the names of a client certificate act as, or undefined where a name is refused
   * or two names disagree. Names without a binding may use every process, unless `strict`.
   */
  readonly callerOf: CertificateBindings['boundCaller']
  /** `Tasks.list` of the tasks that the caller may see; also rejects with `access_denied`. */
  listTasks(query: TaskQuery, caller: Caller): Promise<TaskPage>
  /** `Engine.changes` as a caller may see them, with the positions between them. */
  readonly changesSeenBy: ChangeFeed['seenBy']
  /** `Tasks.count` of them. */
  countTasks(filter: CountFilter, caller: Caller): Promise<TaskCounts>
  /** `Engine.result` with the rights of a caller, who needs `show`; also rejects as a show does. */
  awaitResult(op: ShowOp, caller: Caller, options?: ResultOptions): Promise<Task>
  /**
   * The first step of a close, for a process that stops its servers meanwhile: starts no job and no
   * timer any more; resolves once the jobs under way are done or have had their time.
   */
  drain(): Promise<void>
  /** Whether something is under way that is no op: a step of the background, or a job. */
  isBusy(): boolean
  /** The operator's pages that are served of it: each makes a one-time link. */
  readonly consoles: Set<(right: ConsoleRight) => string>
  readonly addresses: Addresses
  readonly keyState: Secrets['keyState']
  /** Lets calls reach URLs with this beginning, although their address is not public. */
  allowCalls(url_start: string): void
  readonly chance: Chance
  /** What stands in the way of its tasks, and of its callers; changes nothing. */
  diagnose(): Promise<EngineDiagnosis>
  /** What each of these tasks waits for; undefined for one that is over. */
  waitsOf(obj_ids: readonly string[]): Promise<(TaskWait | undefined)[]>
  /** A task by its obj_id alone, whatever its process. Rejects with `task_damaged`. */
  taskById(obj_id: string): Promise<FoundTask | undefined>
  /** What happens to tasks, process by process, for those who watch. */
  readonly flow: Flow
  readonly tracing: Tracing | undefined
  /** Tells the log, and whoever counts, what a server has seen; see core/events. */
  readonly emit: Emit
  /** Where a server counts the requests that it answers. */
  readonly counters: Counters
  /**
   * Calls the listener after the commit with each task that has ended, canceled too, or has failed,
   * before the results of the ops of that commit. The returned function ends it.
   */
  onEnd(listener: (task: Task) => void): () => void
}

/** Throws a TypeError for an engine that `openEngine` has not made. */
export function servedEngine(engine: Engine): ServedEngine {
  if ('submit' in engine) return engine as ServedEngine
  throw new TypeError('a server needs an engine of openEngine')
}
