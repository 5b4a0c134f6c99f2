/**
 * What the operator's page is served of, and how, as types: the engine, if there is one now, and
 * what the server that it is part of shares with it.
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
   * Says who sends a request, in place of links and of the secrets of users; undefined for nobody.
   * Asked with each request.
   */
  readonly authorize?: (
    request: IncomingMessage,
  ) => Authorized | undefined | Promise<Authorized | undefined>
  /** Where callers reach the servers of the engine, for the commands that the page shows. */
  readonly servers?: Session['servers']
  /** How the command line is run there, with `VERB` in it; `npx conveyor VERB` unless told. */
  readonly command_line?: string
}

export interface Authorized {
  /** Stands in the log with what he does. */
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
  /** Its refusal has been told, or is nothing to tell of. */
  is_told: boolean
  /** Whose secret was refused. */
  user?: string | undefined
}
