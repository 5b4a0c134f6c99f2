/**
 * The rpcs of one message each: who is it, ops, the engine, a message. An op that fails alone fails
 * its call with the op's own status; one that fails in a batch is a result there.
 */
import { type handleUnaryCall, status } from '@grpc/grpc-js'
import { systemClock } from '../../words/clock.ts'
import { fault, type OpFaultCode } from '../../words/faults.ts'
import type { Limits } from '../../words/limits.ts'
import type { OpResult } from '../../words/model.ts'
import { admit, type Door } from './door.ts'
import type { Call, Opening } from './gate.ts'
import type { TaskServiceHandlers } from './generated/conveyor/v1/TaskService.ts'
import type { Who } from './identity.ts'
import { explained, type RawOps, readBatch, readOps, resultMessages, taskMessage } from './ops.ts'
import { failedCall, okCall, refusalOf } from './status.ts'

/** How the message of an rpc becomes ops, and results its answer. Both throw what refuses it. */
interface Unary<Request, Response> {
  ops(request: Request, limits: Limits): RawOps
  answer(results: readonly OpResult[], request: Request): Response
}

type UnaryOf<Handler> =
  Handler extends handleUnaryCall<infer Request, infer Response> ? Unary<Request, Response> : never

type UnaryName = 'CreateTask' | 'ModifyTask' | 'GetTask' | 'ApplyOps'

const rpcs: { readonly [Name in UnaryName]: UnaryOf<TaskServiceHandlers[Name]> } = {
  CreateTask: {
    ops: (create, limits) => readOps([{ id: '', kind: 'create', create }], limits),
    answer: (results) => address(onlyGood(results)),
  },
  ModifyTask: {
    ops: (modify, limits) => readOps([{ id: '', kind: 'modify', modify }], limits),
    answer: (results) => address(onlyGood(results)),
  },
  GetTask: {
    ops: (show, limits) => readOps([{ id: '', kind: 'show', show }], limits),
    answer(results) {
      const { task } = onlyGood(results)
      return task === undefined ? {} : { task: taskMessage(task) }
    },
  },
  ApplyOps: {
    ops: readBatch,
    answer: (results, { ops }) => ({ results: resultMessages(ops, results) }),
  },
}

/** By the name of the rpc. */
export function unaryCalls(door: Door): [string, Opening][] {
  return Object.entries(rpcs).map(([name, rpc]) => [
    name,
    (call, who) => talkOf(door, rpc as Unary<unknown, unknown>, call, who),
  ])
}

function talkOf(
  door: Door,
  rpc: Unary<unknown, unknown>,
  call: Call,
  who: Who,
): ReturnType<Opening> {
  const refuse = (thrown: unknown): void =>
    call.sendStatus(failedCall(refusalOf(thrown, door.onBug)))
  const until_ms = systemClock.now_ms() + door.limits.request_ms_max
  // A timer of its own: in a set or list of all, what has gone would outlive its call for long.
  const stopWaiting = systemClock.wake_at(until_ms, () => refuse(fault('request_timeout')))
  let request: unknown

  const answer = async (): Promise<void> => {
    try {
      const caller = admit(door, who)
      const raw = rpc.ops(request, door.limits)
      const results = explained(raw, await door.engine.apply(raw.ops, caller))
      call.sendMessage(rpc.answer(results, request), () => call.sendStatus(okCall))
    } catch (thrown) {
      refuse(thrown)
    }
  }

  call.startRead()
  return {
    onMessage(message) {
      if (request !== undefined) return call.sendStatus(not_one_message)
      request = message
      call.startRead()
    },
    onEnd() {
      stopWaiting()
      if (request === undefined) return call.sendStatus(not_one_message)
      answer().catch(door.onBug)
    },
    onOver: stopWaiting,
  }
}

/** As gRPC has it for a call that is not of the shape of its rpc. */
const not_one_message = { code: status.UNIMPLEMENTED, details: 'this rpc takes one message' }

function onlyGood([result]: readonly OpResult[]): OpResult {
  const { proc, description } = result as OpResult
  if (proc !== 'ok') throw fault(proc as OpFaultCode, description)
  return result as OpResult
}

function address({ ref, obj_id = '' }: OpResult): { ref?: string; obj_id: string } {
  return ref === null ? { obj_id } : { ref, obj_id }
}
