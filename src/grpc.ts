/**
 * `conveyor-engine/grpc`: the gRPC server over mutual TLS, for an engine that is open in this
 * process. `serveGrpc(engine, options)` starts it.
 */
export { type GrpcOptions, type GrpcServer, serveGrpc } from './server/grpc/server.ts'
export type { TlsOptions } from './server/tls/tls-files.ts'
