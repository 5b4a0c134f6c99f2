/**
 * `GET BASE/live?view=…`: a view by server-sent events. At most four frames a second, and none
 * where nothing has changed; one that the connection has no room for is left out, never kept, so a
 * reader that does not read holds one frame. A stream ends with its session, with the engine that
 * it is of, and with the server.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import type { Limits } from '../../core/limits.ts'
import { httpFault } from '../../server/http/fault-response.ts'
import { whenOver } from '../../server/http/underway.ts'
import type { Frame } from './messages.ts'
import { console_headers } from './page-files.ts'

export const frame_every_ms = 250
/** Rates and health go on where no task changes. */
export const look_every_ms = 1_000
export const beat_every_ms = 3_000
/** Browsers open six connections to a server; further pages of a session ask instead. */
export const session_streams_max = 4
/** How long a browser waits before it connects again. */
const retry_ms = 1_000

/** The frames of a stream. */
export interface Frames {
  /** Another number once a task has changed. */
  mark(): number
  /** The first is whole. Rejects with a fault where nothing is left to show. */
  next(): Promise<Frame>
  close(): void
}

export interface Stream {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly frames: Frames
  readonly clock: Clock
  readonly limits: Limits
  /** Those of all streams: aborted when the engine or the server ends. */
  readonly readers: Set<AbortController>
  /** Whether its session goes on; `ended` is aborted when it is ended meanwhile. */
  goesOn(): boolean
  readonly ended: AbortSignal
}

/** Resolves when the stream has ended. Rejects with a fault where none can begin. */
export async function serveStream(stream: Stream): Promise<void> {
  const { request, response, frames, limits, readers, ended } = stream
  if (readers.size >= limits.readers_max) {
    throw httpFault('overloaded', `${limits.readers_max} live views are open already`)
  }
  const end = new AbortController()
  const abort = (): void => end.abort()
  readers.add(end)
  whenOver(request, response, abort)
  ended.addEventListener('abort', abort)
  try {
    const first = await frames.next()
    response.writeHead(200, {
      ...console_headers,
      ...{ 'Content-Type': 'text/event-stream; charset=utf-8', Connection: 'close' },
      // A proxy that collects what it passes on would hold the frames back.
      'X-Accel-Buffering': 'no',
    })
    if (request.method !== 'HEAD') {
      response.write(`retry: ${retry_ms}\n\n${eventOf('frame', JSON.stringify(first))}`)
      await sendFrames(stream, textOf(first), end.signal)
    }
  } finally {
    readers.delete(end)
    ended.removeEventListener('abort', abort)
  }
  response.end()
}

async function sendFrames(stream: Stream, first: string, signal: AbortSignal): Promise<void> {
  const { response, frames, clock, limits } = stream
  const began_ms = clock.now_ms()
  let sent = first
  let mark = frames.mark()
  const at_ms = { looked: began_ms, wrote: began_ms, had_room: began_ms }
  for (;;) {
    await wait(clock, frame_every_ms, signal)
    if (signal.aborted || !stream.goesOn()) return
    const now_ms = clock.now_ms()
    if (response.writableNeedDrain) {
      if (now_ms - at_ms.had_room < limits.reader_stalled_ms_max) continue
      response.req.socket.destroy()
      return
    }
    at_ms.had_room = now_ms
    const now_mark = frames.mark()
    if (now_mark !== mark || now_ms - at_ms.looked >= look_every_ms) {
      mark = now_mark
      at_ms.looked = now_ms
      const frame = await frames.next()
      const text = textOf(frame)
      if (signal.aborted) return
      if (text !== sent) {
        sent = text
        at_ms.wrote = now_ms
        response.write(eventOf('frame', JSON.stringify(frame)))
      }
    }
    if (now_ms - at_ms.wrote >= beat_every_ms) {
      at_ms.wrote = now_ms
      response.write(eventOf('beat', '{}'))
    }
  }
}

/** By which two frames are compared: all but when they were made. */
function textOf(frame: Frame): string {
  return JSON.stringify(frame, (name, value) => (name === 'at_ms' ? undefined : value))
}

const eventOf = (name: string, data: string): string => `event: ${name}\ndata: ${data}\n\n`

function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      disarm()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const disarm = clock.wake_at(clock.now_ms() + ms, done)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
