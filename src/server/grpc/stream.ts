/**
 * StreamOps: applies batches in the order sent, several at once, and answers them in the same order
 * (wire 2).
 *
 * A batch is under way from its arrival until its answer has left. While `grpc_batches_max`
 * batches, `body_bytes_max` bytes or half of `queue_ops_max` ops are under way, no more is read and
 * flow control stops the caller, so one stream never fills the engine's queue. While the queue
 * is full, a batch is retried instead of refused, and the batches after it wait.
 *
 * A stream ends when the caller ends it, when the server drains, when it is older than
 * `grpc_age_ms_max`, or when its caller loses the right to call. Submitted batches are answered
 * first; the others are not applied.
 */
import { status } from '@grpc/grpc-js'
import { systemClock } from '../../core/clock.ts'
import { codeOf, isFault } from '../../core/faults.ts'
import type { Caller, Op, OpResult } from '../../core/model.ts'
import { emitRefusedOps } from '../../core/refusals.ts'
import type { AnswerReservation } from '../../engine/requests/unread-answers.ts'
import { authenticate, reserveAnswer } from './authenticate.ts'
import {
  end,
  endInTime,
  pull,
  type Rpc,
  type ServedCall,
  type ServerContext,
  send,
} from './call.ts'
import { type CallTrace, endCall, traceCall, tracedCaller } from './call-trace.ts'
import { endInFault, faultStatus } from './fault-response.ts'
import { keyedCaller, readBatch } from './message-ops.ts'
import { readStreamOps, type StreamBatch } from './request-messages.ts'
import { encodeStreamResponse } from './response-messages.ts'

export const stream_rpc: Rpc = {
  read: readStreamOps,
  serve: (call) => void Object.assign(call, openStream(call)),
}

interface PendingBatch {
  readonly batch: StreamBatch
  /** Of `Counters.beginRequest`. */
  readonly began_ms: number
  /** Of its request, and of its answer once it is encoded. */
  bytes: number
  /** Whether the engine's queue was full at the last attempt. */
  is_refused_as_full: boolean
  /** Whether the engine has queued or finally refused it. */
  is_submitted: boolean
  /** Set at the first attempt. */
  ops: (Op | OpResult)[] | undefined
  /** The encoded answer, until it is written. */
  answer: Buffer | undefined
  /** For the answer, until it is written. */
  reservation: AnswerReservation | undefined
  /** Until its span has ended. */
  trace: CallTrace | undefined
  /** The fault code of a refusal as a whole. */
  error: string | undefined
}

const queue_full_pause_ms = 20

