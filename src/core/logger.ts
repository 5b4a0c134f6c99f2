/**
 * What the engine tells whoever runs it: one line for an event, as fields and a message. The shape
 * is that of pino's loggers. A line has ids, codes and times; never data of tasks, secrets or
 * signatures. The default is silent.
 */

export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** The given logger, or a silent one. What it throws is dropped: no line is worth a task. */
export function loggerOf(given: Logger | undefined): Logger {
  const lineOf =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      try {
        given?.[level](fields, message)
      } catch {
        // The logger is the embedder's own code.
      }
    }
  return {
    debug: lineOf('debug'),
    info: lineOf('info'),
    warn: lineOf('warn'),
    error: lineOf('error'),
  }
}
