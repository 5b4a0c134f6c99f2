/**
 * The rpcs with one answer: each decodes its request, runs, and encodes the response. In ApplyOps
 * the fault of an op is one of the results; elsewhere it becomes the status of the call.
 */

import { status } from '@grpc/grpc-js'
import { parseOp } from '../../codec/op.ts'
import { parseRequest } from '../../codec/request-body.ts'
import { codeOf, fault, type OpFaultCode } from '../../core/faults.ts'
import type { Caller, ModifyOp, Op, OpResult, ShowOp } from '../../core/model.ts'
import { emitRefusedOps } from '../../core/refusals.ts'
import { default_tasks_max } from '../../engine/search/search.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { authenticate, reserveAnswer } from './authenticate.ts'
import { end, endInTime, type Rpc, type ServedCall, type ServerContext, send } from './call.ts'
import { type CallTrace, endCall, traceCall, tracedCaller } from './call-trace.ts'
import { faultStatus } from './fault-response.ts'
import { keyedCaller, readBatch, readOp, readOps } from './message-ops.ts'
import {
  type Batch,
  type KindMessage,
  type ModifyMessage,
  readApplyJson,
  readApplyOps,
  readChange,
  readCreate,
  readModify,
  readShow,
} from './request-messages.ts'
import {
  encodeAction,
  encodeAddress,
  encodeJson,
  encodeResults,
  encodeTask,
} from './response-messages.ts'
import {
  encodeCounts,
  encodePage,
  queryOf,
  readCountTasks,
  readListTasks,
} from './task-messages.ts'

/** How a request message becomes ops, and how results become the response. All throw Faults. */
interface UnaryRpc<Message extends KindMessage | Batch> {
  /** Throws for malformed bytes. */
  read(bytes: Buffer, ops_max: number): Message
  ops(message: Message, context: ServerContext): (Op | OpResult)[]
  /** Default: submits them. */
  apply?(engine: ServedEngine, ops: readonly (Op | OpResult)[], caller: Caller): Promise<OpResult[]>
  encode(results: readonly OpResult[], message: Message): Buffer
  /** Refused ops are results, not a fault of the call. */
  readonly emits_refused?: true
}

const batch_rpc: UnaryRpc<Batch> = {
  read: readApplyOps,
  ops: readBatch,
  encode: (results, { ops }) => encodeResults(ops, results),
  emits_refused: true,
}

function singleOp<Message extends KindMessage>(
  read: (bytes: Buffer) => Message,
  encode: (result: OpResult, message: Message) => Buffer,
): UnaryRpc<Message> {
  return {
    read,
    ops: (kind, context) => readOps([{ id: '', kind }], context),
    encode: (results, message) => encode(requireOk(results), message),
  }
}

/** `change` uses only the target of the op. */
function taskChange(
  change: (engine: ServedEngine, op: ModifyOp, caller: Caller) => Promise<OpResult>,
): UnaryRpc<ModifyMessage> {
  return {
    ...singleOp(readChange, encodeAction),
    ops: (kind, context) => [readOp(kind, context)],
    apply: async (engine, ops, caller) => [await change(engine, ops[0] as ModifyOp, caller)],
  }
}

/** By rpc name. */
export const unary_rpcs = {
  CreateTask: unary(singleOp(readCreate, encodeAddress)),
  ModifyTask: unary(singleOp(readModify, encodeAddress)),
  GetTask: unary(
    singleOp(readShow, (result, { with_history }) => encodeTask(result, with_history)),
  ),
  ApplyOps: unary(batch_rpc),
  CancelTask: unary(taskChange((engine, op, caller) => engine.cancelTask(op, caller))),
  RetryTask: unary(taskChange((engine, op, caller) => engine.retryTask(op, caller))),
}

/** An action answers with its task, as a show does. */
const shown_task = [{ type: 'show' }] as const

function unary<Message extends KindMessage | Batch>(rpc: UnaryRpc<Message>): Rpc {
  return answering(rpc.read, async (call, message: Message, trace) => {
    const { context, peer } = call
    const caller = keyedCaller(tracedCaller(trace, authenticate(context, peer)), message)
    const ops = rpc.ops(message, context)
    const reservation = reserveAnswer(peer, caller, rpc.apply === undefined ? ops : shown_task)
    call.onOver = reservation.release
    const { engine } = context
    const results = await (rpc.apply?.(engine, ops, caller) ?? engine.submit(ops, caller))
    if (rpc.emits_refused) emitRefusedOps(engine.emit, 'grpc', caller.user, ops, results)
    const bytes = rpc.encode(results, message)
    reservation.set(bytes.length)
    return bytes
  })
}

