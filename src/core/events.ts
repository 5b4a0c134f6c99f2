/**
 * Emits events to the listeners: the log, the counters, and subscribers elsewhere in the process.
 */
import { channel } from 'node:diagnostics_channel'
import type { Clock } from './clock.ts'
import type { EventFields, EventName } from './event-table.ts'
import { type Logger, newLog } from './log.ts'

export type Emit = (event: EventName, fields: EventFields) => void

export interface Events {
  /** Calls all listeners, and the logger. Never throws. */
  readonly emit: Emit
  on(listener: Emit): () => void
  /** Logs at once how many lines were left out, and ends the timer. */
  close(): void
}

/** Gets each event of every engine of the process, as `{ event, ...fields }`. */
const event_channel = channel('conveyor:event')

/** Events that are written to `logger`, if there is one. Throws a TypeError as `newLog` does. */
export function newEvents(logger: Logger | undefined, clock: Clock): Events {
  const listeners = new Set<Emit>()
  const log = logger === undefined ? undefined : newLog(logger, clock)
  if (log !== undefined) listeners.add(log.emit)
  return {
    emit(event, fields) {
      if (event_channel.hasSubscribers) event_channel.publish({ event, ...fields })
      for (const listener of listeners) listener(event, fields)
    },
    on(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: () => log?.close(),
  }
}

const frames_max = 20
const frame = /^ {4}at (?:[\w$.<>[\] ]{1,100} \()?(?:file:|node:|\/|<anonymous>)[^\n]*$/

/**
 * The fields of a bug's event: the kind of exception and its stack frames. The message stays out,
 * because it may quote data.
 */
export function bugFields(error: unknown): EventFields {
  if (!(error instanceof Error)) return { error: typeof error }
  const { name, message, stack = '', code } = error as NodeJS.ErrnoException
  // A message of several lines could pass for frames.
  const frames = stack
    .slice(stack.indexOf(message) + message.length)
    .split('\n')
    .slice(1)
  return {
    error: /^\w{1,40}$/.test(name) ? name : 'Error',
    ...(/^[A-Z][A-Z0-9_]{1,39}$/.test(String(code)) ? { code: String(code) } : {}),
    stack: frames
      .filter((line) => frame.test(line))
      .slice(0, frames_max)
      .map((line) => line.trim())
      .join(' '),
  }
}

/** Emits a bug as an event, then calls `onBug`. */
export function bugReporter(emit: Emit, onBug?: (error: unknown) => void): (bug: unknown) => void {
  return (bug) => {
    emit('bug', bugFields(bug))
    onBug?.(bug)
  }
}

export const emitNothing: Emit = () => {}
