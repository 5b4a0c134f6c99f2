/**
 * `GET /healthz` and `GET /readyz`, for probes. The first is 200 as long as the process answers at
 * all. It never asks the disk: killing a process for a slow disk would only make things worse.
 * The second is 503 while the engine cannot do its work, with the reasons for callers who may read;
 * of the nodes of a cluster the owner alone is ready. `/readyz?stale` is for balancers of readers:
 * a standby that answers reads is ready too.
 */
import {
  commitLogError,
  lagOf,
  type NodeStatus,
  notOwnerText,
  positionLagOf,
} from '../../cluster/node/status.ts'
import { health_checks } from '../../core/health-checks.ts'
import { version } from '../../core/version.ts'
import type { ReadyCheck } from '../../engine/api/statistics-api.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { type OperatorExchange, reply } from './exchange.ts'

export function serveHealth({ response }: OperatorExchange): void {
  reply(response, 200, { ok: true, version, uptime_s: uptime_s() })
}

export async function serveReady({ context, ...exchange }: OperatorExchange): Promise<void> {
  const { engine, draining } = context
  const status = context.node?.status()
  const ready = await (engine?.ready() ?? { version, uptime_s: uptime_s(), checks: {} })
  const reader = exchange.query.has('stale') && engine === undefined ? context.reader : undefined
  const closed = engine === undefined && status && { open: notOk(notOwnerText(status)) }
  const checks = {
    ...ready.checks,
    ...(reader === undefined ? closed : { reads: readsCheck(reader) }),
    ...(draining && { open: notOk(health_checks.open.listener) }),
    ...(status?.unfit && { key: notOk(status.unfit) }),
    ...(status && reader === undefined && { commit_log: commitLogCheck(status) }),
  }
  const ok = Object.values(checks).every((check) => check.ok)
  const details = exchange.is_trusted ? { ...(status && nodeFields(status)), checks } : {}
  const role = status && { role: status.role }
  reply(exchange.response, ok ? 200 : 503, { ...ready, ok, ...role, checks: undefined, ...details })
}

function commitLogCheck(status: NodeStatus): ReadyCheck {
  const error = commitLogError(status)
  return error === undefined ? { ok: true } : notOk(error)
}

/** An old state is read too, unless it is older than may be. */
function readsCheck(reader: ServedEngine): ReadyCheck {
  return reader.health() === 'ok' ? { ok: true } : notOk(health_checks.reads.too_old)
}

function nodeFields(status: NodeStatus): object {
  const { node, owner, epoch, seq, unfit } = status
  const lag = { lag_s: lagOf(status) ?? null, lag: positionLagOf(status) ?? null }
  return { node, owner: owner ?? null, epoch, position: seq, ...lag, ...(unfit && { unfit }) }
}

function notOk(reason: string): ReadyCheck {
  return { ok: false, reason }
}

function uptime_s(): number {
  return Math.floor(process.uptime())
}
