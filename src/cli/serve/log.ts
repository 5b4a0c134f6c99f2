/**
 * The log of `serve`: JSON lines on standard error, one for each event (core/event-table) from the
 * wanted level on.
 */
import { type Emit, newEvents } from '../../core/events.ts'
import type { Logger } from '../../core/log.ts'
import type { Io } from '../io.ts'
import { type Flag, type Given, isOn, oneOf, text } from '../verb.ts'
import { newLineSink } from './line-sink.ts'

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

export const log_level_flag: Flag = {
  name: 'log-level',
  value: 'LEVEL',
  says: `the lines on standard error: ${levels.join(', ')} (info; warn with --demo)`,
}

export interface ServeLog {
  readonly logger: Logger
  /** For events of `serve` without an engine. */
  readonly emit: Emit
  /** Resolves once the lines are written or have had their time. */
  close(): Promise<void>
}

const close_ms_max = 1_000

/** LMDB may print these failures too, without a line end. */
const beside_lmdb = /"event":"(?:store|checkpoint)_failed"/

export async function openServeLog(
  given: Given,
  io: Pick<Io, 'lines' | 'clock' | 'kill'>,
): Promise<ServeLog> {
  const standard = isOn(given, 'demo') ? 'warn' : 'info'
  const level = oneOf('--log-level', text(given, 'log-level') ?? standard, levels) ?? standard
  const sink = newLineSink({
    open: io.lines,
    clock: io.clock,
    emitDropped: (count) => events.emit('lines_dropped', { count }),
  })
  const write = (label: keyof Logger) => (fields: object, msg: string) => {
    if (levels.indexOf(label) < levels.indexOf(level)) return
    const time = new Date(io.clock.now_ms()).toISOString()
    const line = `${JSON.stringify({ level: label, time, ...fields, msg })}\n`
    sink.write(beside_lmdb.test(line) ? `\n${line}` : line)
  }
  const logger: Logger = {
    ...{ debug: write('debug'), info: write('info') },
    ...{ warn: write('warn'), error: write('error') },
  }
  const events = newEvents(logger, io.clock)
  return {
    logger,
    emit: events.emit,
    async close() {
      events.close()
      if ((await sink.close(close_ms_max)) === 'late_in_thread') io.kill()
    },
  }
}
