/**
 * The floor of gRPC cells: the least that grpc-js does for the same messages and certificates. It
 * decodes them by the same schema and answers as ours, with a constant id. No store, no check of the
 * caller, no limits; data_json is not parsed.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type handleBidiStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
} from '@grpc/grpc-js'
import type { Op, OpResult, Rpcs } from '../../src/server/grpc/generated/messages.ts'
import { loadSchema, type Sent } from '../../src/server/grpc/schema.ts'
import { serveCalls } from './child.ts'

export type GrpcFloorCalls = typeof calls

const obj_id = '5cf67011094bab1b9a00a31d'

type Unary<Name extends keyof Rpcs> = handleUnaryCall<Rpcs[Name][0], Sent<Rpcs[Name][1]>>

const handlers: {
  readonly CreateTask: Unary<'CreateTask'>
  readonly ModifyTask: Unary<'ModifyTask'>
  readonly StreamOps: handleBidiStreamingCall<Rpcs['StreamOps'][0], Sent<Rpcs['StreamOps'][1]>>
} = {
  CreateTask: ({ request }, callback) => callback(null, { ref: request.ref as string, obj_id }),
  ModifyTask: ({ request }, callback) => callback(null, { ref: request.ref as string, obj_id }),
  StreamOps: (call) => {
    call.on('data', ({ seq, ops }) => {
      call.write({ seq, results: ops.map(resultOf), proc: 'ok', description: '' })
    })
    call.on('end', () => call.end())
  },
}

const calls = {
  /** `tls_folder` holds ca.crt, server.crt and server.key. */
  async listen({ tls_folder }: { tls_folder: string }): Promise<{ port: number }> {
    const [ca, cert_chain, private_key] = await Promise.all(
      ['ca.crt', 'server.crt', 'server.key'].map((name) => readFile(join(tls_folder, name))),
    )
    const pair = { cert_chain: cert_chain as Buffer, private_key: private_key as Buffer }
    const server = new Server()
    server.addService(loadSchema().service, handlers)
    return new Promise((resolve, reject) => {
      const server_credentials = ServerCredentials.createSsl(ca as Buffer, [pair], true)
      server.bindAsync('127.0.0.1:0', server_credentials, (error, port) =>
        error === null ? resolve({ port }) : reject(error),
      )
    })
  },
}

serveCalls(calls)

function resultOf({ id, create, modify }: Op): Sent<OpResult> {
  return { id, ref: (create ?? modify)?.ref as string, obj_id, proc: 'ok', description: '' }
}
