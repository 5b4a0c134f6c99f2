/**
 * Where lines of the log go: pino's loggers have this shape, and so has `console`. What is written
 * is in events.ts.
 */

export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type LogLevel = keyof Logger

/** Flat, so that any logger shows it whole. */
export type EventFields = Readonly<Record<string, string | number | boolean | undefined>>
