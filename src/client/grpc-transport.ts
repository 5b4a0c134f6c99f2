/**
 * The gRPC transport, over mutual TLS on one shared connection. Every op is sent in an ApplyOps
 * batch, which returns the outcome of each op as a value. grpc-js's own retries are off, because
 * retry.ts decides them for both transports.
 */
import {
  Client,
  type ClientDuplexStream,
  connectivityState,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js'
import type { Chance, Clock } from '../core/clock.ts'
import { isWholeFaultCode } from '../core/faults.ts'
import type { StreamOpsRequest, StreamOpsResponse } from '../server/grpc/generated/messages.ts'
import { loadSchema, type Sent } from '../server/grpc/schema.ts'
import type { BatchResult } from './api.ts'
import { type Cancellation, newCanceller } from './cancellation.ts'
import { clientFault, isBatchFault, isClientFault } from './faults.ts'
import { faultOfStatus, messageOf, resultsOf } from './grpc-messages.ts'
import { grpcTasks, type Method, type StreamedCall, type UnaryCall } from './grpc-tasks.ts'
import { type OneGrpcTarget, tlsOf } from './grpc-tls.ts'
import type { RetryPolicy } from './retry.ts'
import type { SentOp } from './sent-op.ts'
import { for_owner, type OneOfSeveral, type Transport, window_batches } from './transport.ts'
import { windowed } from './window.ts'

const answer_bytes_max = 256 * 1024 * 1024

const channel_options = {
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  // Without sharing between channels, close ends the connection.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 5_000,
  // Detects a dead connection, which is then replaced.
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.max_receive_message_length': answer_bytes_max,
  'grpc.max_send_message_length': -1,
}

/** With other addresses, a dead connection is detected sooner. */
const several_options = {
  'grpc.keepalive_time_ms': 2_000,
  'grpc.keepalive_timeout_ms': 3_000,
}

/** grpc.health.v1: an empty request means the whole server; status 1 of the answer is SERVING. */
const health_check: Method<undefined, 'ready' | 'unready'> = {
  path: '/grpc.health.v1.Health/Check',
  requestSerialize: () => Buffer.alloc(0),
  responseDeserialize: (bytes) => (bytes[0] === 0x08 && bytes[1] === 1 ? 'ready' : 'unready'),
}

/**
 * Connects with the first call. Rejects with a TypeError for an address without a port, and with
 * the system's error where a certificate or key cannot be read.
 */
export async function grpcTransport(
  target: OneGrpcTarget,
  { clock, chance }: Pick<RetryPolicy, 'clock' | 'chance'>,
  several?: OneOfSeveral,
): Promise<Transport> {
  const tls = await tlsOf(target)
  const options = { ...channel_options, ...(several && several_options), ...tls.options }
  const open = (): Client => new Client(target.address, tls.credentials, options)
  let client = open()
  let is_closed = false
  const isConnected = (): boolean =>
    client.getChannel().getConnectivityState(false) === connectivityState.READY
  const { ApplyOps, StreamOps } = loadSchema().service

  const metadata = (): Metadata => {
    const made = new Metadata()
    if (several !== undefined) made.set('conveyor-role', for_owner['conveyor-role'])
    return made
  }

  const unary: UnaryCall = (method, message, cancellation) =>
    new Promise((resolve, reject) => {
      const { path, requestSerialize, responseDeserialize } = method
      const call = client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        message,
        metadata(),
        (error, answer) => {
          removeListener()
          const reason = cancellation.reason()
          if (reason !== undefined) reject(reason)
          else if (error !== null) reject(faultOfStatus(error))
          else resolve(answer as NonNullable<typeof answer>)
        },
      )
      const removeListener = cancellation.onCancel(() => call.cancel())
    })

  const received: StreamedCall = async function* (method, message, cancellation) {
    const { path, requestSerialize, responseDeserialize } = method
    const call = client.makeServerStreamRequest(
      ...([path, requestSerialize, responseDeserialize, message, metadata()] as const),
    )
    const removeListener = cancellation.onCancel(() => call.cancel())
    try {
      yield* call as AsyncIterable<ReturnType<typeof responseDeserialize>>
    } catch (error) {
      throw cancellation.reason() ?? faultOfStatus(error as ServiceError)
    } finally {
      removeListener()
      call.cancel()
    }
  }

  /** Until a server refuses request keys. */
  let takes_keys = true
  const newName = (): string => uuidOf(clock.now_ms(), chance)

  return {
    name: target.address,
    newName,
    encode(ops, request_key = newName()) {
      const message = { ops: ops.map(messageOf) }
      const is_read = ops.every(({ type }) => type === 'show')
      const keyed = { ...message, request_key }
      return {
        async send(cancellation, is_repeat = false) {
          if (takes_keys && !is_read) {
            try {
              return resultsOf((await unary(ApplyOps, keyed, cancellation)).results, ops)
            } catch (error) {
              if (!takesNoKeys(error)) throw error
              takes_keys = false
              // An earlier try may have reached a server that takes keys.
              if (is_repeat) throw error
            }
          }
          return resultsOf((await unary(ApplyOps, message, cancellation)).results, ops)
        },
      }
    },
    keeps: () => takes_keys,
    tasks: grpcTasks(unary, received),
    async *stream(source, { cancellation, timeout_ms }) {
      const call = client.makeBidiStreamRequest(
        StreamOps.path,
        StreamOps.requestSerialize,
        StreamOps.responseDeserialize,
        metadata(),
      )
      const stream = streamOver(call, clock, timeout_ms, cancellation)
      yield* windowed({ source, size: window_batches, ...stream })
    },
    isConnected,
    async probe(cancellation) {
      // grpc-js would keep a connection that hangs, even after the channel is closed.
      if (!isConnected()) await tls.handshake(cancellation)
      if (is_closed) client = open()
      is_closed = false
      try {
        return await unary(health_check, undefined, cancellation)
      } catch (error) {
        // A proxy may not forward health checks.
        if (isClientFault(error) && error.code === 'not_found') return 'ready'
        if (isClientFault(error) && !silent_codes.includes(error.code)) return 'unready'
        // grpc-js would reconnect repeatedly while the channel is open.
        if (isConnected()) throw error
        client.close()
        is_closed = true
        throw error
      }
    },
    close: async () => client.close(),
  }
}