/** An rpc that answers with the bytes of `run`, or with the status of what it throws. */
export function answering<Message>(
  read: (bytes: Buffer, ops_max: number) => Message,
  run: (call: ServedCall, message: Message, trace: CallTrace | undefined) => Promise<Buffer>,
): Rpc {
  return {
    read,
    serve(call) {
      const { context, began_ms } = call
      const trace = traceCall(call)
      run(call, call.request as Message, trace).then(
        (bytes) => {
          endCall(trace, status.OK)
          context.engine.counters.countRequest('grpc', 'ok', began_ms)
          context.answer(() => send(call, bytes, () => end(call)))
        },
        (thrown: unknown) => {
          const { conv_id } = call.request as { conv_id?: unknown }
          const refusal = faultStatus(thrown, context, {
            ...{ address: call.from.getPeer(), conv_id, began_ms },
          })
          endCall(trace, refusal.code, codeOf(thrown))
          end(call, refusal)
        },
      )
    },
  }
}

/** Ops as JSON; the module of those on processes is loaded when the first call arrives. */
export const json_rpc: Rpc = answering(readApplyJson, async (call, message, trace) => {
  const { context, peer } = call
  const { engine } = context
  const caller = keyedCaller(tracedCaller(trace, authenticate(context, peer)), message)
  const body = message.body_json
  const ops = parseRequest(body, engine.limits).map((raw) => parseOp(raw, engine.limits))
  const reservation = reserveAnswer(peer, caller, ops)
  call.onOver = reservation.release
  const management = await import('../../management/requests.ts')
  const request = { server: 'grpc', version: 2, caller, ops, body } as const
  const text = await management.answerOthers(engine, request)
  if (!reservation.add(Buffer.byteLength(text))) throw fault('overloaded')
  const bytes = encodeJson(text)
  reservation.set(bytes.length)
  return bytes
})

/** The result of the single op. Throws its fault. */
function requireOk([result]: readonly OpResult[]): OpResult {
  const { proc, description } = result as OpResult
  if (proc !== 'ok') throw fault(proc as OpFaultCode, description)
  return result as OpResult
}

/** Room for the data of a waited task is reserved once it is known. */
const one_result = [{}]

const answered = answering(readShow, async (call, message) => {
  const { context, peer } = call
  const wait = new AbortController()
  const dispose = endInTime(context, (reason) => wait.abort(reason))
  call.onOver = () => {
    dispose()
    wait.abort(fault('shutting_down'))
  }
  const caller = authenticate(context, peer)
  const op = readOp(message, context) as ShowOp
  context.engine.payForRead(caller)
  const task = await context.engine.awaitResult(op, caller, { signal: wait.signal })
  // The certificate may have lost its rights meanwhile.
  authenticate(context, peer)
  wait.signal.throwIfAborted()
  const reservation = reserveAnswer(peer, caller, one_result)
  call.onOver = () => {
    dispose()
    reservation.release()
  }
  if (!reservation.add(Buffer.byteLength(task.data_text))) throw fault('overloaded')
  const bytes = encodeTask({ task }, message.with_history)
  reservation.set(bytes.length)
  return bytes
})

export const wait_rpc: Rpc = {
  ...answered,
  serve(call) {
    // The caller decides how long it takes, so it is not measured.
    call.began_ms = 0
    answered.serve(call)
  },
}

export const search_rpcs: Readonly<Record<string, Rpc>> = {
  ListTasks: answering(readListTasks, async (call, message) => {
    const { engine, limits } = call.context
    const { answer_bytes_max, task_bytes_max } = engine.limits
    const caller = searcher(call)
    const query = queryOf(message, limits)
    const { limit = default_tasks_max } = query
    const reservation = reserveAnswer(call.peer, caller, [])
    call.onOver = reservation.release
    const bytes_max = Math.min(Math.max(limit, 0) * task_bytes_max, answer_bytes_max)
    if (!reservation.add(bytes_max)) throw fault('overloaded')
    const bytes = encodePage(await engine.listTasks(query, caller))
    reservation.set(bytes.length)
    return bytes
  }),
  CountTasks: answering(readCountTasks, async (call, filter) => {
    const caller = searcher(call)
    const reservation = reserveAnswer(call.peer, caller, [])
    call.onOver = reservation.release
    const bytes = encodeCounts(await call.context.engine.countTasks(filter, caller))
    reservation.set(bytes.length)
    return bytes
  }),
}

/** The caller of a search. Throws as `authenticate` does, and `rate_limited`. */
function searcher({ context, peer }: ServedCall): Caller {
  const caller = authenticate(context, peer)
  context.engine.payForRead(caller)
  return caller
}
