/**
 * `conveyor-engine/http`: the signed HTTP server for an engine that is open in this process, and a
 * listener to mount in your own server. `serveHttp(engine, options)` starts it.
 */
export type { HttpHandlerOptions } from './server/http/context.ts'
export { createHandler, type HttpHandler } from './server/http/handler.ts'
export { type HttpOptions, type HttpServer, serveHttp } from './server/http/server.ts'
