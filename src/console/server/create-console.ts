/** The operator's page as a part of your own HTTP server: node:http, Express, Fastify. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { bugReporter } from '../../core/events.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import { newConsole } from './console.ts'
import type { Right } from './messages.ts'
import type { ConsoleOptions } from './source.ts'

export interface CreateConsoleOptions extends ConsoleOptions {
  /** Receives bugs: exceptions that are no Fault. The page gets `internal_error`. */
  readonly onBug?: (error: unknown) => void
}

export interface Console {
  /** Serves a request; false, with nothing touched, for a path that is not below the base. */
  handle(request: IncomingMessage, response: ServerResponse): boolean
  /**
   * The path of a link that signs in once, within ten minutes, such as `/console/#link=…`: what a
   * browser keeps for itself is behind the `#`. Throws `not_possible` where there is `authorize`.
   */
  link(right?: Right): string
  /** Ends all sessions and live views, and stops serving. The engine stays open. */
  close(): void
}

/**
 * The operator's page of an engine, for `options.base` and all paths below it. Mount it in front of
 * body parsers. Throws a RangeError for an invalid option.
 */
export function createConsole(engine: Engine, options: CreateConsoleOptions = {}): Console {
  const served = servedEngine(engine)
  const { emit, counters, clock, chance, limits, consoles } = served
  const readers = new Set<AbortController>()
  let is_closed = false
  const page = newConsole(
    {
      ...{ emit, counters, clock, chance, limits, readers },
      engine: () => served,
      onBug: bugReporter(emit, options.onBug),
      isDraining: () => is_closed,
      barred: () => undefined,
    },
    options,
  )
  page.refresh()
  if (options.authorize === undefined) consoles.add(page.link)
  return {
    handle: page.handle,
    link: page.link,
    close() {
      is_closed = true
      consoles.delete(page.link)
      for (const reader of readers) reader.abort()
      page.close()
    },
  }
}
