/**
 * The rpcs of one message each: who is it, ops, the engine, a message. An op that fails alone fails
 * its call with the op's own status; one that fails in a batch is a result there.
 */
import type { handleUnaryCall, sendUnaryData } from '@grpc/grpc-js'
import { fault, type OpFaultCode } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { OpResult } from '../../core/model.ts'
import { admit, type Door } from './door.ts'
import { failedStatus } from './fault-response.ts'
import type { Answer, Gates } from './interceptor.ts'
import { explained, type RawOps, readBatch, readOps } from './message-ops.ts'
import {
  type Batch,
  type KindMessage,
  readApplyOps,
  readCreate,
  readModify,
  readShow,
} from './request-messages.ts'
import { addressAnswer, resultsAnswer, taskAnswer } from './response-messages.ts'

/** How the message of an rpc becomes ops, and results its answer. Both throw what refuses it. */
interface Unary<Message> {
  /** Throws where the bytes are no such message. */
  read(bytes: Buffer, ops_max: number): Message
  ops(message: Message, limits: Limits): RawOps
  answer(results: readonly OpResult[], message: Message): Buffer
}

const batch: Unary<Batch> = {
  read: readApplyOps,
  ops: readBatch,
  answer: (results, { ops }) => resultsAnswer(ops, results),
}

function alone(answer: (result: OpResult) => Buffer): Omit<Unary<KindMessage>, 'read'> {
  return {
    ops: (kind, limits) => readOps([{ id: '', kind }], limits),
    answer: (results) => answer(onlyGood(results)),
  }
}

/** An rpc whose requests are read and whose answers are bytes (see serve). */
export interface UnaryRpc {
  read(bytes: Buffer, ops_max: number): unknown
  handler(door: Door, gates: Gates): handleUnaryCall<unknown, Answer>
}

/** By the name of the rpc. */
export const unary_rpcs: Readonly<Record<string, UnaryRpc>> = {
  CreateTask: rpcOf({ ...alone(addressAnswer), read: readCreate }),
  ModifyTask: rpcOf({ ...alone(addressAnswer), read: readModify }),
  GetTask: rpcOf({ ...alone(taskAnswer), read: readShow }),
  ApplyOps: rpcOf(batch),
}

function rpcOf<Message>(unary: Unary<Message>): UnaryRpc {
  return {
    read: unary.read,
    handler: (door, gates) => handlerOf(door, gates, unary) as handleUnaryCall<unknown, Answer>,
  }
}

function handlerOf<Message>(
  door: Door,
  gates: Gates,
  { ops, answer }: Unary<Message>,
): handleUnaryCall<Message, Answer> {
  return (call, callback) => {
    const { who } = gates.of(call.metadata)
    const run = async (): Promise<Buffer> => {
      const caller = admit(door, who)
      const raw = ops(call.request, door.limits)
      const room = who.answers.reserve(raw.ops)
      // Whether it was read or its caller has gone: the call is over.
      call.once('cancelled', room.release)
      const bytes = answer(explained(raw, await door.engine.apply(raw.ops, caller)), call.request)
      room.set(bytes.length)
      return bytes
    }
    run().then(
      (bytes) => (callback as sendUnaryData<Answer>)(null, { bytes, onSent }),
      (thrown: unknown) => callback(failedStatus(thrown, door.onBug)),
    )
  }
}

/** The call's end tells. */
function onSent(): void {}

function onlyGood([result]: readonly OpResult[]): OpResult {
  const { proc, description } = result as OpResult
  if (proc !== 'ok') throw fault(proc as OpFaultCode, description)
  return result as OpResult
}
