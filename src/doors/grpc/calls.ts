/**
 * The rpcs of one message each: who is it, ops, the engine, a message. An op that fails alone fails
 * its call with the op's own status; one that fails in a batch is a result there.
 */
import type { handleUnaryCall } from '@grpc/grpc-js'
import { fault, type OpFaultCode } from '../../words/faults.ts'
import type { Caller, OpResult } from '../../words/model.ts'
import { admit, type Door } from './door.ts'
import type { Op__Output as OpMessage } from './generated/conveyor/v1/Op.ts'
import type { TaskServiceHandlers } from './generated/conveyor/v1/TaskService.ts'
import { explained, readBatch, readOps, resultMessages, taskMessage } from './ops.ts'
import { failedCall, refusalOf } from './status.ts'

type UnaryCalls = Pick<TaskServiceHandlers, 'CreateTask' | 'ModifyTask' | 'GetTask' | 'ApplyOps'>

export function unaryCalls(door: Door): UnaryCalls {
  return {
    CreateTask: unary(door, async (create, caller) =>
      address(await applyOne(door, { id: '', kind: 'create', create }, caller)),
    ),
    ModifyTask: unary(door, async (modify, caller) =>
      address(await applyOne(door, { id: '', kind: 'modify', modify }, caller)),
    ),
    GetTask: unary(door, async (show, caller) => {
      const { task } = await applyOne(door, { id: '', kind: 'show', show }, caller)
      return task === undefined ? {} : { task: taskMessage(task) }
    }),
    ApplyOps: unary(door, async (batch, caller) => {
      const raw = readBatch(batch, door.limits)
      const results = await door.engine.apply(raw.ops, caller)
      return { results: resultMessages(batch.ops, explained(raw, results)) }
    }),
  }
}

function unary<Request, Response>(
  door: Door,
  answer: (request: Request, caller: Caller) => Promise<Response>,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    const answered = async (): Promise<Response> => answer(call.request, admit(door, call))
    answered()
      .then(
        (response) => callback(null, response),
        (thrown: unknown) => callback(failedCall(refusalOf(thrown, door.onBug))),
      )
      .catch(door.onBug)
  }
}

async function applyOne(door: Door, op: OpMessage, caller: Caller): Promise<OpResult> {
  const raw = readOps([op], door.limits)
  const [result] = explained(raw, await door.engine.apply(raw.ops, caller))
  const { proc, description } = result as OpResult
  if (proc !== 'ok') throw fault(proc as OpFaultCode, description)
  return result as OpResult
}

function address({ ref, obj_id }: OpResult): { ref?: string; obj_id: string } {
  return { ...(ref === null ? {} : { ref }), obj_id: obj_id ?? '' }
}
