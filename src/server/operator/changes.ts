/**
 * `GET /changes`: the feed of committed changes as server-sent events. An event's id is the
 * position after the change, so a browser continues there with its Last-Event-ID.
 *
 * The next change is taken from the feed only once the connection has room, so a stalled reader
 * holds the changes of one page; after `reader_stalled_ms_max` its connection ends.
 */
import type { ServerResponse } from 'node:http'
import { nextTurn, systemClock } from '../../core/clock.ts'
import { type Fault, isFault } from '../../core/faults.ts'
import type { ChangesOptions, TaskChange } from '../../engine/api/change-api.ts'
import { httpFault } from '../http/fault-response.ts'
import { whenOver } from '../http/underway.ts'
import { answer_headers, type OperatorExchange, openEngineOf } from './exchange.ts'

const stream_headers = {
  ...answer_headers,
  'Content-Type': 'text/event-stream; charset=utf-8',
  // A feed ends with its connection.
  Connection: 'close',
} as const

/** How long a browser waits before it reconnects. */
const retry_ms = 1_000

/** Rejects with the fault that prevents the feed. */
export async function serveChanges(exchange: OperatorExchange): Promise<void> {
  const { context, request, response } = exchange
  const { limits, feeds } = context
  const engine = openEngineOf(context)
  const wanted = wantedChanges(exchange)
  if (feeds.size >= limits.readers_max) {
    throw httpFault('overloaded', `${limits.readers_max} others read changes`)
  }
  const end = new AbortController()
  const { signal } = end
  const changes = engine.changes({ ...wanted, signal })
  let stopBeats = (): void => {}
  feeds.add(end)
  whenOver(request, response, () => end.abort())
  try {
    let next = changes.next()
    const begun = next.catch((error: unknown) => error)
    // A feed that cannot begin has been refused by then; the first change may come much later.
    const refused = await Promise.race([begun, engine.flush().then(nextTurn)])
    if (isFault(refused) && refused.code !== 'changes_gone') throw refused
    response.writeHead(200, stream_headers)
    if (request.method !== 'HEAD') {
      response.write(`retry: ${retry_ms}\n\n`)
      stopBeats = startBeats(response, limits.reader_beat_ms)
      for (let one = await next; one.done !== true; one = await next) {
        if (!response.write(eventOf(one.value))) {
          await untilRead(response, signal, limits.reader_stalled_ms_max)
        }
        next = changes.next()
      }
    }
  } catch (error) {
    if (!response.headersSent || !isFault(error)) throw error
    response.write(lastEventOf(error))
  } finally {
    stopBeats()
    feeds.delete(end)
    end.abort()
  }
  response.end()
}

/** The options of the query and the Last-Event-ID. Throws a fault that names a mistake. */
function wantedChanges({ request, query }: OperatorExchange): ChangesOptions {
  for (const name of query.keys()) {
    if (!['from', 'conv_id', 'data'].includes(name)) {
      throw httpFault('bad_request', `${name}: changes are asked for by from, conv_id and data=1`)
    }
  }
  const data = query.get('data') ?? '0'
  if (data !== '0' && data !== '1') throw httpFault('bad_request', 'data: 1, or 0')
  const last_id = request.headers['last-event-id'] as string | undefined
  const from = last_id ?? query.get('from')
  const conv_id = query.get('conv_id')
  return {
    data: data === '1',
    ...(from === null || from === '' ? {} : { from }),
    ...(conv_id === null ? {} : { conv_id }),
  }
}

function eventOf(change: TaskChange): string {
  const { task, ...members } = change
  let json = JSON.stringify(members)
  if (task !== undefined) {
    // The stored text keeps the exact numbers.
    const head = JSON.stringify(task, task_members).slice(0, -1)
    json = `${json.slice(0, -1)},"task":${head},"data":${task.data_text}}}`
  }
  return `id: ${change.position}\ndata: ${json}\n\n`
}

/** Of Task without data and history; the last two are of status_details. */
const task_members = [
  ...['obj_id', 'conv_id', 'ref', 'ref_is_number', 'status', 'status_details', 'user_id'],
  ...['create_time_ms', 'change_time_ms', 'node_id', 'node_prev_id', 'tag', 'description'],
]

/** `gone` if changes after the reader's position are no longer kept. */
function lastEventOf({ code, message: description }: Fault): string {
  const event = code === 'changes_gone' ? 'gone' : 'fault'
  return `event: ${event}\ndata: ${JSON.stringify({ error: code, description })}\n\n`
}

/** Resolves once the connection has room or has ended; ends it after `ms_max`. */
function untilRead(response: ServerResponse, signal: AbortSignal, ms_max: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      disarm()
      response.off('drain', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const disarm = systemClock.wake_at(systemClock.now_ms() + ms_max, () =>
      response.req.socket.destroy(),
    )
    response.on('drain', done)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}

/** Sends comments regularly, so that both sides detect a lost connection. */
function startBeats(response: ServerResponse, beat_ms: number): () => void {
  let disarm = (): void => {}
  const arm = (): void => {
    disarm = systemClock.wake_at(systemClock.now_ms() + beat_ms, () => {
      if (response.writableLength === 0) response.write(':\n\n')
      arm()
    })
  }
  arm()
  return () => disarm()
}
