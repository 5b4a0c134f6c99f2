/**
 * `connect`: a client over either transport, with what both share: deadlines, retries, batching.
 * gRPC is loaded only for a target with an `address`.
 */
import { systemChance, systemClock } from '../core/clock.ts'
import type { CallOptions, Client, ClientOp, ClientResult, ConnectOptions } from './api.ts'
import { newBatcher } from './batcher.ts'
import {
  type Cancellation,
  cancellationOf,
  deadlineIn,
  type LinkedCancellation,
  linkedCancellation,
} from './cancellation.ts'
import { type ClientFault, clientFault } from './faults.ts'
import { httpTransport, sockets_max_default } from './http-transport.ts'
import { withRetries } from './retry.ts'
import { isHarmless, sentOpOf } from './sent-op.ts'

const timeout_ms_default = 30_000
const retries_max_default = 4

/**
 * A client; it connects with the first call. Rejects with a TypeError for invalid options, and with
 * the system's error where a certificate or key cannot be read.
 */
export async function connect(options: ConnectOptions): Promise<Client> {
  const { clock = systemClock, chance = systemChance } = options
  const { retries_max = retries_max_default } = options
  const requests_max = ('url' in options ? options.sockets_max : undefined) ?? sockets_max_default
  const transport =
    'url' in options
      ? await httpTransport(options, clock)
      : await (await import('./grpc-transport.ts')).grpcTransport(options, clock)
  const batcher = newBatcher(transport, requests_max)
  /** Calls under way, cancelled by `close`. */
  const open = new Set<LinkedCancellation>()
  let closed: ClientFault | undefined
  const timeoutOf = (call: CallOptions): number =>
    call.timeout_ms ?? options.timeout_ms ?? timeout_ms_default

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

  async function inTime<T>(
    send: (cancellation: Cancellation) => Promise<T>,
    is_harmless: boolean,
    call: CallOptions,
  ): Promise<T> {
    const deadline = deadlineIn(timeoutOf(call), clock, cancellationIn(call))
    const options = { clock, chance, retries_max, is_harmless }
    begin(deadline)
    try {
      return await withRetries(() => send(deadline), deadline, options)
    } finally {
      finish(deadline)
    }
  }

  async function apply(
    given: readonly ClientOp[],
    call: CallOptions = {},
  ): Promise<ClientResult[]> {
    const ops = given.map(sentOpOf)
    const { send } = transport.encode(ops)
    return inTime(send, ops.every(isHarmless), call)
  }

  async function one(given: ClientOp, call: CallOptions = {}): Promise<ClientResult> {
    const op = sentOpOf(given)
    return inTime((cancellation) => batcher.send(op, cancellation), isHarmless(op), call)
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
    async task(target, call) {
      const { proc, description, task } = await one({ ...target, type: 'show' }, call)
      if (proc === 'ok') return task
      if (proc === 'not_found_task') return undefined
      throw clientFault(proc, description ?? proc)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function* sentBatches(
  batches: AsyncIterable<readonly ClientOp[]> | Iterable<readonly ClientOp[]>,
): AsyncGenerator<ReturnType<typeof sentOpOf>[]> {
  for await (const batch of batches) yield batch.map(sentOpOf)
}
