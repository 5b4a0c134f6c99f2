/**
 * What a call meets before its message: who is it. So a caller without rights fills no memory. The
 * same question is asked again with the message itself, for its answer may have changed.
 *
 * Calls of ours are taken here as HTTP/2 streams, before grpc-js makes anything of them, and what
 * is no call of ours goes on to it: health, reflection, rpcs that are not there, and what is no
 * gRPC at all. It has no way for this, so its own handler of streams is replaced, which stands as
 * it does for as long as its version is pinned.
 */
import type { Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Server } from '@grpc/grpc-js'
import { beginCall, type Call, type Talk } from './call.ts'
import { admit, type Door } from './door.ts'
import type { Who } from './identity.ts'
import { newPace, type Pace } from './pace.ts'
import { failedCall, refusalOf } from './status.ts'

/** How the calls of an rpc are taken. */
export interface Rpc<Message> {
  /** Throws where the bytes are no such message. */
  read(bytes: Buffer): Message
  /** Begins a call whose caller is let in, and asks for its first message. */
  open(call: Call, who: Who): Talk<Message>
}

/** What this file needs of a server of grpc-js. */
interface Streams {
  _streamHandler(interceptors: object, stream: ServerHttp2Stream, headers: Headers): void
  /** Counts what keeps a connection from being idle. */
  onStreamOpened(stream: ServerHttp2Stream): void
}

type Headers = IncomingHttpHeaders

/** Before the server has a connection. `rpcs`: by the path of each. */
export function takeCalls(
  server: Server,
  door: Door,
  rpcs: ReadonlyMap<string | undefined, Rpc<unknown>>,
): void {
  const streams = server as unknown as Streams
  const paces = new WeakMap<Http2Session, Pace>()
  const paceOf = (connection: Http2Session): Pace => {
    const known = paces.get(connection)
    if (known !== undefined) return known
    const pace = newPace()
    paces.set(connection, pace)
    return pace
  }
  const handOn = streams._streamHandler.bind(streams)
  streams._streamHandler = (interceptors, stream, headers) => {
    if (stream.destroyed || stream.closed) return
    const rpc = rpcs.get(headers[':path'])
    const { session } = stream
    if (rpc === undefined || session === undefined || !isGrpc(headers)) {
      return handOn(interceptors, stream, headers)
    }
    streams.onStreamOpened(stream)
    beginCall(stream, {
      pace: paceOf(session),
      timeout: textOf(headers['grpc-timeout']),
      encoding: textOf(headers['grpc-encoding']) ?? 'identity',
      bytes_max: door.limits.body_bytes_max,
      read: rpc.read,
      open(call) {
        try {
          const who = door.identity.whoIs(session)
          admit(door, who)
          return rpc.open(call, who)
        } catch (thrown) {
          call.fail(failedCall(refusalOf(thrown, door.onBug)))
          return undefined
        }
      },
    })
  }
}

function isGrpc({ 'content-type': type }: Headers): boolean {
  return type?.startsWith('application/grpc') === true
}

/** The first where a header comes more than once. */
function textOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
