/**
 * The ways by which a modify reaches an engine: embedded, over HTTP with both signatures, by the
 * callback address of a node, over gRPC in a call of its own, in a batch and in a stream. All
 * servers are in this process, so a hundred modifies are under way at once.
 */
import type { ServiceError } from '@grpc/grpc-js'
import { faultOfStatus } from '../../src/client/grpc-messages.ts'
import { connect } from '../../src/client.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { openClient, type TestClient } from './grpc-client.ts'

/** A modify of one task by its ref. */
export interface RacingModify {
  readonly conv_id: string
  readonly ref: string
  readonly data: Readonly<Record<string, string>>
  readonly is_sync?: true
  readonly node_id?: string
}

export interface Answered {
  readonly proc: string
  /** Only the embedder is told. */
  readonly resumed?: boolean | undefined
}

export interface Way {
  readonly name: string
  modify(one: RacingModify): Promise<Answered>
}

export interface Ways {
  readonly all: readonly Way[]
  close(): Promise<void>
}

/** With servers on free ports, and a user who may use `processes`. */
export async function openWays(engine: Engine, processes: readonly string[]): Promise<Ways> {
  const { id: user, secret } = await engine.users.add()
  for (const conv_id of processes) await engine.processes.share(conv_id, user)
  const http_server = await serveHttp(engine, { port: 0 })
  const grpc_server = await serveGrpc(engine, { port: 0, plain: true })
  const signer = (sign: 'path' | 'hmac') =>
    connect({ url: http_server.url, user, secret, sign, retries_max: 0, sockets_max: 32 })
  const http_clients = await Promise.all([signer('path'), signer('hmac')])
  const grpc = openClient(grpc_server.address)
  const stream = streamOver(grpc)
  const all: Way[] = [
    { name: 'embedded', modify: (one) => engine.modify(one) },
    ...http_clients.map((client, at) => ({
      name: at === 0 ? 'http_path' : 'http_headers',
      async modify(one: RacingModify) {
        const [result] = await client.apply([{ type: 'modify', ...one }])
        return { proc: String(result?.proc) }
      },
    })),
    { name: 'grpc', modify: (one) => callOnce(grpc, one) },
    {
      name: 'grpc_batch',
      async modify(one) {
        const { results } = await grpc.apply([{ modify: messageOf(one) }])
        return { proc: String(results[0]?.proc) }
      },
    },
    { name: 'grpc_stream', modify: stream.modify },
  ]
  return {
    all,
    async close() {
      stream.end()
      await Promise.all(http_clients.map((client) => client.close()))
      await Promise.all([http_server.drain(), grpc_server.drain()])
      grpc.close()
    },
  }
}

const messageOf = ({ data, ...one }: RacingModify) => ({
  ...one,
  data_json: Buffer.from(JSON.stringify(data)),
})

async function callOnce(grpc: TestClient, one: RacingModify): Promise<Answered> {
  try {
    await grpc.call('ModifyTask', messageOf(one))
    return { proc: 'ok' }
  } catch (error) {
    return { proc: faultOfStatus(error as ServiceError).code }
  }
}

function streamOver(grpc: TestClient) {
  const call = grpc.stream()
  const waiting = new Map<string, (answered: Answered) => void>()
  let seq = 0
  call.on('error', () => {})
  call.on('data', ({ seq, results }: { seq: string; results: readonly { proc: string }[] }) => {
    waiting.get(String(seq))?.({ proc: String(results[0]?.proc) })
    waiting.delete(String(seq))
  })
  return {
    modify(one: RacingModify): Promise<Answered> {
      seq++
      call.write({ seq, ops: [{ modify: messageOf(one) }] })
      return new Promise((resolve) => waiting.set(String(seq), resolve))
    },
    end: () => call.end(),
  }
}
