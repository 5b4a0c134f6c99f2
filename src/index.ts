/**
 * Conveyor: an engine for business processes that one embeds the way one embeds SQLite.
 *
 * A process is a graph of nodes; a task is a unit of work that moves through it. `create` puts a
 * task in, it runs until it rests, typically in an `api_callback` node; `modify`, found by the
 * caller's own `ref`, adds data and sends it on. `ok` means on disk.
 *
 * The source is floors; a file imports only from its own or those below, and a test keeps it so.
 *
 *     core        limits · faults · clock · model          the vocabulary of everything else
 *     codec       json · keys · task-record · op · wire    how it is written as bytes
 *     store       store · group · lmdb-tree · log/tree     an ordered map with durable transactions
 *     process     logics/ · template · graph               what a definition means, purely
 *     engine      walk · ops · timers · engine             what ops do, one transaction a turn
 *     executors   code · call · executors                  what tasks wait for, outside
 *     server      admin · http · grpc                      translation, and nothing else
 *     client      http · grpc · retry                      the other side of the servers, typed
 *     certs       a CA, server and client certificates     for the gRPC server
 *     open        the file, its lock, its format           which store a path means
 *     cli         one file a verb group                    what a person types
 *
 * To read it, follow one request: server/http/request → engine/engine `apply` →
 * engine/transaction-queue → engine/ops → engine/advance → process/logics/table → engine/task-store →
 * store/group-commit → store/log/tree. Then codec/keys, which is the file format on one page.
 *
 * What holds everywhere: all changes go through `store.update(fn)`, whose `fn` is synchronous and
 * has no effect but through its transaction; time, ids and chance come in as arguments; a refusal
 * is a value with a code of the table in core/faults; after a failed commit nothing is written any
 * more.
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
