/**
 * The checks on a request's head, before any byte of its body is read, in the order of the fault
 * table (wire 1.4). They throw and have no other effect.
 */
import type { IncomingMessage } from 'node:http'
import type { WholeFaultCode } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import { only_reads } from '../../engine/served-engine.ts'
import { hasCapacity, tooLarge } from './body.ts'
import type { Connection } from './connection.ts'
import type { ServerContext } from './context.ts'
import { httpFault } from './fault-response.ts'
import type { BodyTarget, HealthTarget, Target } from './path.ts'
import { syncWaitsOf } from './sync-waits.ts'

/** The target of a request whose body may be read. Throws the first fault that applies. */
export function checkHead(
  context: ServerContext,
  connection: Connection,
  request: IncomingMessage,
): BodyTarget | HealthTarget {
  const { headers } = request
  checkPipelined(context, connection)
  checkFraming(context.limits, request)
  const target = context.route(request)
  if (isForOwner(context, target)) throw httpFault('overloaded', only_reads)
  if (target === undefined || isGone(context, target)) throw httpFault('not_found')
  if (target.kind === 'malformed') {
    throw httpFault('bad_request', target.mistakes, { closes: false })
  }
  checkMethod(target, request.method as string)
  if (target.kind === 'health') return target
  if (context.engine.staleness !== undefined && headers['conveyor-role'] === 'owner') {
    throw httpFault('shutting_down', only_reads)
  }

  const health = healthOf(context)
  if (health === 'shutting_down' || health === 'store_failed') throw httpFault(health)
  const announced_bytes = announcedBytes(request)
  const fits = announced_bytes <= context.limits.body_bytes_max
  if (connection.is_over_limit) {
    throw httpFault('overloaded', 'too many connections, in all or of this address')
  }
  // A body over the limit is never read; `overloaded` would make its caller retry.
  if (fits && !hasCapacity(context.unverified, announced_bytes, request)) {
    throw httpFault('overloaded', 'too many bodies not yet verified')
  }
  // Only the body shows whether a request reads, which a full disk still serves.
  if (health !== 'ok' && health !== 'no_space') throw httpFault(health)
  const encoding = headers['content-encoding']
  if (encoding !== undefined && !/^(?:identity)?$/i.test(encoding)) {
    throw httpFault('unsupported_encoding')
  }
  if (!fits) throw tooLarge(context.limits.body_bytes_max)
  return target
}

/** Whether this is an answer address without a waiting request. */
function isGone({ engine }: ServerContext, target: Target): boolean {
  return target.kind === 'sync_answer' && !syncWaitsOf(engine).isOpen(target.token)
}

/** Whether requests to this address change tasks, and a standby may not know it yet. */
function isForOwner({ engine }: ServerContext, target: Target | undefined): boolean {
  if (engine.staleness === undefined || target === undefined) return false
  return ['webhook', 'callback', 'sync_answer'].includes(target.kind)
}

/** `ok`, or the fault code with which ops are refused now. */
export function healthOf(context: ServerContext): 'ok' | WholeFaultCode {
  return context.draining ? 'shutting_down' : context.engine.health()
}

/** Whether this is a request of node's own HTTP/2, not just a request line that claims it. */
export function isHttp2(request: IncomingMessage): boolean {
  return 'stream' in request
}

/** The Content-Length, which the HTTP parser has checked; 0 without one. */
export function announcedBytes(request: IncomingMessage): number {
  return Number(request.headers['content-length'] ?? 0)
}

/** Bounds the memory of pipelined requests. The first of a connection always has room. */
function checkPipelined(context: ServerContext, { open_requests }: Connection): void {
  const { pipelined_max, connections_max } = context.limits
  const is_over = open_requests > pipelined_max || context.pipelined > connections_max
  if (open_requests < 2 || !is_over) return
  const text = 'too many requests were sent ahead of the answers'
  throw httpFault('overloaded', text, { closes: true })
}

function checkFraming(limits: Limits, request: IncomingMessage): void {
  if (request.rawHeaders.length > 2 * limits.header_count_max) {
    const text = `more than ${limits.header_count_max} headers`
    throw httpFault('bad_request', text, { status: 431 })
  }
  if (isHttp2(request)) return
  if (request.httpVersionMajor !== 1) throw httpFault('bad_request', 'only HTTP/1.0 and HTTP/1.1')
  // RFC 9112, 3.2. A proxy in front may have routed by the other of two Hosts.
  const hosts = hostsOf(request)
  if (hosts > 1 || (hosts === 0 && request.httpVersionMinor === 1)) {
    throw httpFault('bad_request', 'a request of HTTP/1.1 has one Host')
  }
  // HTTP/1.0 has no transfer codings, so a proxy may see another end of the body.
  const coding = request.headers['transfer-encoding']
  if (request.httpVersionMinor === 0 && coding !== undefined) {
    throw httpFault('bad_request', 'Transfer-Encoding in HTTP/1.0')
  }
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    throw httpFault('bad_request', 'Transfer-Encoding other than chunked')
  }
}

/** The number of Host headers; node keeps the first. */
export function hostsOf({ rawHeaders }: IncomingMessage): number {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  return hosts
}

function checkMethod({ kind }: BodyTarget | HealthTarget, method: string): void {
  if (kind !== 'health' && kind !== 'file') {
    if (method === 'POST') return
    const is_signed = kind === 'signed' || kind === 'header_signed' || kind === 'service'
    const text = is_signed ? 'only POST: what is signed is the body of the request' : undefined
    throw httpFault('method_not_allowed', text, { allow: 'POST' })
  }
  if (method === 'GET' || (method === 'HEAD' && kind === 'health')) return
  throw httpFault('method_not_allowed', 'only GET', { allow: 'GET, HEAD' })
}