function openStream(call: ServedCall): Pick<ServedCall, 'onMessage' | 'onHalfClose' | 'onOver'> {
  const { context, peer } = call
  const { limits } = context
  /** The batches under way. */
  const pending = new Set<PendingBatch>()
  /** Not yet submitted, in order. */
  const waiting: PendingBatch[] = []
  /** Submitted and not yet answered, in order. */
  const submitted: PendingBatch[] = []
  let ops = 0
  let bytes = 0
  let is_submitting = false
  let state: 'open' | 'draining' | 'over' = 'open'
  /** Why the stream is stopped; undefined where the caller ended it. */
  let reason: unknown

  const isFull = (): boolean =>
    (pending.size > 0 && context.receive_bounds.isCrowded()) ||
    pending.size >= limits.grpc_batches_max ||
    bytes >= limits.body_bytes_max ||
    2 * ops >= limits.queue_ops_max
  const countBytes = (one: PendingBatch, more_bytes: number): void => {
    one.bytes += more_bytes
    bytes += more_bytes
  }
  const remove = (one: PendingBatch): void => {
    if (!pending.delete(one)) return
    one.reservation?.release()
    endTrace(one)
    ops -= one.batch.ops.length
    bytes -= one.bytes
    call.receiving.hold(-requestBytesOf(one.batch))
    if (!isFull()) pull(call)
    endIfDone()
  }

  const stop = (why: unknown): void => {
    if (state === 'over' || reason !== undefined) return
    state = 'draining'
    reason = why
    for (const one of waiting.splice(0)) remove(one)
    endIfDone()
  }
  const isStopped = (): boolean => state === 'over' || reason !== undefined
  const endIfDone = (): void => {
    if (state !== 'draining' || pending.size > 0) return
    dispose()
    if (reason === undefined) end(call)
    else end(call, faultStatus(reason, context, { address: call.from.getPeer(), is_long: true }))
  }
  const dispose = (): void => {
    state = 'over'
    waiting.length = 0
    for (const one of pending) {
      one.reservation?.release()
      endTrace(one)
    }
    cancelEnd()
  }
  const cancelEnd = endInTime(context, stop)

  const submitWaiting = async (): Promise<void> => {
    if (is_submitting) return
    is_submitting = true
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      try {
        await submit(one)
      } catch (thrown) {
        stop(thrown)
      }
      if (!one.is_submitted) remove(one)
      else if (submitted.push(one) === 1) writeAnswers()
    }
    is_submitting = false
  }
  /**
   * Submits a batch, repeatedly while the engine's queue is full. Resolves once the engine has
   * queued or refused it, so that the next batch is queued after it; leaves it unsubmitted if the
   * stream is stopped first. Rejects where the caller may no longer call.
   */
  const submit = async (one: PendingBatch): Promise<void> => {
    const until_ms = systemClock.now_ms() + limits.request_ms_max
    while (!isStopped()) {
      one.is_refused_as_full = false
      const caller = tracedCaller(one.trace, authenticate(context, peer))
      trySubmit(one, keyedCaller(caller, one.batch), until_ms)
      // A refusal without queueing arrives within this turn.
      await undefined
      one.is_submitted = !one.is_refused_as_full
      if (one.is_submitted) return
      await new Promise<void>((resolve) => {
        systemClock.wake_at(systemClock.now_ms() + queue_full_pause_ms, resolve)
      })
    }
  }
  const trySubmit = (one: PendingBatch, caller: Caller, until_ms: number): void => {
    const { batch } = one
    const answer = (bytes: Buffer): void => {
      one.answer = bytes
      one.reservation?.set(bytes.length)
      if (one === submitted[0]) writeAnswers()
    }
    const refuse = (thrown: unknown): void => {
      const is_full = isQueueFull(thrown) && context.engine.staleness === undefined
      if (!one.is_submitted && is_full && systemClock.now_ms() < until_ms)
        one.is_refused_as_full = true
      else {
        one.error = codeOf(thrown)
        answer(encodeRefusal(context, one, thrown))
      }
    }
    try {
      one.ops ??= readBatch(batch, context)
      one.reservation ??= reserveAnswer(peer, caller, one.ops)
      context.engine
        .submit(one.ops, caller)
        .then((results) => {
          emitRefusedOps(context.engine.emit, 'grpc', caller.user, one.ops ?? [], results)
          answer(encodeAnswer(context, one, results))
        }, refuse)
        .catch(context.onBug)
    } catch (thrown) {
      refuse(thrown)
    }
  }
  /** Writes the answers that are ready, up to the first that is not. */
  const writeAnswers = (): void => {
    for (let one = submitted[0]; one?.answer !== undefined; one = submitted[0]) {
      submitted.shift()
      const bytes = one.answer
      one.answer = undefined
      countBytes(one, bytes.length)
      if (state !== 'over') send(call, bytes, () => remove(one))
    }
  }

  return {
    onMessage(message): void {
      if (state !== 'open') return
      const batch = message as StreamBatch
      const one: PendingBatch = {
        ...{ batch, began_ms: context.engine.counters.beginRequest(), bytes: 0 },
        ...{ is_refused_as_full: false, is_submitted: false },
        ...{ ops: undefined, answer: undefined, reservation: undefined },
        ...{ trace: traceCall(call), error: undefined },
      }
      pending.add(one)
      ops += batch.ops.length
      countBytes(one, requestBytesOf(batch))
      call.receiving.hold(requestBytesOf(batch))
      waiting.push(one)
      void submitWaiting()
      if (!isFull()) pull(call)
    },
    onHalfClose(): void {
      if (state === 'open') state = 'draining'
      endIfDone()
    },
    onOver: dispose,
  }
}

/** The answer of a batch has a fault of its own; the call goes on. */
function endTrace(one: PendingBatch): void {
  endCall(one.trace, status.OK, one.error)
  one.trace = undefined
}

function isQueueFull(thrown: unknown): boolean {
  return isFault(thrown) && thrown.code === 'overloaded'
}

/** Never throws: an error while encoding becomes the answer. */
function encodeAnswer(
  context: ServerContext,
  one: PendingBatch,
  results: readonly OpResult[],
): Buffer {
  try {
    const bytes = encodeStreamResponse(one.batch, { proc: 'ok', description: '', results })
    context.engine.counters.countRequest('grpc', 'ok', one.began_ms)
    return bytes
  } catch (thrown) {
    return encodeRefusal(context, one, thrown)
  }
}

function encodeRefusal(
  context: ServerContext,
  { batch, began_ms }: PendingBatch,
  thrown: unknown,
): Buffer {
  const { code, description } = endInFault(thrown, context, { began_ms })
  return encodeStreamResponse(batch, { proc: code, description, results: [] })
}

/** The estimated memory of an op beside its bytes. */
const op_bytes = 256

function requestBytesOf({ ops, bytes }: StreamBatch): number {
  return ops.length * op_bytes + bytes
}
