/**
 * One call of our service, in place of the streams that grpc-js would make for a handler: it uses
 * what grpc-js gives an interceptor.
 *
 * The caller is authenticated and the metadata bounded before a message is read, so a caller
 * without rights takes no memory. Rpcs authenticate again with each message, because rights may
 * change. A message is read when the rpc pulls. Sent messages do not wait for each other, so all
 * messages of one turn of the event loop leave together.
 */

import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  ServerListenerBuilder,
  status,
} from '@grpc/grpc-js'
import { systemClock } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import { only_reads, type ServedEngine, type Staleness } from '../../engine/served-engine.ts'
import type { Underway } from '../http/underway.ts'
import { type Authenticator, authenticate, type Peer } from './authenticate.ts'
import { faultStatus } from './fault-response.ts'
import type { ReceiveBounds, ReceivingCall, Reception } from './receive-bounds.ts'
import type { UnreadAnswers } from './sent-answers.ts'

/** The state of a running server. */
export interface ServerContext {
  readonly engine: ServedEngine
  readonly limits: Limits
  readonly authenticator: Authenticator
  readonly onBug: (bug: unknown) => void
  /** Each ends a long call when the server begins to drain. */
  readonly drain_callbacks: Set<() => void>
  /** The calls that a drain waits for. */
  readonly underway: Underway
  /** The calls whose message has not arrived. */
  readonly reception: Reception<ReceivingCall>
  readonly receive_bounds: Pick<ReceiveBounds, 'isCrowded'>
  readonly unread: UnreadAnswers
  /** Sends an answer, now or soon. */
  answer(send: () => void): void
  draining: boolean
}

/** A decoded message and its bytes. */
export interface Received {
  readonly message: unknown
  readonly bytes: Buffer
}

export interface Rpc {
  /** Decodes a message. Throws for malformed bytes. */
  read(bytes: Buffer, ops_max: number): unknown
  /** Serves a call whose message has arrived, or a stream from its start. */
  serve(call: ServedCall): void
}

type EndStatus = Parameters<ServerInterceptingCallInterface['sendStatus']>[0]
type CallListener = Parameters<ServerInterceptingCallInterface['start']>[0]

const ok: EndStatus = { code: status.OK, details: 'OK' }

export interface ServedCall {
  readonly context: ServerContext
  readonly path: string
  readonly from: ServerInterceptingCallInterface
  readonly metadata: Metadata
  readonly peer: Peer
  readonly receiving: ReceivingCall
  /** Of `Counters.beginRequest`. */
  began_ms: number
  /** The message; undefined in a stream. */
  request: unknown
  is_over: boolean
  /** Set by the rpc of a stream, as the next. */
  onMessage(message: unknown): void
  onHalfClose(): void
  /** Called at the end of every call. */
  onOver(): void
  /** Of a standby, until it is sent to the caller. */
  staleness: Staleness | undefined
  is_pulled: boolean
  is_pulling: boolean
  /** Sent messages that have not left for the caller. */
  unsent: number
  /** Called once all have left. */
  onLeft(): void
}

/** The listener through which grpc-js reports the events of a call of this rpc. */
export function listenerFor(
  context: ServerContext,
  from: ServerInterceptingCallInterface,
  rpc: Rpc,
  { path, requestStream }: { readonly path: string; readonly requestStream: boolean },
): CallListener {
  let call: ServedCall | undefined
  return {
    onReceiveMetadata(metadata) {
      context.underway.begin()
      try {
        call = begin(context, from, path, metadata)
        if (requestStream) rpc.serve(call)
        else context.reception.begin(call.receiving)
        pull(call)
      } catch (thrown) {
        refuse(context, from, thrown)
      }
    },
    onReceiveMessage({ message, bytes }: Received) {
      if (call === undefined) return
      call.receiving.arrived(bytes)
      if (requestStream) call.onMessage(message)
      else if (call.request !== undefined) end(call, not_one_message)
      else {
        call.receiving.hold(bytes.length)
        call.request = message
        pull(call)
      }
    },
    onReceiveHalfClose() {
      // grpc-js reports it after the end of a call, too.
      if (call === undefined || call.is_over) return
      if (!requestStream) endReception(call)
      if (requestStream) call.onHalfClose()
      else if (call.request === undefined) end(call, not_one_message)
      else rpc.serve(call)
    },
    // grpc-js reports the end of every call this way.
    onCancel() {
      context.underway.end()
      if (call === undefined) return
      call.is_over = true
      endReception(call)
      call.onOver()
      call.onLeft()
    },
  }
}

