/**
 * Clients that are slow, half open or never read: a table of them, each one way to make a server
 * hold something for nothing.
 */
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { signatureOf } from '../../src/codec/signature.ts'
import { loadSchema } from '../../src/server/grpc/schema.ts'
import { framed, rawHead } from './grpc-raw.ts'
import { conv_id } from './http-server.ts'
import type { Signer, SlowTarget } from './slow-server.ts'

export interface SlowClient {
  /** As `connectionOf` writes it; none if it could not connect. */
  readonly connection: string | undefined
  /** Sends a little more, where that is its way. */
  drip(): void
  leave(): void
}

type Open = (server: SlowTarget) => Promise<SlowClient>

/** Of the two ports, for a port of one's own may serve several connections. */
export function connectionOf(client_port: number, server_port: number): string {
  return `${client_port} ${server_port}`
}

function connectionAt({ localPort, remotePort }: Socket): string | undefined {
  if (localPort === undefined || remotePort === undefined) return undefined
  return connectionOf(localPort, remotePort)
}

/** A path and a body, signed now. */
export function signed({ user, secret }: Signer, body: string): { path: string; body: string } {
  const now_s = String(Math.floor(Date.now() / 1_000))
  return { path: `/api/1/json/${user}/${now_s}/${signatureOf(now_s, secret, body)}`, body }
}

export function postOf(signer: Signer, text: string): string {
  const { path, body } = signed(signer, text)
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

const shows = (count: number): string =>
  JSON.stringify({
    ops: Array.from({ length: count }, (_, n) => ({ ...shown(n), type: 'show', obj: 'task' })),
  })
const shown = (n: number): object => ({ conv_id, ref: `${n}` })

/** Sends `first`, then byte after byte of `rest`, and reads nothing. */
async function tcp(port: number, first: string | Buffer, rest = ''): Promise<SlowClient> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {})
  socket.pause()
  socket.write(first)
  let at = 0
  return {
    connection: connectionAt(socket),
    drip: () =>
      void (rest !== '' && !socket.destroyed && socket.write(rest[at++ % rest.length] as string)),
    leave: () => socket.destroy(),
  }
}

/** After the handshake of TLS. */
async function tls({ grpc_port, keys }: SlowTarget, first: string): Promise<SlowClient> {
  const socket: Socket = connectTls({ port: grpc_port, ...keys, ALPNProtocols: ['h2'] })
  socket.on('error', () => {})
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]).catch(() => {})
  socket.pause()
  if (!socket.destroyed) socket.write(first, 'latin1')
  return { connection: connectionAt(socket), drip() {}, leave: () => socket.destroy() }
}

type RpcName = keyof ReturnType<typeof loadSchema>['service'] & string

/** Makes a call and takes nothing of its answer; the peer answers pings as any. */
async function call(
  { grpc_port, keys }: SlowTarget,
  rpc: RpcName,
  message: object,
  sent: 'ends' | 'goes on' | 'breaks off',
  window_bytes = 65_535,
): Promise<SlowClient> {
  const { path, requestSerialize } = loadSchema().service[rpc] as {
    path: string
    requestSerialize: (message: object) => Buffer
  }
  const session = connectHttp2(`https://localhost:${grpc_port}`, {
    ...keys,
    settings: { initialWindowSize: window_bytes },
  })
  session.on('error', () => {})
  let connection: string | undefined
  session.once('connect', (_, socket) => {
    connection = connectionAt(socket)
  })
  await Promise.race([once(session, 'remoteSettings'), once(session, 'close')]).catch(() => {})
  if (!session.closed && !session.destroyed) {
    const stream = session.request(rawHead(path))
    stream.on('error', () => {})
    const bytes = framed(requestSerialize(message))
    if (sent === 'ends') stream.end(bytes)
    else stream.write(sent === 'goes on' ? bytes : bytes.subarray(0, -1))
  }
  return { connection, drip() {}, leave: () => session.destroy() }
}

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const empty_settings = '\0\0\0\x04\0\0\0\0\0'
const hello = Buffer.from('16030100c8010000c40303', 'hex')
const head = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: localhost\r\n`

const batch = ({ tasks }: SlowTarget): object => ({
  ops: Array.from({ length: tasks }, (_, n) => ({ id: '', show: shown(n) })),
})
const large = { ops: [{ id: '', create: { conv_id, data_json: Buffer.alloc(1_000_000, 'x') } }] }

/** [what it does, how it is opened] */
export const slow_clients: readonly (readonly [string, Open])[] = [
  ['HTTP: sends nothing', ({ http_port }) => tcp(http_port, '')],
  ['HTTP: a head, byte by byte', ({ http_port }) => tcp(http_port, head('/'), 'X: y\r\n')],
  [
    'HTTP: a body, byte by byte',
    ({ http_port, hostile }) => tcp(http_port, postOf(hostile, shows(50)).slice(0, -500), ' '),
  ],
  [
    'HTTP: chunks, byte by byte',
    ({ http_port, hostile }) =>
      tcp(
        http_port,
        `POST ${signed(hostile, '').path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`,
        '1\r\n \r\n',
      ),
  ],
  [
    'HTTP: does not read a large answer',
    ({ http_port, hostile, tasks }) => tcp(http_port, postOf(hostile, shows(tasks))),
  ],
  [
    'HTTP: requests ahead, and reads none',
    ({ http_port }) => tcp(http_port, `${head('/healthz')}\r\n`.repeat(2_000)),
  ],
  [
    'HTTP: shows ahead, and reads none',
    ({ http_port, hostile }) => tcp(http_port, postOf(hostile, shows(1)).repeat(200)),
  ],
  ['gRPC: sends nothing', ({ grpc_port }) => tcp(grpc_port, '')],
  ['gRPC: half a handshake', ({ grpc_port }) => tcp(grpc_port, hello)],
  ['gRPC: no HTTP/2 after the handshake', (server) => tls(server, '')],
  ['gRPC: no settings', (server) => tls(server, preface)],
  ['gRPC: no answer to pings', (server) => tls(server, preface + empty_settings)],
  ['gRPC: a message that is not ended', (server) => call(server, 'ApplyOps', large, 'breaks off')],
  ['gRPC: does not read an answer', (server) => call(server, 'ApplyOps', batch(server), 'ends')],
  [
    // With a window, one whose batch is refused as too much would have nothing to read, and may stay.
    'gRPC: does not read a stream',
    (server) => call(server, 'StreamOps', batch(server), 'goes on', 0),
  ],
  [
    'gRPC: does not read changes',
    (server) => call(server, 'WatchTasks', { from: 'start', with_task: true }, 'ends'),
  ],
  ['operator: sends nothing', ({ operator_port }) => tcp(operator_port, '')],
  [
    'operator: a head, byte by byte',
    ({ operator_port }) => tcp(operator_port, head('/'), 'X: y\r\n'),
  ],
  [
    'operator: does not read changes',
    ({ operator_port }) => tcp(operator_port, `${head('/changes?from=start&data=1')}\r\n`),
  ],
  [
    'operator: does not read metrics',
    ({ operator_port }) => tcp(operator_port, `${head('/metrics')}\r\n`.repeat(30)),
  ],
]
