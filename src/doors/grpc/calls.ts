/**
 * The rpcs of one message each: who is it, ops, the engine, a message. An op that fails alone fails
 * its call with the op's own status; one that fails in a batch is a result there.
 */
import { status } from '@grpc/grpc-js'
import { systemClock } from '../../words/clock.ts'
import { fault, type OpFaultCode } from '../../words/faults.ts'
import type { Limits } from '../../words/limits.ts'
import type { OpResult } from '../../words/model.ts'
import { addressAnswer, resultsAnswer, taskAnswer } from './answers.ts'
import type { Call, Talk } from './call.ts'
import { admit, type Door } from './door.ts'
import type { Rpc } from './gate.ts'
import type { Who } from './identity.ts'
import { explained, type RawOps, readBatch, readOps } from './ops.ts'
import {
  type Batch,
  type KindMessage,
  readApplyOps,
  readCreate,
  readModify,
  readShow,
} from './requests.ts'
import { failedCall, refusalOf } from './status.ts'

/** How the message of an rpc becomes ops, and results its answer. Both throw what refuses it. */
interface Unary<Message> {
  read(bytes: Buffer, ops_max: number): Message
  ops(message: Message, limits: Limits): RawOps
  answer(results: readonly OpResult[], message: Message): Buffer
}

const create: Unary<KindMessage> = { ...alone(addressAnswer), read: readCreate }
const modify: Unary<KindMessage> = { ...alone(addressAnswer), read: readModify }
const show: Unary<KindMessage> = { ...alone(taskAnswer), read: readShow }
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

/** By the name of the rpc. */
export function unaryCalls(door: Door): [string, Rpc<unknown>][] {
  return [
    ['CreateTask', rpcOf(door, create)],
    ['ModifyTask', rpcOf(door, modify)],
    ['GetTask', rpcOf(door, show)],
    ['ApplyOps', rpcOf(door, batch)],
  ]
}

function rpcOf<Message>(door: Door, unary: Unary<Message>): Rpc<unknown> {
  const rpc: Rpc<Message> = {
    read: (bytes) => unary.read(bytes, door.limits.ops_max),
    open: (call, who) => talkOf(door, unary, call, who),
  }
  return rpc as Rpc<unknown>
}

function talkOf<Message>(door: Door, unary: Unary<Message>, call: Call, who: Who): Talk<Message> {
  const refuse = (thrown: unknown): void => call.fail(failedCall(refusalOf(thrown, door.onBug)))
  const until_ms = systemClock.now_ms() + door.limits.request_ms_max
  // A timer of its own: in a set or list of all, what has gone would outlive its call for long.
  const stopWaiting = systemClock.wake_at(until_ms, () => refuse(fault('request_timeout')))
  let request: Message | undefined

  const answer = async (message: Message): Promise<void> => {
    try {
      const caller = admit(door, who)
      const raw = unary.ops(message, door.limits)
      const results = explained(raw, await door.engine.apply(raw.ops, caller))
      call.end(unary.answer(results, message))
    } catch (thrown) {
      refuse(thrown)
    }
  }

  call.ask()
  return {
    onMessage(message) {
      if (request !== undefined) return call.fail(not_one_message)
      request = message
      call.ask()
    },
    onEnd() {
      stopWaiting()
      if (request === undefined) return call.fail(not_one_message)
      answer(request).catch(door.onBug)
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
