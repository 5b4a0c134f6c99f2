/** The engine as its servers see it: they submit typed ops, embedders use `apply`. */
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
import type { ProcessParts } from './definitions/processes.ts'
import type { EngineDiagnosis } from './file/diagnosis.ts'
import type { Flow } from './flow/flow.ts'
import type { Replays } from './replays/replays.ts'
import type { OtherOps } from './requests/submission.ts'
import type { AnswerAccount } from './requests/unread-answers.ts'
import type { TaskWait } from './tasks/waits.ts'

export interface Staleness {
  /** Position of the last frame that reads see at least. */
  readonly seq: number
  /** Commits of this last period may be missing. */
  readonly age_ms: number
}

export const only_reads = 'this node is a standby: it answers reads only'

export interface FoundTask {
  readonly task: Task
  /** The task that waits for this one's reply. */
  readonly caller_id?: string
}

export interface ServedEngine extends Engine {
  readonly users: ServedUsers
  /** Only on a standby; called before each read. */
  readonly staleness?: () => Staleness
  /**
   * As `Engine.apply`. A malformed op is already its result and is returned in place. Refused with
   * `shutting_down` once a close has begun.
   */
  submit(ops: readonly (Op | OpResult)[], caller: Caller): Promise<OpResult[]>
  /** As `submit`, for a request that has ops on other objects than tasks. */
  submitOthers(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    others: OtherOps,
  ): Promise<OpResult[]>
  /** Call after a commit that changed a process, its grants or its webhook. */
  onProcessChanged(conv_id: string): void
  /**
   * `Tasks.cancel` and `Tasks.retry` with a caller's right `modify` and the bounds of ops; a cancel
   * works on a full disk.
   */
  cancelTask(op: ModifyOp, caller: Caller): Promise<OpResult>
  retryTask(op: ModifyOp, caller: Caller): Promise<OpResult>
  health(): 'ok' | WholeFaultCode
  /** Before parsing a body: throws `rate_limited` like `submit`. */
  checkRate(user: string): void
  /** A search or wait costs as much as an op. Throws `rate_limited`. */
  payForRead(caller: Caller): void
  readonly replays: Pick<Replays, 'mode' | 'onWindow'>
  answerAccount(): AnswerAccount
  /**
   * The caller that certificate names act as; undefined if refused or ambiguous. Unbound names may
   * use every process, unless `strict`.
   */
  readonly callerOf: CertificateBindings['boundCaller']
  /** `Tasks.list` as the caller may see it; also rejects with `access_denied`. */
  listTasks(query: TaskQuery, caller: Caller): Promise<TaskPage>
  /** `Engine.changes` as the caller may see it, with positions in between. */
  readonly changesSeenBy: ChangeFeed['seenBy']
  countTasks(filter: CountFilter, caller: Caller): Promise<TaskCounts>
  /** `Engine.result` for a caller with `show`; also rejects as a show does. */
  awaitResult(op: ShowOp, caller: Caller, options?: ResultOptions): Promise<Task>
  /** Starts a close: no more jobs and timers; resolves once jobs are done or out of time. */
  drain(): Promise<void>
  /** Whether a background step or a job is in flight. */
  isBusy(): boolean
  /** Operator's pages of this engine; each makes a one-time link. */
  readonly consoles: Set<(right: ConsoleRight) => string>
  readonly addresses: Addresses
  /** What confirms of drafts work with. */
  readonly process_parts: ProcessParts
  readonly keyState: Secrets['keyState']
  /** Calls may reach URLs with this prefix, although their address is not public. */
  allowCalls(url_start: string): void
  readonly chance: Chance
  /** Problems of its tasks and callers; changes nothing. */
  diagnose(): Promise<EngineDiagnosis>
  /** What each task waits for; undefined for one that is over. */
  waitsOf(obj_ids: readonly string[]): Promise<(TaskWait | undefined)[]>
  /** By obj_id alone, of any process. Rejects with `task_damaged`. */
  taskById(obj_id: string): Promise<FoundTask | undefined>
  readonly flow: Flow
  readonly tracing: Tracing | undefined
  readonly emit: Emit
  readonly counters: Counters
  /**
   * Calls the listener after each commit with every task that has ended or failed, before the ops'
   * results. The returned function unsubscribes.
   */
  onEnd(listener: (task: Task) => void): () => void
}

/** Throws a TypeError for an engine that `openEngine` has not made. */
export function servedEngine(engine: Engine): ServedEngine {
  if ('submit' in engine) return engine as ServedEngine
  throw new TypeError('a server needs an engine of openEngine')
}
