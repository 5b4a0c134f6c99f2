/**
 * A grpc-js client of the service that returns answers and statuses. It calls an IP address, which
 * Node 26 does not send as a server name.
 */
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import type {
  ApplyOpsResponse,
  Op,
  Rpcs,
  StreamOpsRequest,
  StreamOpsResponse,
} from '../../src/server/grpc/generated/messages.ts'
import { loadSchema, type Sent } from '../../src/server/grpc/schema.ts'
import type { TestCertificate } from './grpc-certs.ts'
import { planted } from './kept-lines.ts'

type UnaryName = Exclude<keyof Rpcs, 'StreamOps'>
type RequestOf<Name extends UnaryName> = Sent<Rpcs[Name][0]>
type AnswerOf<Name extends UnaryName> = Rpcs[Name][1]

export interface TestClient {
  readonly client: Client
  call<Name extends UnaryName>(
    name: Name,
    request: RequestOf<Name>,
    metadata?: Metadata,
    options?: CallOptions,
  ): Promise<AnswerOf<Name>>
  apply(ops: readonly Sent<Op>[]): Promise<ApplyOpsResponse>
  stream(): ClientDuplexStream<Sent<StreamOpsRequest>, StreamOpsResponse>
  /** `OK`, or the name of the status that the call ends with. */
  statusOf<Name extends UnaryName>(name: Name, request: RequestOf<Name>): Promise<string>
  close(): void
}

export interface Keys {
  readonly ca: TestCertificate
  readonly client?: TestCertificate | undefined
}

function tlsCredentials({ ca, client }: Keys): ChannelCredentials {
  const verify = {
    checkServerIdentity: (_sent: string, found: PeerCertificate) =>
      checkServerIdentity('127.0.0.1', found),
  }
  return client === undefined
    ? credentials.createSsl(ca.cert, null, null, verify)
    : credentials.createSsl(ca.cert, client.key, client.cert, verify)
}

export function openClient(
  address: string,
  keys?: Keys | ChannelCredentials,
  options: object = {},
): TestClient {
  const how =
    keys === undefined
      ? credentials.createInsecure()
      : 'ca' in keys
        ? tlsCredentials(keys as Keys)
        : (keys as ChannelCredentials)
  const client = new Client(address, how, {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    'grpc.max_receive_message_length': -1,
    'grpc.ssl_target_name_override': 'localhost',
    ...options,
  })
  const { service } = loadSchema()
  const call: TestClient['call'] = (name, request, metadata = new Metadata(), how = {}) =>
    new Promise((resolve, reject) => {
      const { path, requestSerialize, responseDeserialize } = service[name] as MethodDefinition<
        object,
        object
      >
      const options = { deadline: Date.now() + 10_000, ...how }
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request as object,
        metadata,
        options,
        (error, answer) => (error ? reject(error) : resolve(answer as never)),
      )
    })
  return {
    client,
    call,
    apply: (ops) => call('ApplyOps', { ops: [...ops] }),
    stream() {
      const { path, requestSerialize, responseDeserialize } = service.StreamOps
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
    },
    async statusOf(name, request) {
      try {
        await call(name, request)
        return 'OK'
      } catch (error) {
        return status[(error as ServiceError).code]
      }
    },
    close: () => client.close(),
  }
}

/** Everything a stream answered, and the status it ended with. */
export async function collect(
  stream: ClientDuplexStream<Sent<StreamOpsRequest>, StreamOpsResponse>,
): Promise<{ answers: StreamOpsResponse[]; status: string; details: string }> {
  const answers: StreamOpsResponse[] = []
  stream.on('error', () => {})
  stream.on('data', (answer: StreamOpsResponse) => answers.push(answer))
  return new Promise((resolve) => {
    stream.on('status', ({ code, details }) => resolve({ answers, status: status[code], details }))
  })
}

export const createOp = (ref: string, data: unknown = { note: planted }): Sent<Op> => ({
  create: { conv_id: '1234', ref, data_json: Buffer.from(JSON.stringify(data)) },
})
