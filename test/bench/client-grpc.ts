/**
 * The load client of gRPC cells: bare grpc-js, one connection, mutual TLS. All messages are serialised
 * before the clock starts. A caller is one concurrent call, or one unanswered message of the stream.
 *
 * The first answer is decoded, and every result must be `ok`. All refs and ids have one length, so
 * good answers have one length too, except that the number of a batch grows: an answer of the length
 * of the last decoded one is taken as good, any other is decoded.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, credentials } from '@grpc/grpc-js'
import { uuidOf } from '../../src/client/grpc-transport.ts'
import { systemChance } from '../../src/core/clock.ts'
import { loadSchema } from '../../src/server/grpc/schema.ts'
import type { Refs, WriteVerb } from './cells.ts'
import { caller_name } from './certificates.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import type { PrepareOptions } from './load.ts'
import type { Slot } from './statistics.ts'
import type { Span } from './stopwatch.ts'
import { conv_id, dataOf, opSource, refOf } from './workload.ts'

export type GrpcClientCalls = typeof calls

interface PrepareMessages extends PrepareOptions {
  readonly is_stream: boolean
  readonly is_keyed: boolean
}

interface SendOptions extends Span {
  readonly port: number
  /** Holds the CA certificate and the client's certificate and key. */
  readonly tls_folder: string
  readonly verb: WriteVerb
  readonly ops: number
  readonly callers: number
  readonly is_stream: boolean
}

interface Sender {
  /** Resolves with a good answer, rejects with any other. */
  send(message: Buffer): Promise<void>
  /** Resolves when no message is in flight. */
  end(): Promise<void>
}

const { CreateTask, ModifyTask, StreamOps } = loadSchema().service
const unary = { create: CreateTask, modify: ModifyTask }
const connect_ms_max = 10_000

let prepared: Buffer[] = []

const calls = {
  prepare({ verb, ops, requests, tasks, refs, is_stream, is_keyed }: PrepareMessages): void {
    const source = opSource(tasks, refs)
    prepared = Array.from({ length: requests }, (_, at) => {
      const messages = source.take(verb, ops).map((n) => messageOf(verb, n, refs))
      const key = is_keyed ? { request_key: uuidOf(Date.now(), systemChance) } : {}
      if (!is_stream) return unary[verb].requestSerialize({ ...(messages[0] as Message), ...key })
      const batch = messages.map((message) => ({ [verb]: message }))
      return StreamOps.requestSerialize({ seq: at + 1, ops: batch, ...key })
    })
  },

  /** Sends the prepared messages until the time is up or all are sent; waits for every answer. */
  async run(options: SendOptions): Promise<Slot> {
    const { port, tls_folder, verb, ops, is_stream } = options
    const client = await connected(port, tls_folder)
    try {
      const sender = is_stream ? streamSender(client, ops) : unarySender(client, verb)
      let next = 0
      const requests_max = prepared.length
      const slot = await closedLoop({ ...options, requests_max }, () =>
        sender.send(prepared[next++] as Buffer),
      )
      await sender.end()
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
  const channel_credentials = credentials.createSsl(ca as Buffer, key as Buffer, cert as Buffer)
  const client = new Client(`127.0.0.1:${port}`, channel_credentials, {
    // A new connection for each slot.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    // TLS allows no IP address as a server name.
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

/** The stream answers in the order of its messages. */
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

/** Throws at a bad answer; calls `isGood` for each answer whose length is new. */
function goodAnswer(isGood: (bytes: Buffer) => boolean): (bytes: Buffer) => true {
  let good_bytes = -1
  return (bytes) => {
    if (bytes.length === good_bytes) return true
    if (!isGood(bytes)) throw new Error(`not all ok: ${bytes.toString('latin1', 0, 2_000)}`)
    good_bytes = bytes.length
    return true
  }
}
