/**
 * What the server of the operator's page works on, as types: the current engine, if there is one,
 * and what the server around it shares with it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Chance, Clock } from '../../core/clock.ts'
import type { Counters } from '../../core/counters.ts'
import type { Emit } from '../../core/events.ts'
import type { Limits } from '../../core/limits.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import type { Right, Session } from './messages.ts'

export interface ConsoleOptions {
  /** The path that the page is served under; default `/console`. */
  readonly base?: string
  /** No session may do more, whatever it was given. Default `administer`. */
  readonly right_max?: Right
  /**
   * Identifies the sender of a request, in place of links and secrets; undefined where unknown.
   * Asked with each request.
   */
  readonly authorize?: (
    request: IncomingMessage,
  ) => Authorized | undefined | Promise<Authorized | undefined>
  /** Where callers reach the servers of the engine, for the commands that the page shows. */
  readonly servers?: Session['servers']
  /** How the command line is run there, with `VERB` in it; default `npx conveyor VERB`. */
  readonly command_line?: string
}

export interface Authorized {
  /** In the log with what this session does. */
  readonly name: string
  readonly right: Right
}

export interface ConsoleSource {
  /** Throws `overloaded` with who the owner is where there is no engine. */
  engine(): ServedEngine
  readonly emit: Emit
  readonly counters: Pick<Counters, 'countRequest'>
  readonly limits: Limits
  readonly clock: Clock
  readonly chance: Chance
  readonly onBug: (bug: unknown) => void
  /** Aborting one ends what is being read live. */
  readonly readers: Set<AbortController>
  isDraining(): boolean
  /** Why the page is not served here, if it is not. */
  barred(): string | undefined
}

/** A request below the base. */
export interface ConsoleExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The path after the base, such as `/session`. */
  readonly path: string
  readonly query: URLSearchParams
  /** Its refusal is logged already, or needs no line. */
  is_logged: boolean
  /** Whose secret was refused. */
  user?: string | undefined
}
