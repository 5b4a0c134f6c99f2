/**
 * The calls over gRPC that are no ops of a batch. A refusal of cancel and retry is a value, as that
 * of an op; any other failure rejects with a ClientFault.
 */
import type { MethodDefinition } from '@grpc/grpc-js'
import { opFaults } from '../core/faults.ts'
import type { Task__Output } from '../server/grpc/generated/conveyor/v1/Task.ts'
import { loadSchema } from '../server/grpc/schema.ts'
import type { ClientResult, ClientTask } from './api.ts'
import type { Cancellation } from './cancellation.ts'
import { clientFault, isClientFault } from './faults.ts'
import { targetOf, taskOf } from './grpc-messages.ts'
import type { SentOp } from './sent-op.ts'
import type { TaskCalls } from './transport.ts'

/** One try of a unary call. */
export type UnaryCall = <Request, Answer>(
  method: MethodDefinition<Request, Answer>,
  message: Request,
  cancellation: Cancellation,
) => Promise<Answer>

export function grpcTasks(unary: UnaryCall): TaskCalls {
  const { GetTask, WaitTask, CancelTask, RetryTask } = loadSchema().service
  return {
    async get(target, cancellation) {
      try {
        const request = { ...targetOf(target), with_history: true }
        return requireTask(await unary(GetTask, request, cancellation))
      } catch (error) {
        if (isClientFault(error) && error.code === 'not_found_task') return undefined
        throw error
      }
    },
    async wait(target, with_history, cancellation) {
      const request = { ...targetOf(target), with_history }
      return requireTask(await unary(WaitTask, request, cancellation))
    },
    cancel: (target, cancellation) =>
      asResult(target, unary(CancelTask, targetOf(target), cancellation)),
    retry: (target, node_id = '', cancellation) =>
      asResult(target, unary(RetryTask, { ...targetOf(target), node_id }, cancellation)),
  }
}

function requireTask({ task }: { readonly task: Task__Output | null }): ClientTask {
  if (task === null) throw clientFault('bad_answer', 'an answer without a task')
  return taskOf(task)
}

async function asResult(
  target: SentOp,
  answer: Promise<{ readonly ref?: string; readonly obj_id: string }>,
): Promise<ClientResult> {
  try {
    const { ref, obj_id } = await answer
    return { ref: ref ?? null, obj_id, proc: 'ok' }
  } catch (error) {
    if (!isClientFault(error) || !Object.hasOwn(opFaults, error.code)) throw error
    return {
      ref: target.ref ?? null,
      proc: error.code as ClientResult['proc'],
      description: error.message,
    }
  }
}
