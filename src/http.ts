/**
 * `conveyor-engine/http`: the signed HTTP server, for an engine that is open in this process, and
 * the same as a listener to mount in a server of your own. Importing it starts nothing;
 * `serveHttp(engine, options)` does.
 */
export type { HttpHandlerOptions } from './server/http/context.ts'
export { createHandler, type HttpHandler } from './server/http/handler.ts'
export { type HttpOptions, type HttpServer, serveHttp } from './server/http/server.ts'
