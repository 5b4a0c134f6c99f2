/**
 * HTTP/2 without a gRPC client, for calls that no client makes.
 */
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import type { TestGrpc } from './grpc-server.ts'

/** A session that the server has taken, with the shared client's certificate. */
export async function rawSession(server: TestGrpc): Promise<ClientHttp2Session> {
  const { cert, key } = server.client
  const session = connect(`https://${server.grpc.address}`, { ca: server.ca.cert, cert, key })
  session.on('error', () => {})
  await once(session, 'remoteSettings')
  return session
}

export const rawHead = (path: string) => ({
  ':method': 'POST',
  ':path': path,
  'content-type': 'application/grpc',
  te: 'trailers',
})

/** A message with the five bytes that stand before it on the wire. */
export function framed(message: Buffer): Buffer {
  const start = Buffer.alloc(5)
  start.writeUInt32BE(message.length, 1)
  return Buffer.concat([start, message])
}

/** The messages in what arrived. */
export function unframed(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1)
    messages.push(bytes.subarray(at + 5, end))
    at = end
  }
  return messages
}
