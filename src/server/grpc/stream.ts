/**
 * StreamOps: batches applied in the order sent, several under way at once, answered in the same
 * order (wire 2).
 *
 * A batch is under way from when it is read until its answer is written, which it is not while the
 * caller does not read. While `grpc_batches_max` of them, a message's worth of bytes or half of
 * what the engine's queue takes are under way nothing more is read, and the caller's own window
 * fills up; so no stream alone has other callers refused. Where the queue is full all the same, a
 * batch waits at its place instead of being refused, and those behind it wait too.
 *
 * A stream ends when the caller is done, when the server drains, when it is too old, or when its
 * caller is no longer let in. What was begun is answered first; what was not is not applied.
 */
import type { handleBidiStreamingCall, ServerDuplexStream } from '@grpc/grpc-js'
import { systemClock } from '../../core/clock.ts'
import { fault, isFault } from '../../core/faults.ts'
import type { Caller, Op, OpResult } from '../../core/model.ts'
import type { AnswerReservation } from '../../engine/unread-answers.ts'
import { faultStatus, publicFault } from './fault-response.ts'
import {
  authenticate,
  type CallContext,
  type ContextOf,
  type EncodedResponse,
  type ServerContext,
} from './interceptor.ts'
import { readBatch } from './message-ops.ts'
import type { StreamBatch } from './request-messages.ts'
import { encodeStreamResponse } from './response-messages.ts'

export function streamHandler(
  context: ServerContext,
  contextOf: ContextOf,
): handleBidiStreamingCall<StreamBatch, EncodedResponse> {
  return (call) => {
    const { onMessage, onEnd, onOver } = openStream(context, call, contextOf(call.metadata))
    call.on('data', onMessage)
    call.on('end', onEnd)
    call.on('cancelled', onOver)
  }
}

interface UnderWay {
  readonly batch: StreamBatch
  bytes: number
  /** Whether it found the engine's queue full the last time. */
  is_full: boolean
  /** The engine has given it a place or refused it. */
  is_taken: boolean
  /** What the engine is given. */
  ops: (Op | OpResult)[] | undefined
  /** As it goes out. */
  answer: Buffer | undefined
  /** For the answer, until it is written. */
  room: AnswerReservation | undefined
}

const queue_full_ms = 20

