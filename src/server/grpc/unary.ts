/**
 * The unary rpcs: decode the request, apply its ops, encode the response. In CreateTask, ModifyTask
 * and GetTask the fault of the op becomes the status of the call; in ApplyOps it is one of the
 * results.
 */
import type { handleUnaryCall } from '@grpc/grpc-js'
import { fault, type OpFaultCode } from '../../core/faults.ts'
import type { Op, OpResult } from '../../core/model.ts'
import { authenticate } from './authenticate.ts'
import { faultStatus } from './fault-response.ts'
import type { ContextOf, EncodedResponse, ServerContext } from './interceptor.ts'
import { readBatch, readOps } from './message-ops.ts'
import {
  type Batch,
  type KindMessage,
  readApplyOps,
  readCreate,
  readModify,
  readShow,
} from './request-messages.ts'
import { encodeAddress, encodeResults, encodeTask } from './response-messages.ts'

/** How a request message becomes ops, and how results become the response. All throw Faults. */
interface Unary<Message> {
  /** Throws for malformed bytes. */
  read(bytes: Buffer, ops_max: number): Message
  ops(message: Message, context: ServerContext): (Op | OpResult)[]
  encode(results: readonly OpResult[], message: Message): Buffer
}

const batch_rpc: Unary<Batch> = {
  read: readApplyOps,
  ops: readBatch,
  encode: (results, { ops }) => encodeResults(ops, results),
}

function singleOp(encode: (result: OpResult) => Buffer): Omit<Unary<KindMessage>, 'read'> {
  return {
    ops: (kind, context) => readOps([{ id: '', kind }], context),
    encode: (results) => encode(requireOk(results)),
  }
}

/** By rpc name. */
export const unary_rpcs: Readonly<Record<string, Unary<unknown>>> = {
  CreateTask: { ...singleOp(encodeAddress), read: readCreate },
  ModifyTask: { ...singleOp(encodeAddress), read: readModify },
  GetTask: { ...singleOp(encodeTask), read: readShow },
  ApplyOps: batch_rpc,
}

export function unaryHandler(
  context: ServerContext,
  contextOf: ContextOf,
  rpc: Unary<unknown>,
): handleUnaryCall<unknown, EncodedResponse> {
  return (call, callback) => {
    const { peer } = contextOf(call.metadata)
    const run = async (): Promise<Buffer> => {
      const caller = authenticate(context, peer)
      const ops = rpc.ops(call.request, context)
      const reservation = peer.answers.reserve(ops)
      // grpc-js emits it at the end of every call, also of a completed one.
      call.once('cancelled', reservation.release)
      const bytes = rpc.encode(await context.engine.submit(ops, caller), call.request)
      reservation.set(bytes.length)
      return bytes
    }
    run().then(
      (bytes) => callback(null, { bytes, onSent }),
      (thrown: unknown) => callback(faultStatus(thrown, context.onBug)),
    )
  }
}

/** The `cancelled` event releases the reservation instead. */
function onSent(): void {}

/** The result of the single op. Throws its fault. */
function requireOk([result]: readonly OpResult[]): OpResult {
  const { proc, description } = result as OpResult
  if (proc !== 'ok') throw fault(proc as OpFaultCode, description)
  return result as OpResult
}
