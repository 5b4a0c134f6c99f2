/**
 * Hands the lines of the log to a stream. It never blocks, never throws, and holds at most
 * `waiting_bytes_max`: further lines, and lines that the stream fails to write, are dropped, and
 * one line has their count once there is room again. A stream that has failed is reopened after
 * `reopen_ms`.
 */
import type { Writable } from 'node:stream'
import { type Clock, keepAlive, within } from '../../core/clock.ts'
import type { LineStream } from '../line-stream.ts'

export const waiting_bytes_max = 1024 * 1024
const reopen_ms = 1_000

export interface LineSink {
  write(line: string): void
  /** Resolves once all is written, or with `late` after `ms_max`; later lines are dropped. */
  close(ms_max: number): Promise<'written' | 'late' | 'late_in_thread'>
}

export interface LineSinkOptions {
  readonly open: () => LineStream
  readonly clock: Clock
  readonly emitDropped: (count: number) => void
}

export function newLineSink({ open, clock, emitDropped }: LineSinkOptions): LineSink {
  let opened: LineStream | undefined
  let opened_ms = Number.NEGATIVE_INFINITY
  let dropped = 0
  /** Lines that the stream has and has not written. */
  let waiting = 0
  let is_emitting = false
  let is_closed = false
  let onEmpty = (): void => {}

  function openStream(): Writable | undefined {
    if (opened !== undefined) return opened.stream
    const now_ms = clock.now_ms()
    // A clock that was set back must not silence the log for as long.
    if (Math.abs(now_ms - opened_ms) < reopen_ms) return undefined
    opened_ms = now_ms
    try {
      opened = open()
    } catch {
      return undefined
    }
    const { stream } = opened
    stream.on('error', () => {
      if (opened?.stream === stream) opened = undefined
    })
    stream.on('drain', emitOfDropped)
    return stream
  }

  function emitOfDropped(): void {
    const count = dropped
    if (count === 0) return
    dropped = 0
    is_emitting = true
    emitDropped(count)
    is_emitting = false
  }

  function onWritten(error?: Error | null): void {
    if (error) dropped++
    if (--waiting === 0) onEmpty()
  }

  return {
    write(line) {
      const stream = is_closed ? undefined : openStream()
      const has_room = stream !== undefined && stream.writableLength < waiting_bytes_max
      if (!has_room && !is_emitting) {
        dropped++
        return
      }
      if (!is_emitting) emitOfDropped()
      waiting++
      stream?.write(line, onWritten)
    },
    async close(ms_max) {
      if (openStream() !== undefined) emitOfDropped()
      is_closed = true
      const written = new Promise<void>((resolve) => {
        onEmpty = resolve
        if (waiting === 0) resolve()
      })
      const release = keepAlive()
      const end = await within(clock, ms_max, written)
      release()
      if (end !== 'late') return 'written'
      if (opened?.holds_thread === true) return 'late_in_thread'
      // A write that is under way would keep the process alive.
      opened?.stream.destroy()
      return 'late'
    },
  }
}
