/**
 * Conveyor: an engine for business processes, embedded the way SQLite is.
 *
 * A process is a graph of nodes; a task is a unit of work that moves through it. `create` makes a
 * task, which advances until it waits, typically in an `api_callback` node; `modify` finds it by
 * the caller's own `ref`, merges data and resumes it. `ok` means on disk.
 *
 * The source has layers: a file imports only from its own layer or those below (a test checks it).
 *
 *     core        limits, faults, clock, model             what all others share
 *     codec       json, keys, task-record, op, wire        the bytes of requests and of the file
 *     store       group-commit, log, lmdb                  an ordered map with transactions
 *     process     compile-process, logics, templates       what a definition means, as functions
 *     engine      engine, transaction-queue, ops, advance  what ops do to tasks
 *     executors   code, call, executors                    the jobs that tasks wait for
 *     server      admin, http, grpc                        requests to ops, results to responses
 *     client      http and gRPC with retries               the other side of the servers
 *     certs       a CA, server and client certificates     for the gRPC server
 *     open        lock, store, engine, admin socket        opens a data file
 *     cli         a file for each group of verbs           the command line
 *
 * To read it, follow one request: server/http/request → engine/engine `submit` →
 * engine/transaction-queue → engine/ops → engine/advance → process/logics → engine/task-store →
 * store/group-commit → store/log. Then read codec/keys, the key table of the file.
 *
 * Everywhere holds: every change goes through `store.update(fn)`, and `fn` is synchronous and has
 * no effect but through its transaction; time, ids and chance are passed in; a refusal is a value
 * with a code of the table in core/faults; after a failed commit nothing is written.
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
export type { Caller, Change, Doc, OpResult, Status, StatusDetails, Task } from './core/model.ts'
export { version } from './core/version.ts'
export type {
  Binding,
  Can,
  CheckReport,
  CreateInput,
  Engine,
  EngineOptions,
  Handler,
  HandlerOptions,
  ModifyInput,
  NewSecret,
  ProcessDetails,
  Processes,
  ProcessInfo,
  PutManyOptions,
  PutOptions,
  PutResult,
  TargetInput,
  TaskFilter,
  TaskPlace,
  Tasks,
  UserInfo,
  Users,
} from './engine/api.ts'
export { openEngine } from './open.ts'
