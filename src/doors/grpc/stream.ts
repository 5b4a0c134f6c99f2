/**
 * StreamOps: batches applied in the order sent, several under way at once, answered in the same
 * order (wire 2).
 *
 * A batch is under way from when it is read until its answer is written, which it is not while the
 * caller does not read. While `grpc_batches_max` of them, or a message's worth of bytes, are under
 * way nothing more is read, and the caller's own window fills up. Where the engine's queue is full
 * a batch waits at its place instead of being refused, and those behind it wait too.
 *
 * A stream ends when the caller is done, when the door drains, when it is too old, or when its
 * caller is no longer let in. What was begun is answered first; what was not is not applied.
 */
import type { handleBidiStreamingCall, ServerDuplexStream } from '@grpc/grpc-js'
import { systemClock } from '../../words/clock.ts'
import { fault, isFault } from '../../words/faults.ts'
import type { OpResult } from '../../words/model.ts'
import { admit, type Door } from './door.ts'
import type { StreamOpsRequest__Output as Batch } from './generated/conveyor/v1/StreamOpsRequest.ts'
import type { StreamOpsResponse as Answer } from './generated/conveyor/v1/StreamOpsResponse.ts'
import { dataBytesOf, explained, readBatch, resultMessages } from './ops.ts'
import { failedCall, refusalOf } from './status.ts'

export function streamOps(door: Door): handleBidiStreamingCall<Batch, Answer> {
  return (call) => run(door, call)
}

type Call = ServerDuplexStream<Batch, Answer>

interface UnderWay {
  readonly batch: Batch
  bytes: number
}

/** Wrapped, so that handing it on does not wait for it. */
interface Taken {
  readonly answer: Promise<Answer>
}

const queue_full_ms = 20

function run(door: Door, call: Call): void {
  const { limits } = door
  const waiting: UnderWay[] = []
  let batches = 0
  let bytes = 0
  let is_pumping = false
  let state: 'open' | 'ending' | 'over' = 'open'
  /** Why nothing more is taken; undefined where the caller is done. */
  let reason: unknown
  let answered: Promise<void> = Promise.resolve()

  const isFull = (): boolean => batches >= limits.grpc_batches_max || bytes >= limits.body_bytes_max
  const hold = (one: UnderWay, more_bytes: number): void => {
    one.bytes += more_bytes
    bytes += more_bytes
    if (isFull()) call.pause()
  }
  const letGo = (one: UnderWay): void => {
    batches--
    bytes -= one.bytes
    if (state === 'open' && !isFull()) call.resume()
    finish()
  }

  const stop = (why: unknown): void => {
    if (state === 'over' || reason !== undefined) return
    state = 'ending'
    reason = why
    call.pause()
    for (const one of waiting.splice(0)) letGo(one)
    finish()
  }
  const finish = (): void => {
    if (state !== 'ending' || batches > 0) return
    leave()
    if (reason === undefined) call.end()
    else call.emit('error', failedCall(refusalOf(reason, door.onBug)))
  }
  const leave = (): void => {
    state = 'over'
    waiting.length = 0
    door.endings.delete(drain)
    cancelAge()
  }
  const drain = (): void => stop(fault('shutting_down'))
  const cancelAge = systemClock.wake_at(systemClock.now_ms() + limits.grpc_age_ms_max, () =>
    stop(fault('shutting_down', 'this call has gone on for long enough: make another')),
  )

  const pump = async (): Promise<void> => {
    if (is_pumping) return
    is_pumping = true
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await begin(one)
    is_pumping = false
  }
  /** Resolves once the engine has taken the batch or refused it. The answer is written later. */
  const begin = async (one: UnderWay): Promise<void> => {
    let taken: Taken | undefined
    try {
      taken = await take(door, call, one.batch, () => state === 'over' || reason !== undefined)
    } catch (thrown) {
      stop(thrown)
    }
    if (taken === undefined) return letGo(one)
    const { answer } = taken
    answered = answered.then(async () => write(one, await answer)).catch(door.onBug)
  }
  const write = (one: UnderWay, answer: Answer): void => {
    hold(one, answerBytesOf(answer))
    if (state !== 'over') call.write(answer, () => letGo(one))
  }

  readNoFurtherAhead(call)
  call.on('data', (batch: Batch) => {
    const one = { batch, bytes: 0 }
    batches++
    hold(one, requestBytesOf(batch))
    waiting.push(one)
    void pump()
  })
  call.on('end', () => {
    if (state === 'open') state = 'ending'
    finish()
  })
  call.on('cancelled', leave)
  door.endings.add(drain)
  if (door.draining) drain()
}

/**
 * Hands a batch to the engine. Resolves with its answer to come once the engine has given it a
 * place, in which what is handed over later stands behind it, or has refused it as a whole.
 * Undefined where the stream was given up in between; throws where the caller is not let in.
 */
async function take(
  door: Door,
  call: Call,
  batch: Batch,
  isGivenUp: () => boolean,
): Promise<Taken | undefined> {
  const until_ms = systemClock.now_ms() + door.limits.request_ms_max
  for (;;) {
    const caller = admit(door, call)
    try {
      const raw = readBatch(batch, door.limits)
      const applied = door.engine.apply(raw.ops, caller)
      const answer = answerTo(door, batch, async () => explained(raw, await applied))
      // A refusal of the engine is there at once, and then wins this race.
      await Promise.race([applied, undefined])
      return { answer }
    } catch (thrown) {
      const is_full = isFault(thrown) && thrown.code === 'overloaded'
      if (!is_full || systemClock.now_ms() >= until_ms) {
        return { answer: answerTo(door, batch, () => Promise.reject(thrown)) }
      }
    }
    await new Promise<void>((resolve) => {
      systemClock.wake_at(systemClock.now_ms() + queue_full_ms, resolve)
    })
    if (isGivenUp()) return undefined
  }
}

/** Never rejects: what a batch is refused for is its answer. */
async function answerTo(
  door: Door,
  { seq, ops }: Batch,
  results: () => Promise<readonly OpResult[]>,
): Promise<Answer> {
  try {
    return { seq, results: resultMessages(ops, await results()), proc: 'ok', description: '' }
  } catch (thrown) {
    const { code, description } = refusalOf(thrown, door.onBug)
    return { seq, results: [], proc: code, description }
  }
}

/** About what an op takes beside its data. */
const op_bytes = 256

function requestBytesOf({ ops }: Batch): number {
  return ops.length * op_bytes + dataBytesOf(ops)
}

function answerBytesOf({ results = [] }: Answer): number {
  let bytes = 0
  for (const { task } of results) if (task) bytes += (task.data_json as Buffer).length
  return bytes
}

/** A stream of objects reads 16 of them ahead, which may be 16 messages of the largest size. */
function readNoFurtherAhead(call: Call): void {
  const { _readableState: state } = call as unknown as {
    readonly _readableState: { highWaterMark: number }
  }
  state.highWaterMark = 1
}
