/**
 * Conveyor: an engine for business processes, embedded the way SQLite is.
 *
 * A process is a graph of nodes; a task is a unit of work that moves through it. `create` makes a
 * task, which advances until it waits, typically in an `api_callback` node; `modify` finds it by
 * the caller's own `ref`, merges data and resumes it. `ok` means on disk.
 *
 * src/README.md has the layers and the way of an op.
 */
export { rawJson } from './codec/json.ts'
export type { Chance, Clock } from './core/clock.ts'
export type {
  AdminFaultCode,
  Fault,
  FaultCode,
  OpFaultCode,
  WholeFaultCode,
} from './core/faults.ts'
export { isFault } from './core/faults.ts'
export type { LimitName, Limits } from './core/limits.ts'
export type { Logger } from './core/log.ts'
export type {
  Caller,
  Change,
  Doc,
  HistoryEntry,
  HistoryWhy,
  OpResult,
  SignatureKind,
  Status,
  StatusDetails,
  Task,
} from './core/model.ts'
export { version } from './core/version.ts'
export type { BulkAction, BulkInput, BulkJob, BulkOptions } from './engine/api/bulk-api.ts'
export type { Changes, ChangesOptions, TaskChange } from './engine/api/change-api.ts'
export type { BackupResult, CheckReport, Engine, EngineOptions } from './engine/api/engine-api.ts'
export type {
  GivenHandlers,
  Handler,
  HandlerContext,
  HandlerOptions,
} from './engine/api/handler-api.ts'
export type {
  Alias,
  AliasResult,
  ExportFile,
  GivenVariables,
  ImportResult,
  PutManyOptions,
  PutOptions,
  PutResult,
  VariableResult,
  WaitsFor,
} from './engine/api/import-api.ts'
export type {
  Can,
  ProcessDetails,
  Processes,
  ProcessInfo,
  WebhookChange,
  WebhookInfo,
} from './engine/api/process-api.ts'
export type {
  CatchUp,
  PutScheduleResult,
  ScheduleDetails,
  ScheduleInfo,
  ScheduleInput,
  ScheduleRun,
  Schedules,
} from './engine/api/schedule-api.ts'
export type {
  CountFilter,
  CountRow,
  SortedBy,
  TaskCounts,
  TaskFilter,
  TaskPage,
  TaskQuery,
  Where,
} from './engine/api/search-api.ts'
export type {
  EngineStatistics,
  Readiness,
  ReadyCheck,
  ReadyCheckName,
} from './engine/api/statistics-api.ts'
export type {
  ActionResult,
  CreateInput,
  ModifyInput,
  ResultOptions,
  TargetInput,
  Tasks,
} from './engine/api/task-api.ts'
export type { TypedHandler, TypedProcess, TypedTask } from './engine/api/typed-process-api.ts'
export type {
  Binding,
  ConsoleRight,
  NewSecret,
  Rekeyed,
  Sign,
  UserInfo,
  Users,
} from './engine/api/user-api.ts'
export { openEngine } from './open.ts'
