/**
 * `conveyor-engine/http`: the signed JSON endpoint for an engine that is open in this process.
 *
 * Importing this file starts nothing; `serveHttp(engine, options)` does.
 */
export { type HttpOptions, type HttpServer, serveHttp } from './server/http/server.ts'
