/**
 * `conveyor-engine/operator`: the operator's listener, for an engine that is open in this process.
 * Importing it starts nothing; `serveOperator(engine, options)` does.
 */
export {
  type OperatorOptions,
  type OperatorServer,
  serveOperator,
} from './server/operator/server.ts'
export type { TlsOptions } from './server/tls/tls-files.ts'
