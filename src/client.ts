/**
 * `conveyor-engine/client`: the client of a Conveyor server, over signed HTTP with a secret or over
 * gRPC with certificates. Only `connect` with an `address` loads gRPC.
 */
export type {
  BatchResult,
  CallOptions,
  Client,
  ClientAction,
  ClientChange,
  ClientOp,
  ClientPage,
  ClientResult,
  ClientTask,
  ConnectOptions,
  GrpcTarget,
  HttpTarget,
  TaskOptions,
} from './client/api.ts'
export { connect } from './client/connect.ts'
export { type ClientFault, type ClientFaultCode, isClientFault } from './client/faults.ts'
export { rawJson } from './codec/json.ts'
export type { ChangesOptions } from './engine/api/change-api.ts'
export type {
  CountFilter,
  CountRow,
  TaskCounts,
  TaskFilter,
  TaskPage,
  TaskQuery,
  Where,
} from './engine/api/search-api.ts'
