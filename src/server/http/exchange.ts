/**
 * What the steps of a request share, as types: the running server, the connection, the request and
 * its response.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerName } from '../../core/counters.ts'
import type { Limits } from '../../core/limits.ts'
import type { Span, TraceContext } from '../../core/tracing.ts'
import type { ServedEngine, Standing } from '../../engine/served-engine.ts'
import type { UnverifiedBodies } from './body.ts'
import type { Connection, Pipelined } from './connection.ts'
import type { Target } from './path.ts'

/** What every request of a running server needs. */
export interface ServerContext extends Pipelined {
  readonly engine: ServedEngine
  readonly limits: Limits
  /** What a request asks for; undefined for a path that is not served. */
  route(request: IncomingMessage): Target | undefined
  readonly unverified: UnverifiedBodies
  readonly onBug: (bug: unknown) => void
  /** Signed requests are of the synchronous form. */
  readonly is_sync: boolean
  /** Under which its requests are counted. */
  readonly name: ServerName
  /** What addresses for callers begin with, base path and all; empty where that is not known. */
  public_url: string
  /** The value of the header `Keep-Alive`; undefined in a handler, where node writes it. */
  keep_alive: string | undefined
  draining: boolean
}

/** A request and what serves it. */
export interface Exchange {
  readonly context: ServerContext
  readonly connection: Connection
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The client sent `Expect: 100-continue` and holds its body back. */
  readonly expects_continue: boolean
  /** Of `Counters.beginRequest`. */
  readonly began_ms: number
  /** Of a standby, before it read anything for this request. */
  standing: Standing | undefined
  /** Undefined for an engine without `tracing`. */
  readonly trace: RequestTrace | undefined
}

export interface RequestTrace {
  readonly arrived_ms: number
  /** The active span of the embedder's own server. */
  readonly around: TraceContext | undefined
  span: Span | undefined
  /** What the ops of the request belong to. */
  context: TraceContext | undefined
}
