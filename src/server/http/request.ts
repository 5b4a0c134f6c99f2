/**
 * Serves one request: checks the head, reads the body, verifies the signature, parses the ops,
 * submits them to the engine and writes the results. Anything thrown by a step becomes one
 * response.
 */

import { bytesOf } from '../../codec/json.ts'
import { isOtherOp, parseOp } from '../../codec/op.ts'
import { parseRequest } from '../../codec/request-body.ts'
import { renderResults } from '../../codec/response-body.ts'
import type { Caller, Op, OpResult } from '../../core/model.ts'
import { emitRefusedOps } from '../../core/refusals.ts'
import type { AnswerReservation } from '../../engine/requests/unread-answers.ts'
import { authenticate } from './authenticate.ts'
import { readBody } from './body.ts'
import { announcedBytes, checkHead, healthOf } from './check-head.ts'
import type { Exchange } from './context.ts'
import { httpFault } from './fault-response.ts'
import type { BodyTarget, FileTarget, OpsTarget } from './path.ts'
import { reply, replyFault } from './reply.ts'
import { tracedCaller, traceRequest } from './request-trace.ts'
import { serveSync, serveSyncAnswer } from './sync-request.ts'
import { formOf } from './upload-form.ts'
import { serveCallback, serveWebhook } from './webhook-request.ts'

/** Answers a request, now or later. Never throws. */
export function answer(exchange: Exchange): void {
  try {
    const { context, connection, request, response, expects_continue } = exchange
    exchange.staleness = context.engine.staleness?.()
    const target = checkHead(context, connection, request)
    if (target.kind === 'health') {
      replyHealth(exchange)
      return
    }
    if (expects_continue) response.writeContinue()
    const reading = readBody(
      request,
      announcedBytes(request),
      context.unverified,
      (body, reason) => {
        // An idle connection must not retain its last body.
        if (connection.reading === reading) connection.reading = undefined
        if (body === undefined) replyFault(exchange, reason)
        else void serveBody(exchange, target, body)
      },
    )
    connection.reading = reading
  } catch (thrown) {
    replyFault(exchange, thrown)
  }
}

/** Answers, now or later. Never rejects. */
function serveBody(exchange: Exchange, target: BodyTarget, body: Buffer): Promise<void> {
  if (target.kind === 'signed' || target.kind === 'header_signed' || target.kind === 'service') {
    return serveOps(exchange, target, body)
  }
  return serveOther(exchange, target, body).catch((thrown) => replyFault(exchange, thrown))
}

/** Rejects with the fault to answer. */
function serveOther(
  exchange: Exchange,
  target: Exclude<BodyTarget, OpsTarget>,
  body: Buffer,
): Promise<void> {
  switch (target.kind) {
    case 'sync_answer':
      return serveSyncAnswer(exchange, target, body)
    case 'webhook':
      return serveWebhook(exchange, target, body)
    case 'callback':
      return serveCallback(exchange, target, body)
    case 'file':
      return serveFile(exchange, target, body)
  }
}

async function serveOps(exchange: Exchange, target: OpsTarget, sent: Buffer): Promise<void> {
  const { context, request } = exchange
  const { engine, limits } = context
  let reservation: AnswerReservation | undefined
  try {
    const { headers } = request
    const is_upload = target.kind === 'service' && target.service === 'upload'
    const form = is_upload ? formOf(headers['content-type'], sent) : undefined
    const signed = [target, headers, sent, form?.signedText] as const
    const caller = authenticate(engine, limits.window_ms / 1_000, ...signed)
    const { user } = caller
    traceRequest(exchange, target)
    engine.checkRate(user)
    const body = form === undefined ? sent : form.body()
    if (context.is_sync) return await serveSync(exchange, target.version, caller, body)
    const raw_ops = parseRequest(body, limits)
    const ops = raw_ops.map((raw) => parseOp(raw, engine.limits))
    reservation = exchange.connection.answers.reserve(ops, user)
    if (target.kind === 'service' || raw_ops.some(isOtherOp)) {
      const text = await answerOthers(exchange, target, caller, ops, body)
      if (!reservation.add(bytesOf(text))) throw httpFault('overloaded')
      return reply(exchange, 200, text, reservation)
    }
    const results = await engine.submit(ops, tracedCaller(exchange, caller))
    emitRefusedOps(engine.emit, 'http', user, ops, results)
    reply(exchange, 200, renderResults(target.version, results), reservation)
  } catch (thrown) {
    reservation?.release()
    replyFault(exchange, thrown)
  }
}

/** The answer to a request with such an op; their module is loaded when the first one arrives. */
async function answerOthers(
  exchange: Exchange,
  target: OpsTarget,
  caller: Caller,
  ops: readonly (Op | OpResult)[],
  body: Buffer,
): Promise<string> {
  const management = await import('../../management/requests.ts')
  const { version } = target
  const at = target.kind === 'service' ? target.service : 'json'
  const request = { server: 'http', version, caller, ops, body, at } as const
  return management.answerOthers(exchange.context.engine, request)
}

/** Rejects with the fault to answer: `not_found` for all that this user may not download. */
async function serveFile(exchange: Exchange, target: FileTarget, body: Buffer): Promise<void> {
  const { engine, limits } = exchange.context
  const caller = authenticate(
    ...([engine, limits.window_ms / 1_000, target, exchange.request.headers, body] as const),
  )
  traceRequest(exchange, target)
  const reservation = exchange.connection.answers.reserve(one_show, caller.user)
  try {
    const { fileContent } = await import('../../management/downloads.ts')
    const file = await fileContent(engine, target, caller)
    if (file === undefined) throw httpFault('not_found')
    if (!reservation.add(Buffer.byteLength(file.content))) throw httpFault('overloaded')
    reply(exchange, 200, file.content, reservation, file.content_type)
  } catch (thrown) {
    reservation.release()
    throw thrown
  }
}

const one_show = [{ type: 'show' }] as const

/** 200, or 503 with the fault code that signed requests get; a standby is never ready for all. */
function replyHealth(exchange: Exchange): void {
  const { context } = exchange
  const code = healthOf(context)
  const is_locked = code === 'ok' && context.engine.keyState().problem !== undefined
  const of_owner = code === 'ok' && exchange.staleness !== undefined ? 'overloaded' : code
  const health = is_locked ? 'store_failed' : of_owner
  reply(exchange, health === 'ok' ? 200 : 503, `{"request_proc":"${health}"}`)
}
