/**
 * `GET /healthz` and `GET /readyz`, for probes. The first is 200 as long as the process answers at
 * all, and asks nothing of the disk: whoever kills a process for it would only make things worse.
 * The second is 503 while the engine cannot do its work, with the reasons for those who may read.
 */
import { version } from '../../core/version.ts'
import type { OperatorExchange } from './exchange.ts'
import { reply } from './reply.ts'

export function serveHealth({ response }: OperatorExchange): void {
  reply(response, 200, { ok: true, version, uptime_s: Math.floor(process.uptime()) })
}

export async function serveReady(exchange: OperatorExchange): Promise<void> {
  const { context, response, is_trusted } = exchange
  const { checks, ...ready } = await context.engine.ready()
  const ok = ready.ok && !context.draining
  const open = context.draining ? { ok: false, reason: 'this listener shuts down' } : checks.open
  const told = is_trusted ? { checks: { ...checks, open } } : {}
  reply(response, ok ? 200 : 503, { ...ready, ok, ...told })
}
