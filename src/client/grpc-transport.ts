/**
 * The gRPC door as a transport, over mutual TLS. Calls share one connection. Every call is a batch
 * (ApplyOps), for a batch tells what became of each op as a value.
 *
 * grpc-js repeats nothing by itself here: what may be repeated is decided in retry, once for both
 * transports.
 */
import { Client, type ClientDuplexStream, Metadata, type ServiceError } from '@grpc/grpc-js'
import type { Clock } from '../core/clock.ts'
import { isWholeFaultCode } from '../core/faults.ts'
import { loadSchema, type Schema } from '../server/grpc/schema.ts'
import type { BatchResult, ClientResult, GrpcTarget } from './api.ts'
import { type Cancellation, newCanceller } from './cancellation.ts'
import { type ClientFault, clientFault, isBatchFault } from './faults.ts'
import { faultOfStatus } from './grpc-fault.ts'
import { messageOf, resultOf } from './grpc-messages.ts'
import { clientTls } from './grpc-tls.ts'
import type { SentOp } from './sent-op.ts'
import { type Transport, window_batches } from './transport.ts'
import { windowed } from './window.ts'

type Service = Schema['service']
type Applied = ReturnType<Service['ApplyOps']['responseDeserialize']>
type Request = Parameters<Service['StreamOps']['requestSerialize']>[0]
type Answer = ReturnType<Service['StreamOps']['responseDeserialize']>

const answer_bytes_max = 256 * 1024 * 1024

const channel_options = {
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  // A channel of its own, so that close lets go of the connection.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 5_000,
  // A connection that has gone dead without a word is noticed and made anew.
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.max_receive_message_length': answer_bytes_max,
  'grpc.max_send_message_length': -1,
}

/** Rejects where a certificate or key cannot be read. Connects with the first call. */
export async function grpcTransport(target: GrpcTarget, clock: Clock): Promise<Transport> {
  const tls = await clientTls(target)
  const client = new Client(target.address, tls.credentials, { ...channel_options, ...tls.options })
  const { ApplyOps, StreamOps } = loadSchema().service

  function call(ops: readonly SentOp[], cancellation: Cancellation): Promise<Applied> {
    return new Promise((resolve, reject) => {
      const calling = client.makeUnaryRequest(
        ApplyOps.path,
        ApplyOps.requestSerialize,
        ApplyOps.responseDeserialize,
        { ops: ops.map(messageOf) },
        new Metadata(),
        (error, answer) => {
          forget()
          const ended = cancellation.reason()
          if (ended !== undefined) reject(ended)
          else if (error !== null) reject(faultOfStatus(error))
          else resolve(answer as Applied)
        },
      )
      const forget = cancellation.onCancel(() => calling.cancel())
    })
  }

  return {
    ready: (ops) => ({
      send: async (cancellation) => resultsOf((await call(ops, cancellation)).results, ops),
    }),
    async *stream(source, { cancellation, timeout_ms }) {
      const stream = client.makeBidiStreamRequest(
        StreamOps.path,
        StreamOps.requestSerialize,
        StreamOps.responseDeserialize,
        new Metadata(),
      )
      yield* windowed({
        source,
        size: window_batches,
        ...streamOver(stream, clock, timeout_ms, cancellation),
      })
    },
    close: async () => client.close(),
  }
}

function resultsOf(results: Applied['results'], ops: readonly SentOp[]): ClientResult[] {
  if (results.length !== ops.length) {
    throw clientFault('bad_answer', `${results.length} results for ${ops.length} ops`)
  }
  return results.map((result, at) => resultOf(result, ops[at] as SentOp))
}

type StreamCall = ClientDuplexStream<Request, Answer>

interface Sent {
  readonly ops: readonly SentOp[]
  readonly resolve: (result: BatchResult) => void
  readonly reject: (error: unknown) => void
  /** Takes back the timer of the batch. */
  readonly forget: () => void
}

/** One stream: batches out, their answers matched to them by order, and one way to fail. */
function streamOver(
  call: StreamCall,
  clock: Clock,
  timeout_ms: number,
  cancellation: Cancellation,
) {
  const sent: Sent[] = []
  const broken = newCanceller()
  let seq = 0

  const fail = (error: unknown): void => {
    if (broken.reason() !== undefined) return
    broken.end(error)
    forget()
    call.cancel()
    for (const { forget, reject } of sent.splice(0)) {
      forget()
      reject(error)
    }
  }
  const breakOff = (text: string): void => fail(clientFault('unreachable', text))
  let forget = (): void => {}
  forget = cancellation.onCancel(() => fail(cancellation.reason()))

  call.on('data', (answer: Answer) => {
    const batch = sent.shift()
    if (batch === undefined) return fail(clientFault('bad_answer', 'an answer to nothing sent'))
    batch.forget()
    try {
      batch.resolve(batchResult(answer, batch.ops))
    } catch (error) {
      batch.reject(error)
      fail(error)
    }
  })
  call.on('error', (error) => fail(faultOfStatus(error as ServiceError)))
  call.on('end', () => {
    if (sent.length > 0) breakOff('the stream ended before its answers')
    forget()
  })

  return {
    cancellation: broken,
    send: (ops: readonly SentOp[]) =>
      new Promise<BatchResult>((resolve, reject) => {
        const ended = broken.reason()
        if (ended !== undefined) return reject(ended)
        const late = (): void => fail(clientFault('timed_out', `no answer within ${timeout_ms} ms`))
        const forget = clock.wake_at(clock.now_ms() + timeout_ms, late)
        sent.push({ ops, resolve, reject, forget })
        call.write({ seq: String(++seq), ops: ops.map(messageOf) })
      }),
    finish: () => call.end(),
    abandon: () => breakOff('the stream was left'),
  }
}

function batchResult(answer: Answer, ops: readonly SentOp[]): BatchResult {
  const { proc, description, results } = answer
  if (proc === 'ok') return { proc, results: resultsOf(results, ops) }
  if (isBatchFault(proc)) return { proc, description, results: [] }
  throw faultOfBatch(proc, description)
}

function faultOfBatch(proc: string, description: string): ClientFault {
  if (isWholeFaultCode(proc)) return clientFault(proc, description)
  return clientFault('bad_answer', `no fault of a whole request: ${proc}`)
}
