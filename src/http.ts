/**
 * `conveyor-engine/http`: the signed HTTP server, for an engine that is open in this process.
 * Importing it starts nothing; `serveHttp(engine, options)` does.
 */
export { type HttpOptions, type HttpServer, serveHttp } from './server/http/server.ts'