/** Whether the server refused a request for its key: an old version, or without replays. */
function takesNoKeys(error: unknown): boolean {
  if (!isClientFault(error) || error.code !== 'format_error') return false
  return error.message.startsWith('request_key is not served')
}

/** A UUID of version 7, which begins with the time. */
export function uuidOf(now_ms: number, chance: Chance): string {
  const bytes = Buffer.concat([Buffer.alloc(6), chance.bytes(10)])
  bytes.writeUIntBE(now_ms, 0, 6)
  bytes[6] = 0x70 | ((bytes[6] as number) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f)
  const digits = bytes.toString('hex')
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

const silent_codes: readonly string[] = ['unreachable', 'timed_out']

type StreamCall = ClientDuplexStream<Sent<StreamOpsRequest>, StreamOpsResponse>

interface SentBatch {
  readonly ops: readonly SentOp[]
  readonly resolve: (result: BatchResult) => void
  readonly reject: (error: unknown) => void
  readonly cancelTimer: () => void
}

/** One StreamOps call: sends batches, matches answers to them by order, fails all at once. */
function streamOver(
  call: StreamCall,
  clock: Clock,
  timeout_ms: number,
  cancellation: Cancellation,
) {
  const unanswered: SentBatch[] = []
  const failed = newCanceller()
  let seq = 0

  const fail = (error: unknown): void => {
    if (failed.reason() !== undefined) return
    failed.cancel(error)
    removeListener()
    call.cancel()
    for (const { cancelTimer, reject } of unanswered.splice(0)) {
      cancelTimer()
      reject(error)
    }
  }
  const breakOff = (text: string): void => fail(clientFault('unreachable', text))
  let removeListener = (): void => {}
  removeListener = cancellation.onCancel(() => fail(cancellation.reason()))

  call.on('data', (answer: StreamOpsResponse) => {
    const batch = unanswered.shift()
    if (batch === undefined) return fail(clientFault('bad_answer', 'an answer to nothing sent'))
    batch.cancelTimer()
    try {
      batch.resolve(batchResult(answer, batch.ops))
    } catch (error) {
      batch.reject(error)
      fail(error)
    }
  })
  call.on('error', (error) => fail(faultOfStatus(error as ServiceError)))
  call.on('end', () => {
    if (unanswered.length > 0) breakOff('the stream ended before its answers')
    removeListener()
  })

  return {
    cancellation: failed,
    send: (ops: readonly SentOp[]) =>
      new Promise<BatchResult>((resolve, reject) => {
        const reason = failed.reason()
        if (reason !== undefined) return reject(reason)
        const onLate = (): void =>
          fail(clientFault('timed_out', `no answer within ${timeout_ms} ms`))
        const cancelTimer = clock.wake_at(clock.now_ms() + timeout_ms, onLate)
        unanswered.push({ ops, resolve, reject, cancelTimer })
        call.write({ seq: String(++seq), ops: ops.map(messageOf) })
      }),
    finish: () => call.end(),
    abandon: () => breakOff('the reader left the stream'),
  }
}

/** Throws a ClientFault for an answer that ends the stream. */
function batchResult(answer: StreamOpsResponse, ops: readonly SentOp[]): BatchResult {
  const { proc, description, results } = answer
  if (proc === 'ok') return { proc, results: resultsOf(results, ops) }
  if (isBatchFault(proc)) return { proc, description, results: [] }
  if (isWholeFaultCode(proc)) throw clientFault(proc, description)
  throw clientFault('bad_answer', `no fault of a whole request: ${proc}`)
}
