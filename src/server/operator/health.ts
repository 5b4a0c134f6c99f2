/**
 * `GET /healthz`: 200, or 503 with the code of the fault for which ops are refused now, as the
 * signed HTTP server answers it.
 */
import type { OperatorExchange } from './exchange.ts'
import { reply } from './reply.ts'

export function serveHealth({ context, response }: OperatorExchange): void {
  const health = context.engine.health()
  reply(response, health === 'ok' ? 200 : 503, { request_proc: health })
}
