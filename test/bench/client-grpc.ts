/**
 * The load client of the gRPC cells: bare grpc-js, one connection, mutual TLS. All messages are
 * made before the clock starts; grpc-js then gets their bytes as they are.
 *
 * Callers are calls at once, or messages under way of one stream. The first answer is read by the
 * schema and must be all `ok`. Since refs and ids have one length, the good answers of a slot have
 * one too, but for the number of a batch, which grows: what is as long counts as good, and any
 * other is read again.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, credentials } from '@grpc/grpc-js'
import { loadSchema } from '../../src/server/grpc/schema.ts'
import type { Refs, WriteVerb } from './cells.ts'
import { caller_name } from './certificates.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import type { Slot } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import { conv_id, dataOf, opSource, refOf } from './workload.ts'

export type GrpcClientCalls = typeof calls

interface Preparing {
  readonly verb: WriteVerb
  readonly ops: number
  /** How many messages to make; no two are alike. */
  readonly requests: number
  readonly tasks: number
  readonly refs: Refs
  readonly is_stream: boolean
}

interface Sending extends Span {
  readonly port: number
  /** Holds the authority and the client's pair. */
  readonly tls_folder: string
  readonly verb: WriteVerb
  readonly ops: number
  readonly callers: number
  readonly is_stream: boolean
}

/** How one message goes out; resolves when its answer is in and good. */
interface Sender {
  send(message: Buffer): Promise<void>
  /** Resolves when nothing is under way any more. */
  end(): Promise<void>
}

const { CreateTask, ModifyTask, StreamOps } = loadSchema().service
const unary = { create: CreateTask, modify: ModifyTask }
const connect_ms_max = 10_000

let prepared: Buffer[] = []

const calls = {
  prepare({ verb, ops, requests, tasks, refs, is_stream }: Preparing): void {
    const source = opSource(tasks, refs)
    prepared = Array.from({ length: requests }, (_, at) => {
      const messages = source.take(verb, ops).map((n) => messageOf(verb, n, refs))
      if (!is_stream) return unary[verb].requestSerialize(messages[0] as Message)
      const batch = messages.map((message) => ({ [verb]: message }))
      return StreamOps.requestSerialize({ seq: at + 1, ops: batch })
    })
  },

  /** Sends what was prepared until the time is up or all is sent, and waits for every answer. */
  async run(sending: Sending): Promise<Slot> {
    const { port, tls_folder, verb, ops, is_stream } = sending
    const client = await connected(port, tls_folder)
    try {
      const way = is_stream ? streamSender(client, ops) : unarySender(client, verb)
      let next = 0
      const requests_max = prepared.length
      const slot = await closedLoop({ ...sending, requests_max }, () =>
        way.send(prepared[next++] as Buffer),
      )
      await way.end()
      return slot
    } finally {
      client.close()
    }
  },
}

serveCalls(calls)

interface Message {
  readonly conv_id: string
  readonly ref: string
  readonly data_json: Buffer
}

function messageOf(verb: WriteVerb, n: number, refs: Refs): Message {
  return { conv_id, ref: refOf(n, refs), data_json: Buffer.from(JSON.stringify(dataOf(verb, n))) }
}

async function connected(port: number, tls_folder: string): Promise<Client> {
  const [ca, key, cert] = await Promise.all(
    ['ca.crt', `${caller_name}.key`, `${caller_name}.crt`].map((name) =>
      readFile(join(tls_folder, name)),
    ),
  )
  const how = credentials.createSsl(ca as Buffer, key as Buffer, cert as Buffer)
  const client = new Client(`127.0.0.1:${port}`, how, {
    // A connection of its own for each slot.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    // TLS has no addresses for names.
    'grpc.ssl_target_name_override': 'localhost',
  })
  await new Promise<void>((resolve, reject) => {
    client.waitForReady(Date.now() + connect_ms_max, (error) => (error ? reject(error) : resolve()))
  })
  return client
}

function unarySender(client: Client, verb: WriteVerb): Sender {
  const { path, responseDeserialize } = unary[verb]
  const check = goodAnswer((bytes) => {
    const { ref, obj_id } = responseDeserialize(bytes)
    return ref?.length === 16 && obj_id.length === 24
  })
  return {
    send: (message) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(path, asIs, check, message, (error) =>
          error === null ? resolve() : reject(error),
        )
      }),
    end: async () => {},
  }
}

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Answers come in the order of what was sent. */
function streamSender(client: Client, ops: number): Sender {
  const { path, responseDeserialize } = StreamOps
  const check = goodAnswer((bytes) => {
    const { proc, results } = responseDeserialize(bytes)
    return proc === 'ok' && results.filter((result) => result.proc === 'ok').length === ops
  })
  const call = client.makeBidiStreamRequest(path, asIs, check)
  const waiting: Waiting[] = []
  const failAll = (error: unknown): void => {
    for (const { reject } of waiting.splice(0)) reject(error)
  }
  call.on('data', () => waiting.shift()?.resolve())
  call.on('error', failAll)
  call.on('end', () => failAll(new Error('the server ended the stream')))
  return {
    send: (message) =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject })
        call.write(message)
      }),
    end: () =>
      new Promise((resolve, reject) => {
        call.on('error', reject)
        call.on('end', resolve)
        call.end()
      }),
  }
}

const asIs = (message: Buffer): Buffer => message

/** Answers whether bytes were good by their length, where `isGood` has seen one as long. */
function goodAnswer(isGood: (bytes: Buffer) => boolean): (bytes: Buffer) => true {
  let good_bytes = -1
  return (bytes) => {
    if (bytes.length === good_bytes) return true
    if (!isGood(bytes)) throw new Error(`not all ok: ${bytes.toString('latin1', 0, 2_000)}`)
    good_bytes = bytes.length
    return true
  }
}
