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

/** How far the state of a standby may be behind. */
export interface Staleness {
  /** Position of the last frame that reads see; they may see later ones. */
  readonly seq: number
  /** Commits of this last period may not be visible. */
  readonly age_ms: number
}

/** The message for callers from outside who want more than reads. */
export const only_reads = 'this node is a standby: it answers reads only'

export interface FoundTask {
  readonly task: Task
  /** The task that waits for the reply of this one. */
  readonly caller_id?: string
}

export interface ServedEngine extends Engine {
  readonly users: ServedUsers
  /** Only of a standby's reader; called before each read. */
  readonly staleness?: () => Staleness
  /**
   * Applies ops as `Engine.apply`. A malformed op is already its result and comes back in its
   * place. Refused with `shutting_down` once a close has begun.
   */
  submit(ops: readonly (Op | OpResult)[], caller: Caller): Promise<OpResult[]>
  /**
   * `Tasks.cancel` and `Tasks.retry` with the rights of a caller (`modify`) and the bounds of ops;
   * a cancel works on a full disk too.
   */
  cancelTask(op: ModifyOp, caller: Caller): Promise<OpResult>
  retryTask(op: ModifyOp, caller: Caller): Promise<OpResult>
  health(): 'ok' | WholeFaultCode
  /** Before a body is parsed: throws `rate_limited` as `submit` does. */
  checkRate(user: string): void
  /** A search or a wait of a caller costs as much as an op. Throws `rate_limited`. */
  payForRead(caller: Caller): void
  readonly replays: Pick<Replays, 'mode' | 'onWindow'>
  answerAccount(): AnswerAccount
  /**
   * The caller that certificate names act as; undefined where a name is refused or two disagree.
   * Unbound names may use every process, unless `strict`.
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
   * The first step of a close: starts no job and no timer, and resolves once the jobs in flight are
   * done or have had their time.
   */
  drain(): Promise<void>
  /** Whether a background step or a job is in flight. */
  isBusy(): boolean
  /** The operator's pages served for it; each makes a one-time link. */
  readonly consoles: Set<(right: ConsoleRight) => string>
  readonly addresses: Addresses
  readonly keyState: Secrets['keyState']
  /** Lets calls reach URLs with this beginning, although their address is not public. */
  allowCalls(url_start: string): void
  readonly chance: Chance
  /** Problems of its tasks and callers; changes nothing. */
  diagnose(): Promise<EngineDiagnosis>
  /** What each of these tasks waits for; undefined for one that is over. */
  waitsOf(obj_ids: readonly string[]): Promise<(TaskWait | undefined)[]>
  /** A task by its obj_id alone, whatever its process. Rejects with `task_damaged`. */
  taskById(obj_id: string): Promise<FoundTask | undefined>
  readonly flow: Flow
  readonly tracing: Tracing | undefined
  /** Emits an event to the log and the counters; see core/events. */
  readonly emit: Emit
  readonly counters: Counters
  /**
   * Calls the listener after the commit with each task that has ended or failed, before the results
   * of the ops of that commit. The returned function removes it.
   */
  onEnd(listener: (task: Task) => void): () => void
}

/** Throws a TypeError for an engine that `openEngine` has not made. */
export function servedEngine(engine: Engine): ServedEngine {
  if ('submit' in engine) return engine as ServedEngine
  throw new TypeError('a server needs an engine of openEngine')
}
