/**
 * Conveyor: an engine for business processes, embedded the way SQLite is.
 *
 * A process is a graph of nodes; a task is a unit of work that moves through it. `create` makes a
 * task, which advances until it waits, typically in an `api_callback` node; `modify` finds it by
 * the caller's own `ref`, merges data and resumes it. `ok` means on disk.
 *
 * src/README.md has the layers and the path of an op.
 */
export { rawJson } from './codec/json.ts'
export type { Chance, Clock } from './core/clock.ts'
export type { Fault, FaultCode } from './core/faults.ts'
export { isFault } from './core/faults.ts'
export type { Limits } from './core/limits.ts'
export type { Logger } from './core/log.ts'
export type { Caller, HistoryEntry, OpResult, Status, Task } from './core/model.ts'
export { version } from './core/version.ts'
export type { ChangesOptions, TaskChange } from './engine/api/change-api.ts'
export type {
  ConfirmOptions,
  DraftCheck,
  DraftDetails,
  DraftInfo,
  Drafts,
  ProcessDraft,
} from './engine/api/draft-api.ts'
export type { BackupResult, CheckReport, Engine, EngineOptions } from './engine/api/engine-api.ts'
export type { Handler, HandlerContext, HandlerOptions } from './engine/api/handler-api.ts'
export type {
  ExportFile,
  ImportResult,
  ProcessDetails,
  Processes,
  ProcessInfo,
  PutOptions,
  PutResult,
  WebhookInfo,
} from './engine/api/process-api.ts'
export type { ScheduleInfo, ScheduleInput, Schedules } from './engine/api/schedule-api.ts'
export type {
  BulkInput,
  BulkJob,
  TaskCounts,
  TaskFilter,
  TaskPage,
  TaskQuery,
} from './engine/api/search-api.ts'
export type { EngineStatistics, Readiness } from './engine/api/statistics-api.ts'
export type {
  ActionResult,
  CreateInput,
  ModifyInput,
  ResultOptions,
  TargetInput,
  Tasks,
} from './engine/api/task-api.ts'
export type { TypedHandler, TypedProcess, TypedTask } from './engine/api/typed-process-api.ts'
export type { UserInfo, Users } from './engine/api/user-api.ts'
export { openEngine } from './open.ts'
