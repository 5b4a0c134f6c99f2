/**
 * The rpcs of one message each: ops, the engine, a message. An op that fails alone fails
 * its call with the op's own status; one that fails in a batch is a result there.
 */
import type { handleUnaryCall, sendUnaryData } from '@grpc/grpc-js'
import { fault, type OpFaultCode } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { OpResult } from '../../core/model.ts'
import { faultStatus } from './fault-response.ts'
import {
  authenticate,
  type ContextOf,
  type EncodedResponse,
  type ServerContext,
} from './interceptor.ts'
import { explained, type RawOps, readBatch, readOps } from './message-ops.ts'
import {
  type Batch,
  type KindMessage,
  readApplyOps,
  readCreate,
  readModify,
  readShow,
} from './request-messages.ts'
import { encodeAddress, encodeResults, encodeTask } from './response-messages.ts'

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
  answer: (results, { ops }) => encodeResults(ops, results),
}

function singleOp(answer: (result: OpResult) => Buffer): Omit<Unary<KindMessage>, 'read'> {
  return {
    ops: (kind, limits) => readOps([{ id: '', kind }], limits),
    answer: (results) => answer(okResult(results)),
  }
}

/** An rpc whose requests are read and whose answers are bytes (see serve). */
export interface UnaryRpc {
  read(bytes: Buffer, ops_max: number): unknown
  handler(context: ServerContext, contextOf: ContextOf): handleUnaryCall<unknown, EncodedResponse>
}

/** By the name of the rpc. */
export const unary_rpcs: Readonly<Record<string, UnaryRpc>> = {
  CreateTask: rpcOf({ ...singleOp(encodeAddress), read: readCreate }),
  ModifyTask: rpcOf({ ...singleOp(encodeAddress), read: readModify }),
  GetTask: rpcOf({ ...singleOp(encodeTask), read: readShow }),
  ApplyOps: rpcOf(batch),
}

function rpcOf<Message>(unary: Unary<Message>): UnaryRpc {
  return {
    read: unary.read,
    handler: (context, contextOf) =>
      handlerOf(context, contextOf, unary) as handleUnaryCall<unknown, EncodedResponse>,
  }
}

function handlerOf<Message>(
  context: ServerContext,
  contextOf: ContextOf,
  { ops, answer }: Unary<Message>,
): handleUnaryCall<Message, EncodedResponse> {
  return (call, callback) => {
    const { peer } = contextOf(call.metadata)
    const run = async (): Promise<Buffer> => {
      const caller = authenticate(context, peer)
      const raw = ops(call.request, context.limits)
      const room = peer.answers.reserve(raw.ops)
      // Whether it was read or its caller has gone: the call is over.
      call.once('cancelled', room.release)
      const bytes = answer(
        explained(raw, await context.engine.apply(raw.ops, caller)),
        call.request,
      )
      room.set(bytes.length)
      return bytes
    }
    run().then(
      (bytes) => (callback as sendUnaryData<EncodedResponse>)(null, { bytes, onSent }),
      (thrown: unknown) => callback(faultStatus(thrown, context.onBug)),
    )
  }
}

/** The call's end tells. */
function onSent(): void {}

function okResult([result]: readonly OpResult[]): OpResult {
  const { proc, description } = result as OpResult
  if (proc !== 'ok') throw fault(proc as OpFaultCode, description)
  return result as OpResult
}
