/**
 * Writes events to the logger, bounded in length and rate: `lines_max` lines per event and code in
 * `window_ms`; `lines_left_out` counts the rest. What an operator does on the page is always
 * written. Values from outside are cut and lose line breaks and control characters. A logger that
 * throws or rejects costs one line.
 */
import { type Clock, newAlarm } from './clock.ts'
import {
  type EventFields,
  type EventName,
  type EventRow,
  eventTable,
  type LogLevel,
} from './event-table.ts'

/** Where the lines go: pino's loggers have this shape, and so has `console`. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const lines_max = 20
export const window_ms = 10_000
/** Event and code pairs with a window of their own; further codes share that of their event. */
const windows_max = 256

interface Window {
  readonly of: EventName
  readonly code: string | undefined
  begins_ms: number
  lines: number
  left_out: number
}

export interface Log {
  emit(event: EventName, fields: EventFields): void
  /** Writes what was left out and stops the timer. */
  close(): void
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** Throws a TypeError for a logger without the four levels: it would be silent for ever. */
export function newLog(logger: Logger, clock: Clock): Log {
  const missing = levels.find((level) => typeof logger[level] !== 'function')
  if (missing !== undefined) throw new TypeError(`logger: it has no method ${missing}`)
  const windows = new Map<string, Window>()
  const alarm = newAlarm(clock, emitEnded)

  function isOver({ begins_ms }: Window, now_ms: number): boolean {
    return now_ms >= begins_ms + window_ms || now_ms < begins_ms
  }

  function windowOf(of: EventName, code: string | undefined, now_ms: number): Window {
    const key = code === undefined ? of : `${of} ${code}`
    const known = windows.get(key)
    if (known !== undefined && !isOver(known, now_ms)) return known
    if (known !== undefined) end(key, known)
    else if (windows.size >= windows_max && code !== undefined) {
      for (const [key, window] of windows) if (isOver(window, now_ms)) end(key, window)
      if (windows.size >= windows_max) return windowOf(of, undefined, now_ms)
    }
    const window = { of, code, begins_ms: now_ms, lines: 0, left_out: 0 }
    windows.set(key, window)
    return window
  }

  function end(key: string, { of, code, left_out }: Window): void {
    windows.delete(key)
    if (left_out > 0) write('lines_left_out', { of, code, count: left_out }, eventTable[of].level)
  }

  function write(event: EventName, fields: EventFields, level: LogLevel): void {
    try {
      const written: unknown = logger[level]({ event, ...shown(fields) }, eventTable[event].text)
      // A rejection of an `async` method would end the process.
      Promise.resolve(written).catch(() => {})
    } catch {
      // The logger is the embedder's code; its errors must not affect a task.
    }
  }

  function emitEnded(): void {
    const now_ms = clock.now_ms()
    for (const [key, window] of windows) {
      if (isOver(window, now_ms)) end(key, window)
      else if (window.left_out > 0) alarm.ringBy(window.begins_ms + window_ms)
    }
  }

  return {
    emit(event, fields) {
      const { level, is_whole }: EventRow = eventTable[event]
      if (is_whole === true) return write(event, fields, level)
      const code = typeof fields.code === 'string' ? fields.code : undefined
      const window = windowOf(event, code, clock.now_ms())
      if (window.lines < lines_max) {
        window.lines++
        write(event, fields, level)
        return
      }
      window.left_out++
      if (window.left_out === 1) alarm.ringBy(window.begins_ms + window_ms)
    },
    close() {
      alarm.clear()
      for (const [key, window] of windows) end(key, window)
    },
  }
}

const chars_max = 128
const longer_chars_max: Readonly<Record<string, number>> = {
  error: 500,
  thrown_in: 200,
  path: 1_024,
  stack: 2_000,
}
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

function shown(fields: EventFields): object {
  const shown: Record<string, string | number | boolean> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue
    shown[name] = typeof value === 'string' ? cut(value, longer_chars_max[name]) : value
  }
  return shown
}

function cut(text: string, max = chars_max): string {
  return text.slice(0, max).toWellFormed().replace(unprintable, '·')
}
