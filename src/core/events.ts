/**
 * The table of events: what happens in an engine and its servers that whoever is on call wants to
 * know. Each is one line of the log, with `event` as its name, and may be counted. The fields are
 * ids, codes and times; never data of tasks, secrets, signatures or what a caller sent.
 *
 * What happens as often as ops do is no event. Ops are counted in statistics instead.
 */
import { channel } from 'node:diagnostics_channel'
import type { Clock } from './clock.ts'
import { newLines } from './lines.ts'
import type { EventFields, Logger, LogLevel } from './logger.ts'

export type { EventFields }

interface EventRow {
  readonly level: LogLevel
  /** The message of the line. */
  readonly text: string
}

export const eventTable = {
  opened: { level: 'info', text: 'the file is open' },
  closed: { level: 'info', text: 'the file is closed' },
  listening: { level: 'info', text: 'a server listens' },
  risky: { level: 'warn', text: 'something is risky as it is configured' },
  draining: { level: 'info', text: 'the close begins: what is under way is done first' },
  recovered: { level: 'info', text: 'what the last process left in the commit log is recovered' },
  upgrade_begun: { level: 'info', text: 'a file of an earlier version: all tasks are read once' },
  upgraded: { level: 'info', text: 'the file is upgraded' },
  slow_writes: {
    level: 'warn',
    text: 'the disk does not take writes with this flag, so commits are slower',
  },
  slow_commit: { level: 'warn', text: 'a commit takes longer than slow_commit_ms' },
  checkpoint: { level: 'debug', text: 'the data file has what was in the commit log' },
  checkpoint_waits: { level: 'warn', text: 'the disk is full, so a checkpoint waits for room' },
  checkpoint_failed: { level: 'error', text: 'a checkpoint has failed' },
  no_space: { level: 'error', text: 'the disk is full, so writes are refused' },
  space_back: { level: 'info', text: 'the disk has room again, and writes are accepted' },
  backup_begun: { level: 'info', text: 'a backup is made' },
  backup_done: { level: 'info', text: 'the backup is complete' },
  request_refused: { level: 'warn', text: 'a request is refused' },
  certificate_refused: { level: 'warn', text: 'a connection is refused in its TLS handshake' },
  op_refused: { level: 'info', text: 'an op is refused' },
  task_failed: { level: 'error', text: 'a task has failed, and rests until it is retried' },
  handler_failed: {
    level: 'error',
    text: 'a handler has failed, and its task goes on in the error node',
  },
  handler_repeats: { level: 'warn', text: 'a handler has failed and is called again' },
  call_gave_up: {
    level: 'warn',
    text: 'a call has failed, and its task goes on in the error node',
  },
  call_repeats: { level: 'debug', text: 'a call has failed and is made again' },
  code_failed: { level: 'info', text: 'code has failed, and its task goes on in the error node' },
  handler_unused: { level: 'warn', text: 'no node of the process waits for the handler' },
  job_aborted: { level: 'warn', text: 'a job is aborted at the close, and will be done again' },
  job_postponed: {
    level: 'warn',
    text: 'the process is paused at the close, so a job will be done again',
  },
  schedule_refused: { level: 'warn', text: 'a due time has no task' },
  schedule_left_out: { level: 'warn', text: 'missed due times are left out' },
  store_failed: {
    level: 'error',
    text: 'a commit has failed, so nothing is written any more: look at the disk',
  },
  write_hangs: {
    level: 'error',
    text: 'a write hangs, so the process is killed; what was answered is in the commit log',
  },
  certificates_reloaded: {
    level: 'info',
    text: 'the certificate files have changed and are in use',
  },
  certificates_unusable: {
    level: 'error',
    text: 'the certificate files have changed and cannot be used; those before stay in use',
  },
  variables_unusable: {
    level: 'error',
    text: 'the file of variables has changed and cannot be used; the values stay as they were',
  },
  lines_left_out: { level: 'warn', text: 'lines of this event and code are left out' },
  lines_dropped: { level: 'warn', text: 'lines were dropped, because nobody took them' },
  key_missing: { level: 'error', text: 'the key file is missing, wrong or cannot be read' },
  key_open: { level: 'warn', text: 'other users may read the key file' },
  key_back: { level: 'info', text: 'the key file is as it should be again' },
  traces_without_sdk: {
    level: 'warn',
    text: 'no OpenTelemetry SDK is registered, so nobody takes the spans',
  },
  bug: { level: 'error', text: 'this is a bug of conveyor, please report it' },
} as const satisfies Record<string, EventRow>

const levels = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLevel[]

export type EventName = keyof typeof eventTable
export type Tell = (event: EventName, fields: EventFields) => void

export interface Events {
  /** Tells all listeners, and the logger. Never throws. */
  readonly tell: Tell
  /** The returned function ends it. */
  on(listener: Tell): () => void
  /** Tells at once what was left out of the log, and sets no timer any more. */
  close(): void
}

/** Gets each event of every engine of the process, as `{ event, ...fields }`. */
const told = channel('conveyor:event')

/**
 * Events that are written to `logger`, if there is one. Throws a TypeError for one without the four
 * levels, which would be silent for ever.
 */
export function newEvents(logger: Logger | undefined, clock: Clock): Events {
  const missing = logger && levels.find((level) => typeof logger[level] !== 'function')
  if (missing !== undefined) throw new TypeError(`logger: it has no method ${missing}`)
  const listeners = new Set<Tell>()
  const lines = logger === undefined ? undefined : newLines(eventTable, logger, clock)
  if (lines !== undefined) listeners.add(lines.tell)
  return {
    tell(event, fields) {
      if (told.hasSubscribers) told.publish({ event, ...fields })
      for (const listener of listeners) listener(event, fields)
    },
    on(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: () => lines?.close(),
  }
}

const frames_max = 20
const frame = /^ {4}at (?:[\w$.<>[\] ]{1,100} \()?(?:file:|node:|\/|<anonymous>)[^\n]*$/

/**
 * What the event of a bug has: the kind of an exception that nobody expected, and the frames of its
 * stack. Its message stays out, because it may quote what was being worked on.
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

/** Tells a bug as an event, and then whoever asked for bugs. */
export function bugTeller(tell: Tell, onBug?: (error: unknown) => void): (bug: unknown) => void {
  return (bug) => {
    tell('bug', bugFields(bug))
    onBug?.(bug)
  }
}

/** For whom nothing is to be told. */
export const tellNobody: Tell = () => {}
