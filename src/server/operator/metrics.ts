/**
 * `GET /metrics`: the engine and its process for a Prometheus. Scrapes share a text that is made at
 * most once a second, so one that is never read takes no memory of its own; after
 * `reader_stalled_ms_max` its connection ends.
 */
import { systemClock } from '../../core/clock.ts'
import { whenOver } from '../http/underway.ts'
import type { OperatorExchange } from './exchange.ts'
import { answer_headers } from './reply.ts'

export async function serveMetrics(exchange: OperatorExchange): Promise<void> {
  const { context, request, response } = exchange
  const { content_type, read } = context.metrics
  const text = await read()
  const until_ms = systemClock.now_ms() + context.limits.reader_stalled_ms_max
  const disarm = systemClock.wake_at(until_ms, () => request.socket.destroy())
  whenOver(request, response, disarm)
  const headers = { 'Content-Type': content_type, 'Content-Length': text.length }
  response.writeHead(200, { ...answer_headers, ...headers })
  response.end(request.method === 'HEAD' ? undefined : text)
}
