/**
 * The table of events: what happens in an engine and its servers that whoever is on call wants to
 * know. Each is one line of the log, with `event` as its name, and may be counted. The fields are
 * ids, codes and times; never data of tasks, secrets, signatures or what a caller sent.
 *
 * What happens as often as ops do is no event. Ops are counted in statistics instead.
 */
import type { Logger, LogLevel } from './logger.ts'

interface EventRow {
  readonly level: LogLevel
  /** The message of the line. */
  readonly text: string
}

export const eventTable = {
  opened: { level: 'info', text: 'the file is open' },
  closed: { level: 'info', text: 'the file is closed' },
  listening: { level: 'info', text: 'a server listens' },
  draining: { level: 'info', text: 'no request is accepted any more; those under way are done' },
  request_refused: { level: 'warn', text: 'a request is refused' },
  op_refused: { level: 'info', text: 'an op is refused' },
  task_failed: { level: 'warn', text: 'a task has failed' },
  handler_failed: { level: 'error', text: 'a handler has failed' },
  handler_repeats: { level: 'warn', text: 'a handler has failed and is called again' },
  handler_unused: { level: 'warn', text: 'no node of the process waits for the handler' },
  job_aborted: { level: 'warn', text: 'a job is aborted at the close, and will be done again' },
  job_postponed: {
    level: 'warn',
    text: 'the process is paused at the close, so a job will be done again',
  },
  schedule_refused: { level: 'warn', text: 'a due time has no task' },
  schedule_left_out: { level: 'warn', text: 'missed due times are left out' },
  bug: { level: 'error', text: 'this is a bug of conveyor, please report it' },
} as const satisfies Record<string, EventRow>

export type EventName = keyof typeof eventTable
export type EventFields = Readonly<Record<string, string | number | boolean | undefined>>
export type Tell = (event: EventName, fields: EventFields) => void

export interface Events {
  /** Tells all listeners, and the logger. Never throws. */
  readonly tell: Tell
  /** The returned function ends it. */
  on(listener: Tell): () => void
}

/** Events that are written to `logger`, if there is one. */
export function newEvents(logger: Logger | undefined): Events {
  const listeners = new Set<Tell>()
  if (logger !== undefined) listeners.add(linesTo(logger))
  return {
    tell(event, fields) {
      for (const listener of listeners) listener(event, fields)
    },
    on(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

function linesTo(logger: Logger): Tell {
  return (event, fields) => {
    const { level, text } = eventTable[event]
    try {
      logger[level]({ event, ...fields }, text)
    } catch {
      // The logger is the embedder's own code, and no line is worth a task.
    }
  }
}

const stack_chars_max = 2_000

/** What the event of a bug has: an exception that nobody expected. */
export function bugFields(error: unknown): EventFields {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { error: stack.slice(0, stack_chars_max) }
}

/** For whom nothing is to be told. */
export const tellNobody: Tell = () => {}
