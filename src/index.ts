/**
 * Conveyor: an engine for business processes that one embeds the way one embeds SQLite.
 *
 * A process is a graph of nodes; a task is a unit of work that moves through it. `create` puts a
 * task in, it runs until it rests, typically in an `api_callback` node; `modify`, found by the
 * caller's own `ref`, adds data and sends it on. `ok` means on disk.
 *
 * The source is floors; a file imports only from its own or those below, and a test keeps it so.
 *
 *     words       limits · faults · clock · model          what everything is called
 *     bytes       json · keys · task-record · op · wire    what everything looks like as bytes
 *     store       store · group · lmdb-tree · log/tree     an ordered map with durable transactions
 *     logic       logics/ · template · graph               what a definition means, purely
 *     engine      walk · ops · timers · engine             what ops do, one transaction a turn
 *     doers       code · call · doers                      what tasks rest for, outside
 *     doors       admin · http · grpc                      translation, and nothing else
 *     client      http · grpc · retry                      the other side of the doors, typed
 *     certs       a CA, server and client certificates     for the gRPC door
 *     open        the file, its lock, its format           which store a path means
 *     doors/cli   one file a verb group                    what a person types
 *
 * To read it, follow one request: doors/http/request → engine/engine `apply` →
 * engine/transactions → engine/ops → engine/walk → logic/logics/table → engine/task-file →
 * store/group → store/log/tree. Then bytes/keys, which is the file format on one page.
 *
 * What holds everywhere: all changes go through `store.update(fn)`, whose `fn` is synchronous and
 * has no effect but through its transaction; time, ids and chance come in as arguments; a refusal
 * is a value with a code of the table in words/faults; after a failed commit nothing is written any
 * more.
 */
export { rawJson } from './bytes/json.ts'
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
export type { Chance, Clock } from './words/clock.ts'
export type {
  AdminFaultCode,
  Fault,
  FaultCode,
  OpFaultCode,
  WholeFaultCode,
} from './words/faults.ts'
export { isFault } from './words/faults.ts'
export type { LimitName, Limits } from './words/limits.ts'
export type { Caller, Change, Doc, OpResult, Status, StatusDetails, Task } from './words/model.ts'
export { version } from './words/version.ts'
