/**
 * Serves the synchronous form (wire 1.12): a request creates tasks and waits for an answer to each.
 * The data of each task gains `__callback_url`, an address that takes one POST, the answer, until
 * the time-out. The end or failure of a task answers it too. The tasks outlive the request.
 */
import { mergeDocs } from '../../codec/doc-text.ts'
import { docOfBytes, docOfValue, isNumberToken, numberText } from '../../codec/json.ts'
import { isOp, parseOp, refOf } from '../../codec/op.ts'
import { parseRequest, type Timeout } from '../../codec/request-body.ts'
import { renderAnswers, type SyncAnswer } from '../../codec/response-body.ts'
import type { CreateOp, Op, OpResult } from '../../core/model.ts'
import { emitRefusedOps } from '../../core/refusals.ts'
import type { AnswerReservation } from '../../engine/requests/unread-answers.ts'
import type { SignedCaller } from './authenticate.ts'
import type { WaitEnd } from './connection.ts'
import type { Exchange } from './context.ts'
import { httpFault } from './fault-response.ts'
import { type SyncAnswerTarget, sync_path } from './path.ts'
import { reply } from './reply.ts'
import { endRequest, tracedCaller, traceRequest } from './request-trace.ts'
import { syncWaitsOf } from './sync-waits.ts'

const timeout_s_max = 60
const timed_out = 'Timeout for create task'
const gone = { proc: 'error', description: 'the task has ended and is not kept' } as const

/** Serves a verified body. Rejects with the fault to answer. */
export async function serveSync(
  exchange: Exchange,
  version: 1 | 2,
  caller: SignedCaller,
  body: Buffer,
): Promise<void> {
  const { user } = caller
  const { context, connection } = exchange
  const { engine, limits } = context
  const timeout: Timeout = { value: timeout_s_max }
  const ops = parseRequest(body, limits, timeout).map((raw) =>
    onlyCreate(parseOp(raw, engine.limits)),
  )
  const until_ms = engine.clock.now_ms() + 1000 * secondsOf(timeout)
  const sync_waits = syncWaitsOf(engine)
  sync_waits.check(ops.filter(isOp).length, limits.sync_waits_max)
  const reservation = connection.answers.reserve(ops, user)
  const answers = newAnswers(exchange, version, ops.length, reservation)
  const waits = ops.map((op, at) =>
    isOp(op) ? sync_waits.open((answer) => answers.put(at, answer)) : undefined,
  )
  const closeWaits = (): void => {
    for (const wait of waits) wait?.close()
  }
  try {
    const sent = ops.map((op, at) =>
      isOp(op) ? withAddress(op, context.public_url + sync_path + waits[at]?.token) : op,
    )
    const results = await engine.submit(sent, tracedCaller(exchange, caller))
    emitRefusedOps(engine.emit, 'http_sync', user, sent, results)
    for (const [at, result] of results.entries()) {
      if (result.is_gone) answers.put(at, gone)
      else if (result.proc === 'ok') waits[at]?.onCreated(result.obj_id as string, result.task)
      else answers.put(at, result)
    }
  } catch (thrown) {
    closeWaits()
    reservation.release()
    throw thrown
  }
  answers.sendOnce(until_ms, closeWaits)
}

interface Answers {
  /** Sets the answer to an op, once for each. */
  put(at: number, answer: SyncAnswer | OpResult): void
  /** Sends the answers once all are set, or at `until_ms`, and calls `onSent`. */
  sendOnce(until_ms: number, onSent: () => void): void
}

/** Collects the answers to the ops of a request and sends them together. */
function newAnswers(
  exchange: Exchange,
  version: 1 | 2,
  op_count: number,
  reservation: AnswerReservation,
): Answers {
  const { context, connection } = exchange
  const { answer_bytes_max } = context.limits
  const answers: (SyncAnswer | OpResult | undefined)[] = Array(op_count).fill(undefined)
  let missing = op_count
  let bytes = 0
  let onComplete = (): void => {}

  function fits({ data_text }: { readonly data_text: string }): boolean {
    const more_bytes = Buffer.byteLength(data_text)
    if (bytes + more_bytes > answer_bytes_max || !reservation.add(more_bytes)) return false
    bytes += more_bytes
    return true
  }

  function put(at: number, answer: SyncAnswer | OpResult): void {
    const description = `Answer size is over ${answer_bytes_max} bytes`
    const is_large = 'data_text' in answer && !fits(answer)
    answers[at] = is_large ? { proc: 'answer_too_large', description } : answer
    if (--missing === 0) onComplete()
  }

  function sendOnce(until_ms: number, onSent: () => void): void {
    const end = (how: WaitEnd): void => {
      connection.waiting.delete(end)
      disarm()
      onSent()
      if (how === 'closed') {
        endRequest(exchange, undefined, 'connection_closed')
        reservation.release()
        return
      }
      const description = how === 'draining' ? 'shutting_down' : timed_out
      const given = answers.map((answer) => answer ?? ({ proc: 'error', description } as const))
      reply(exchange, 200, renderAnswers(version, given), reservation)
    }
    const disarm = context.engine.clock.wake_at(until_ms, () => end('late'))
    onComplete = () => end('complete')
    connection.waiting.add(end)
    if (connection.socket.destroyed) end('closed')
    else if (missing === 0) end('complete')
    else if (context.draining) end('draining')
  }

  return { put, sendOnce }
}

/** Takes the answer to a create: an object, as JSON. Rejects with the fault to answer. */
export async function serveSyncAnswer(
  exchange: Exchange,
  target: SyncAnswerTarget,
  body: Buffer,
): Promise<void> {
  const { engine, limits } = exchange.context
  const { nesting_max, body_values_max: values_max } = limits
  const { text } = docOfBytes(body, { nesting_max, values_max })
  if (!syncWaitsOf(engine).answer(target.token, text)) throw httpFault('not_found')
  traceRequest(exchange, target)
  reply(exchange, 200, '{"request_proc":"ok"}')
}

/** A create, or the result that refuses any other op. */
function onlyCreate(op: Op | OpResult): CreateOp | OpResult {
  if (!isOp(op) || op.type === 'create') return op
  const { type, id_text, ref } = op
  const id = id_text === undefined ? {} : { id_text }
  const why = { proc: 'error', description: 'bad type', key: 'type' } as const
  return { type, ...id, ...refOf(ref), obj: 'task', ...why }
}

/** Two creates are the same by their data as sent, without the address. */
function withAddress(op: CreateOp, url: string): CreateOp {
  return { ...op, data: mergeDocs(op.data, docOfValue({ __callback_url: url })), identity: op.data }
}

function secondsOf({ value }: Timeout): number {
  const is_number = typeof value === 'number' || isNumberToken(value)
  const seconds = is_number ? Number(numberText(value)) : 0
  if (seconds >= 1 && seconds <= timeout_s_max) return seconds
  throw httpFault('format_error', `'timeout' is a number of seconds from 1 to ${timeout_s_max}`)
}
