/**
 * `conveyor-engine/grpc`: the gRPC server over mutual TLS, for an engine that is open in this
 * process. Importing it starts nothing; `serveGrpc(engine, options)` does.
 */
export { type GrpcOptions, type GrpcServer, serveGrpc } from './server/grpc/server.ts'
export type { TlsOptions } from './server/tls/tls-files.ts'
