/**
 * The calls over gRPC besides ops of a batch. A refusal of cancel and retry is a value, as that of
 * an op; any other failure rejects with a ClientFault.
 */
import type { MethodDefinition } from '@grpc/grpc-js'
import { statuses } from '../codec/task-record.ts'
import { opFaults } from '../core/faults.ts'
import type { Status } from '../core/model.ts'
import {
  filter_members,
  type TaskCounts,
  type TaskFilter,
  type TaskQuery,
} from '../engine/api/search-api.ts'
import type {
  CancelTaskResponse,
  ListTasksRequest,
  ListTasksResponse,
  Task,
  TaskCounts as TaskCountsMessage,
  WatchTasksResponse,
} from '../server/grpc/generated/messages.ts'
import { loadSchema, type Sent } from '../server/grpc/schema.ts'
import type { ClientAction, ClientPage, ClientTask } from './api.ts'
import type { Cancellation } from './cancellation.ts'
import { clientFault, isClientFault } from './faults.ts'
import { targetOf, taskOf } from './grpc-messages.ts'
import type { ReceivedChange } from './long-calls.ts'
import { dataTextOf, type SentOp } from './sent-op.ts'
import type { TaskCalls } from './transport.ts'

export type Method<Request, Answer> = Pick<
  MethodDefinition<Request, Answer>,
  'path' | 'requestSerialize' | 'responseDeserialize'
>

export type UnaryCall = <Request, Answer>(
  method: Method<Request, Answer>,
  message: Request,
  cancellation: Cancellation,
) => Promise<Answer>

/** One try of a call with many answers, read on demand. */
export type StreamedCall = <Request, Answer>(
  method: MethodDefinition<Request, Answer>,
  message: Request,
  cancellation: Cancellation,
) => AsyncIterable<Answer>

export function grpcTasks(unary: UnaryCall, streamed: StreamedCall): TaskCalls {
  const { GetTask, WaitTask, CancelTask, RetryTask, ListTasks, CountTasks, WatchTasks } =
    loadSchema().service
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
      asAction(target, unary(CancelTask, targetOf(target), cancellation)),
    retry: (target, node_id = '', cancellation) =>
      asAction(target, unary(RetryTask, { ...targetOf(target), node_id }, cancellation)),
    list: async (query, cancellation) =>
      pageOf(await unary(ListTasks, listRequest(query), cancellation)),
    async *changes({ from = '', conv_id = '', data = false }, cancellation) {
      const request = { from, conv_id: String(conv_id), with_task: data }
      for await (const change of streamed(WatchTasks, request, cancellation)) {
        yield changeOf(change)
      }
    },
    async count(filter, cancellation) {
      checkFilter(filter, ['conv_id', 'node_id', 'status'])
      const { counts, rows } = await unary(CountTasks, withConvText(filter), cancellation)
      return {
        ...countsOf(counts),
        rows: rows.map(({ conv_id, title, node_id, counts }) => ({
          ...{ conv_id, title, ...countsOf(counts) },
          ...(node_id === '' ? {} : { node_id }),
        })),
      }
    },
  }
}

function requireTask({ task }: { readonly task: Task | null }): ClientTask {
  if (task === null) throw clientFault('bad_answer', 'an answer without a task')
  return taskOf(task)
}

async function asAction(
  target: SentOp,
  answer: Promise<CancelTaskResponse>,
): Promise<ClientAction> {
  try {
    const { ref, obj_id, task, was_status, was_node_id } = await answer
    const was = { status: was_status as ClientTask['status'], node_id: was_node_id }
    return {
      ...{ ref: ref ?? null, obj_id, proc: 'ok', was },
      ...(task === null ? {} : { task: taskOf(task) }),
    }
  } catch (error) {
    if (!isClientFault(error) || !Object.hasOwn(opFaults, error.code)) throw error
    const { code, message } = error
    return { ref: target.ref ?? null, proc: code as ClientAction['proc'], description: message }
  }
}

/** Throws `bad_filter` for a member that the message does not have. */
function checkFilter(filter: TaskFilter, members = filter_members): void {
  for (const name of Object.keys(filter)) {
    if (members.includes(name as keyof TaskFilter)) continue
    const choices = members.join(', ')
    throw clientFault('bad_filter', `filter: there is no "${name}"; a filter has ${choices}`)
  }
}

/** Throws `bad_filter`, and a TypeError for a `where` that is no object. */
function listRequest(query: TaskQuery): Sent<ListTasksRequest> {
  const { limit, cursor, newest_first = false, ...given } = query
  checkFilter(given)
  const { where, ...filter } = given
  return {
    filter: {
      ...withConvText(filter),
      ...(where === undefined ? {} : { where_json: Buffer.from(dataTextOf(where)) }),
    },
    page_size: limit ?? 0,
    page_token: cursor ?? '',
    newest_first,
  }
}

function withConvText<T extends TaskFilter>({
  conv_id,
  ...filter
}: T): Omit<T, 'conv_id'> & { readonly conv_id?: string } {
  return conv_id === undefined ? filter : { ...filter, conv_id: String(conv_id) }
}

function pageOf(answer: ListTasksResponse): ClientPage {
  const { tasks, next_page_token, scanned, sorted_by, reached_ms, damaged } = answer
  return {
    tasks: tasks.map(taskOf),
    ...(next_page_token === '' ? {} : { cursor: next_page_token }),
    scanned,
    sorted_by: sorted_by as ClientPage['sorted_by'],
    ...(reached_ms === undefined ? {} : { reached_ms: Number(reached_ms) }),
    damaged,
  }
}

function changeOf(change: WatchTasksResponse): ReceivedChange {
  const { position, conv_id, obj_id, ref, status, node_id, at_ms, task } = change
  if (obj_id === '') return { position }
  return {
    ...{ position, conv_id, obj_id, ref: ref ?? null, status: status as Status, node_id },
    at_ms: Number(at_ms),
    ...(task === null ? {} : { task: taskOf(task) }),
  }
}

function countsOf(counts: TaskCountsMessage | null): Omit<TaskCounts, 'rows'> {
  const by_status: Partial<Record<Status, number>> = {}
  for (const status of statuses) {
    const count = counts?.[status]
    if (count !== undefined) by_status[status] = Number(count)
  }
  return { total: Number(counts?.total ?? 0), by_status }
}