function openStream(
  context: ServerContext,
  call: ServerDuplexStream<StreamBatch, EncodedResponse>,
  { peer, pull }: CallContext,
) {
  const { limits } = context
  /** Read and not yet answered. */
  const all = new Set<UnderWay>()
  /** Not yet handed to the engine. */
  const waiting: UnderWay[] = []
  /** Taken by the engine and not yet answered; the first to answer first. */
  const begun: UnderWay[] = []
  let ops = 0
  let bytes = 0
  let is_pumping = false
  let state: 'open' | 'ending' | 'over' = 'open'
  /** Why nothing more is taken; undefined where the caller is done. */
  let reason: unknown

  const isFull = (): boolean =>
    all.size >= limits.grpc_batches_max ||
    bytes >= limits.body_bytes_max ||
    2 * ops >= limits.queue_ops_max
  const hold = (one: UnderWay, more_bytes: number): void => {
    one.bytes += more_bytes
    bytes += more_bytes
  }
  const letGo = (one: UnderWay): void => {
    if (!all.delete(one)) return
    one.room?.release()
    ops -= one.batch.ops.length
    bytes -= one.bytes
    if (!isFull()) pull()
    finish()
  }

  const stop = (why: unknown): void => {
    if (state === 'over' || reason !== undefined) return
    state = 'ending'
    reason = why
    for (const one of waiting.splice(0)) letGo(one)
    finish()
  }
  const isGivenUp = (): boolean => state === 'over' || reason !== undefined
  const finish = (): void => {
    if (state !== 'ending' || all.size > 0) return
    leave()
    if (reason === undefined) call.end()
    else call.emit('error', faultStatus(reason, context.onBug))
  }
  const leave = (): void => {
    state = 'over'
    waiting.length = 0
    for (const { room } of all) room?.release()
    context.drain_callbacks.delete(drain)
    cancelAge()
  }
  const drain = (): void => stop(fault('shutting_down'))
  const cancelAge = systemClock.wake_at(systemClock.now_ms() + limits.grpc_age_ms_max, () =>
    stop(fault('shutting_down', 'this call has gone on for long enough: make another')),
  )

  const pump = async (): Promise<void> => {
    if (is_pumping) return
    is_pumping = true
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      try {
        await begin(one)
      } catch (thrown) {
        stop(thrown)
      }
      if (!one.is_taken) letGo(one)
      else if (begun.push(one) === 1) answerBegun()
    }
    is_pumping = false
  }
  /**
   * Resolves once the engine has given the batch a place, in which what is handed over later stands
   * behind it, or has refused it as a whole. Not taken is one whose stream was given up before;
   * throws where the caller is no longer let in.
   */
  const begin = async (one: UnderWay): Promise<void> => {
    const until_ms = systemClock.now_ms() + limits.request_ms_max
    while (!isGivenUp()) {
      one.is_full = false
      hand(one, authenticate(context, peer), until_ms)
      // What the engine refuses at once is told before this goes on.
      await undefined
      one.is_taken = !one.is_full
      if (one.is_taken) return
      await new Promise<void>((resolve) => {
        systemClock.wake_at(systemClock.now_ms() + queue_full_ms, resolve)
      })
    }
  }
  const hand = (one: UnderWay, caller: Caller, until_ms: number): void => {
    const { batch } = one
    const answer = (results: () => readonly OpResult[]): void => {
      one.answer = answerTo(context, batch, results)
      one.room?.set(one.answer.length)
      if (one === begun[0]) answerBegun()
    }
    const refuse = (thrown: unknown): void => {
      const waits = !one.is_taken && isQueueFull(thrown) && systemClock.now_ms() < until_ms
      if (waits) one.is_full = true
      else answer(() => fail(thrown))
    }
    try {
      one.ops ??= readBatch(batch, context)
      one.room ??= peer.answers.reserve(one.ops)
      context.engine
        .submit(one.ops, caller)
        .then((results) => answer(() => results), refuse)
        .catch(context.onBug)
    } catch (thrown) {
      refuse(thrown)
    }
  }
  /** Writes the answers that are there, up to the first that is not. */
  const answerBegun = (): void => {
    for (let one = begun[0]; one?.answer !== undefined; one = begun[0]) {
      begun.shift()
      const bytes = one.answer
      one.answer = undefined
      hold(one, bytes.length)
      if (state !== 'over') call.write({ bytes, onSent: () => letGo(one) })
    }
  }

  context.drain_callbacks.add(drain)
  return {
    onMessage(batch: StreamBatch): void {
      if (state !== 'open') return
      const one: UnderWay = {
        ...{ batch, bytes: 0, is_full: false, is_taken: false },
        ...{ ops: undefined, answer: undefined, room: undefined },
      }
      all.add(one)
      ops += batch.ops.length
      hold(one, requestBytesOf(batch))
      waiting.push(one)
      void pump()
      if (!isFull()) pull()
    },
    onEnd(): void {
      if (state === 'open') state = 'ending'
      finish()
    },
    onOver: leave,
  }
}

function isQueueFull(thrown: unknown): boolean {
  return isFault(thrown) && thrown.code === 'overloaded'
}

function fail(thrown: unknown): never {
  throw thrown
}

/** Never throws: what a batch is refused for is its answer. */
function answerTo(
  context: ServerContext,
  batch: StreamBatch,
  results: () => readonly OpResult[],
): Buffer {
  try {
    return encodeStreamResponse(batch, { proc: 'ok', description: '', results: results() })
  } catch (thrown) {
    const { code, description } = publicFault(thrown, context.onBug)
    return encodeStreamResponse(batch, { proc: code, description, results: [] })
  }
}

/** About what an op takes beside its bytes. */
const op_bytes = 256

function requestBytesOf({ ops, bytes }: StreamBatch): number {
  return ops.length * op_bytes + bytes
}
