/** `connect`: a client over any transport, with what all share: deadlines, retries, batching. */
import type { TargetInput } from '../engine/api/task-api.ts'
import type {
  CallOptions,
  Client,
  ClientOp,
  ClientResult,
  ClientTask,
  ConnectOptions,
  TaskOptions,
} from './api.ts'
import { newBatcher } from './batcher.ts'
import {
  type Cancellation,
  cancellationOf,
  type Deadline,
  deadlineIn,
  type LinkedCancellation,
  linkedCancellation,
} from './cancellation.ts'
import { type ClientFault, clientFault } from './faults.ts'
import { sockets_max_default } from './http-transport.ts'
import { followed, polledResult } from './long-calls.ts'
import { openTransport } from './open-transport.ts'
import { isHarmless, isHarmlessCall, type repeats, withRetries } from './retry.ts'
import { type SentOp, sentOpOf } from './sent-op.ts'
import { sentCall, type TaskCalls, type Transport } from './transport.ts'

const timeout_ms_default = 30_000

/**
 * A client; it connects with the first call. Rejects with a TypeError for invalid options, and with
 * the system's error where a certificate or key cannot be read.
 */
export async function connect(options: ConnectOptions): Promise<Client> {
  const requests_max = ('url' in options ? options.sockets_max : undefined) ?? sockets_max_default
  const { timeout_ms: timeout_ms_given = timeout_ms_default } = options
  const { transport, policy } = await openTransport(options, timeout_ms_given)
  const { clock, chance } = policy
  const harmless = { ...policy, is_harmless: true }
  const batcher = newBatcher(transport, requests_max)
  /** Calls under way, cancelled by `close`. */
  const open = new Set<LinkedCancellation>()
  let closed: ClientFault | undefined
  const timeoutOf = (call: CallOptions): number => call.timeout_ms ?? timeout_ms_given

  const cancellationIn = ({ signal }: CallOptions): Cancellation | undefined =>
    signal === undefined ? undefined : cancellationOf(signal)

  function begin(call: LinkedCancellation): void {
    open.add(call)
    if (closed !== undefined) call.cancel(closed)
  }

  function finish(call: LinkedCancellation): void {
    open.delete(call)
    call.dispose()
  }

  async function until<T>(
    deadline: Deadline,
    work: (deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    begin(deadline)
    try {
      return await work(deadline)
    } finally {
      finish(deadline)
    }
  }

  function inTime<T>(
    send: (cancellation: Cancellation) => Promise<T>,
    is_harmless: boolean,
    call: CallOptions,
    within = cancellationIn(call),
    ops: readonly SentOp[] = [],
    isKept: () => boolean = () => false,
  ): Promise<T> {
    const options = { ...policy, is_harmless, isKept }
    return until(deadlineIn(timeoutOf(call), clock, within), (deadline) => {
      const objection = async () => (isKept() ? undefined : objectionTo(ops, transport, deadline))
      return withRetries(() => send(deadline), deadline, options, objection)
    })
  }

  function taskCalls(): TaskCalls {
    if (transport.tasks !== undefined) return transport.tasks
    throw clientFault('not_found', 'HTTP does not serve this: connect with an address, over gRPC')
  }

  async function taskCall<T>(
    name: keyof typeof repeats,
    call: CallOptions,
    send: (tasks: TaskCalls, cancellation: Cancellation) => Promise<T>,
    within = cancellationIn(call),
  ): Promise<T> {
    const tasks = taskCalls()
    return inTime((cancellation) => send(tasks, cancellation), isHarmlessCall(name), call, within)
  }

  async function apply(
    given: readonly ClientOp[],
    call: CallOptions = {},
  ): Promise<ClientResult[]> {
    const ops = given.map(sentOpOf)
    const sent = sentCall(transport, ops)
    return inTime(sent.send, ops.every(isHarmless), call, cancellationIn(call), ops, sent.isKept)
  }

  async function one(given: ClientOp, call: CallOptions = {}): Promise<ClientResult> {
    const op = sentOpOf(given)
    const { send, isKept } = batcher.call(op)
    return inTime(send, isHarmless(op), call, cancellationIn(call), [op], isKept)
  }

  async function task(
    target: TargetInput,
    call: TaskOptions = {},
    within = cancellationIn(call),
  ): Promise<ClientTask | undefined> {
    const op = sentOpOf({ ...target, type: 'show' })
    if (call.history === true) return taskCall('task', call, (tasks, c) => tasks.get(op, c), within)
    const { send } = batcher.call(op)
    const { proc, description, task } = await inTime(send, isHarmless(op), call, within)
    if (proc === 'ok') return task
    if (proc === 'not_found_task') return undefined
    throw clientFault(proc, description ?? proc)
  }

  async function result(target: TargetInput, call: TaskOptions = {}): Promise<ClientTask> {
    const op = sentOpOf({ ...target, type: 'show' })
    const { timeout_ms = Number.POSITIVE_INFINITY, history = false } = call
    const given = cancellationIn(call)
    return until(deadlineIn(timeout_ms, clock, given, 'result_timeout'), (deadline) => {
      const { tasks } = transport
      if (tasks === undefined) {
        const show = (target: TargetInput) => task(target, { history }, deadline)
        return polledResult(target, show, chance, deadline)
      }
      return withRetries(() => tasks.wait(op, history, deadline), deadline, harmless)
    })
  }

  const close = (): Promise<void> => {
    closed ??= clientFault('unreachable', 'the client has been closed')
    for (const call of open) call.cancel(closed)
    return transport.close()
  }
  return {
    apply,
    create: (op, call) => one({ ...op, type: 'create' }, call),
    modify: (op, call) => one({ ...op, type: 'modify' }, call),
    async *stream(batches, call = {}) {
      const cancellation = linkedCancellation(cancellationIn(call))
      begin(cancellation)
      try {
        yield* transport.stream(sentBatches(batches), { cancellation, timeout_ms: timeoutOf(call) })
      } finally {
        finish(cancellation)
      }
    },
    task: (target, call) => task(target, call),
    result,
    async cancel(target, call = {}) {
      const op = sentOpOf({ ...target, type: 'show' })
      return taskCall('cancel', call, (tasks, c) => tasks.cancel(op, c))
    },
    async retry(target, call = {}) {
      const op = sentOpOf({ ...target, type: 'show' })
      return taskCall('retry', call, (tasks, c) => tasks.retry(op, call.node_id, c))
    },
    list: (query = {}, call = {}) => taskCall('list', call, (tasks, c) => tasks.list(query, c)),
    count: (filter = {}, call = {}) =>
      taskCall('count', call, (tasks, c) => tasks.count(filter, c)),
    async *changes(options = {}) {
      const tasks = taskCalls()
      const { from, signal, ...rest } = options
      const cancellation = linkedCancellation(signal && cancellationOf(signal))
      begin(cancellation)
      try {
        const watch = (from: string | undefined) => tasks.changes({ ...rest, from }, cancellation)
        yield* followed(from, watch, policy, cancellation)
      } finally {
        cancellation.cancel(clientFault('unreachable', 'the changes were left'))
        finish(cancellation)
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/**
 * Whether one of these creates may have been applied and its task ended, so that a repeat would
 * create another task; also if the lookup is refused.
 */
async function objectionTo(
  ops: readonly SentOp[],
  transport: Pick<Transport, 'encode'>,
  cancellation: Cancellation,
): Promise<string | undefined> {
  const creates = ops.filter(({ type }) => type === 'create')
  if (creates.length === 0) return undefined
  const shows = creates.map((op): SentOp => ({ ...op, type: 'show', data_text: '{}' }))
  for (const { ref, proc, task } of await transport.encode(shows).send(cancellation)) {
    const is_live = proc === 'ok' && task !== undefined && isLive(task)
    if (!is_live && proc !== 'not_found_task') return `the task of ref ${ref} may have ended since`
  }
  return undefined
}

function isLive({ status }: ClientTask): boolean {
  return status !== 'processed' && status !== 'canceled'
}

async function* sentBatches(
  batches: AsyncIterable<readonly ClientOp[]> | Iterable<readonly ClientOp[]>,
): AsyncGenerator<SentOp[]> {
  for await (const batch of batches) yield batch.map(sentOpOf)
}