/** A call of another service, under the bounds of messages that have not arrived. */
export function passedOn(
  context: ServerContext,
  from: ServerInterceptingCallInterface,
  { requestStream }: { readonly requestStream: boolean },
): ServerInterceptingCall {
  let endReceiving = ignore
  const listener = new ServerListenerBuilder()
    .withOnReceiveMetadata((metadata, next) => {
      const peer = context.authenticator.peerAt(from.getConnectionInfo())
      const receiving = peer.receiver.begin((reason) => refuse(context, from, reason))
      if (!requestStream) context.reception.begin(receiving)
      endReceiving = () => {
        context.reception.end(receiving)
        receiving.end()
      }
      next(metadata)
    })
    .withOnReceiveHalfClose((next) => {
      endReceiving()
      next()
    })
    .withOnCancel(() => endReceiving())
    .build()
  return new ServerInterceptingCall(from, { start: (next) => next(listener) })
}

/** The call receives no more messages. */
function endReception({ context, receiving }: ServedCall): void {
  context.reception.end(receiving)
  receiving.end()
}

/** Throws a fault for a call that is not served. */
function begin(
  context: ServerContext,
  from: ServerInterceptingCallInterface,
  path: string,
  metadata: Metadata,
): ServedCall {
  checkSize(metadata, context.limits)
  const peer = context.authenticator.peerAt(from.getConnectionInfo())
  authenticate(context, peer)
  const began_ms = context.engine.counters.beginRequest()
  const staleness = context.engine.staleness?.()
  if (staleness !== undefined && metadata.get('conveyor-role')[0] === 'owner') {
    throw fault('shutting_down', only_reads)
  }
  return {
    context,
    path,
    from,
    metadata,
    peer,
    receiving: peer.receiver.begin((reason) => refuse(context, from, reason)),
    began_ms,
    request: undefined,
    is_over: false,
    onMessage: ignore,
    onHalfClose: ignore,
    onOver: ignore,
    staleness,
    is_pulled: false,
    is_pulling: false,
    unsent: 0,
    onLeft: ignore,
  }
}

/** Lets one more message be read. */
export function pull(call: ServedCall): void {
  call.is_pulled = true
  // The message may have arrived already, and its rpc pulls the next one.
  if (call.is_pulling) return
  call.is_pulling = true
  while (call.is_pulled) {
    call.is_pulled = false
    call.from.startRead()
  }
  call.is_pulling = false
}

/** `onSent` is called once the message has left; never if it cannot be sent. */
export function send(call: ServedCall, bytes: Buffer, onSent: () => void): void {
  // grpc-js would drop it silently.
  if (call.is_over) return
  if (call.staleness !== undefined) call.from.sendMetadata(metadataOf(call.staleness))
  call.staleness = undefined
  if (++call.unsent === 1) call.onLeft = call.context.unread.sent(call.peer.socket)
  call.from.sendMessage(bytes, () => {
    if (--call.unsent === 0) call.onLeft()
    onSent()
  })
}

/** Ends the call once its messages have left. */
export function end(call: ServedCall, how = ok): void {
  call.from.sendStatus(how)
}

export function refuse(
  context: ServerContext,
  from: ServerInterceptingCallInterface,
  thrown: unknown,
): void {
  from.sendStatus(faultStatus(thrown, context, { address: from.getPeer() }))
}

function ignore(): void {}

const not_one_message: EndStatus = {
  code: status.UNIMPLEMENTED,
  details: 'the call must have one message',
}

/** Throws `bad_request`. The pseudo-headers of HTTP/2 are not counted. */
function checkSize(metadata: Metadata, { header_bytes_max, header_count_max }: Limits): void {
  let bytes = 0
  let count = 0
  for (const [name, values] of Object.entries(metadata.toJSON())) {
    for (const value of values) bytes += name.length + value.length
    count += values.length
  }
  if (bytes > header_bytes_max) throw fault('bad_request', 'the metadata is over the limit')
  if (count > header_count_max) throw fault('bad_request', 'too many values of metadata')
}

function metadataOf({ seq, age_ms }: Staleness): Metadata {
  const metadata = new Metadata()
  metadata.set('conveyor-role', 'standby')
  metadata.set('conveyor-position', String(seq))
  metadata.set('conveyor-age-ms', String(age_ms))
  return metadata
}

/**
 * The bounds of a long call: calls `end` at most once, with `shutting_down`, when the server drains
 * or the call is older than `grpc_age_ms_max`. The returned function disposes of it.
 */
export function endInTime(
  { drain_callbacks, limits }: ServerContext,
  end: (reason: Fault) => void,
): () => void {
  const drain = (): void => end(fault('shutting_down'))
  drain_callbacks.add(drain)
  const cancelAge = systemClock.wake_at(systemClock.now_ms() + limits.grpc_age_ms_max, () =>
    end(fault('shutting_down', 'this call has gone on for long enough: make another')),
  )
  return () => {
    drain_callbacks.delete(drain)
    cancelAge()
  }
}
