/**
 * `conveyor-engine/operator`: the operator's listener, for an engine that is open in this process.
 * `serveOperator(engine, options)` starts it.
 */
export {
  type OperatorOptions,
  type OperatorServer,
  serveOperator,
} from './server/operator/server.ts'
export type { TlsOptions } from './server/tls/tls-files.ts'
