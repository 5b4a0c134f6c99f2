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
import { only_reads, type ServedEngine, type Standing } from '../../engine/served-engine.ts'
import type { Underway } from '../http/underway.ts'
import { type Authenticator, authenticate, type Peer } from './authenticate.ts'
import { faultStatus } from './fault-response.ts'
import type { Intake, IntakeCall, Reception } from './receive-bounds.ts'
import type { UnreadAnswers } from './sent-answers.ts'

/** What every call of a running server needs. */
export interface ServerContext {
  readonly engine: ServedEngine
  readonly limits: Limits
  readonly authenticator: Authenticator
  readonly onBug: (bug: unknown) => void
  /** Called when the server begins to drain; each ends a long call. */
  readonly drain_callbacks: Set<() => void>
  /** The calls that a drain waits for. */
  readonly underway: Underway
  /** The calls whose message is not in yet. */
  readonly reception: Reception<IntakeCall>
  readonly intake: Pick<Intake, 'isCrowded'>
  readonly unread: UnreadAnswers
  /** Sends an answer, now or soon. */
  answer(send: () => void): void
  draining: boolean
}

/** A decoded message, and the bytes of which it was made. */
export interface Received {
  readonly message: unknown
  readonly bytes: Buffer
}

export interface Rpc {
  /** Decodes a message. Throws for malformed bytes. */
  read(bytes: Buffer, ops_max: number): unknown
  /** Serves a call whose message is in, or a stream before its messages are. */
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
  readonly intake: IntakeCall
  /** Of `Counters.beginRequest`. */
  began_ms: number
  /** The message of a call that has one. */
  request: unknown
  is_over: boolean
  /** Set by the rpc of a stream. */
  onMessage(message: unknown): void
  onHalfClose(): void
  /** Called at the end of every call. */
  onOver(): void
  /** Until it is told to the caller. */
  standing: Standing | undefined
  is_pulled: boolean
  is_pulling: boolean
  /** Sent messages that have not left for the caller. */
  unsent: number
  /** Called once all have left. */
  onLeft(): void
}

/** The listener with which grpc-js tells of a call of this rpc. */
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
        else context.reception.begin(call.intake)
        pull(call)
      } catch (thrown) {
        refuse(context, from, thrown)
      }
    },
    onReceiveMessage({ message, bytes }: Received) {
      if (call === undefined) return
      call.intake.arrived(bytes)
      if (requestStream) call.onMessage(message)
      else if (call.request !== undefined) end(call, not_one_message)
      else {
        call.intake.hold(bytes.length)
        call.request = message
        pull(call)
      }
    },
    onReceiveHalfClose() {
      // grpc-js tells it after the end of a call, too.
      if (call === undefined || call.is_over) return
      if (!requestStream) endReception(call)
      if (requestStream) call.onHalfClose()
      else if (call.request === undefined) end(call, not_one_message)
      else rpc.serve(call)
    },
    // grpc-js tells the end of every call so.
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

/** A call of another service, under the bounds of messages that are not in yet. */
export function passedOn(
  context: ServerContext,
  from: ServerInterceptingCallInterface,
  { requestStream }: { readonly requestStream: boolean },
): ServerInterceptingCall {
  let endIntake = ignore
  const listener = new ServerListenerBuilder()
    .withOnReceiveMetadata((metadata, next) => {
      const peer = context.authenticator.peerAt(from.getConnectionInfo())
      const intake = peer.intake.begin((reason) => refuse(context, from, reason))
      if (!requestStream) context.reception.begin(intake)
      endIntake = () => {
        context.reception.end(intake)
        intake.end()
      }
      next(metadata)
    })
    .withOnReceiveHalfClose((next) => {
      endIntake()
      next()
    })
    .withOnCancel(() => endIntake())
    .build()
  return new ServerInterceptingCall(from, { start: (next) => next(listener) })
}

/** No message of the call comes any more. */
function endReception({ context, intake }: ServedCall): void {
  context.reception.end(intake)
  intake.end()
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
  const standing = context.engine.standing?.()
  if (standing !== undefined && metadata.get('conveyor-role')[0] === 'owner') {
    throw fault('shutting_down', only_reads)
  }
  return {
    context,
    path,
    from,
    metadata,
    peer,
    intake: peer.intake.begin((reason) => refuse(context, from, reason)),
    began_ms,
    request: undefined,
    is_over: false,
    onMessage: ignore,
    onHalfClose: ignore,
    onOver: ignore,
    standing,
    is_pulled: false,
    is_pulling: false,
    unsent: 0,
    onLeft: ignore,
  }
}

/** Lets one more message be read. */
export function pull(call: ServedCall): void {
  call.is_pulled = true
  // The message may be there already, and its rpc pulls the next one.
  if (call.is_pulling) return
  call.is_pulling = true
  while (call.is_pulled) {
    call.is_pulled = false
    call.from.startRead()
  }
  call.is_pulling = false
}

/** `onSent` is called when the message is on its way; never, where it cannot be sent. */
export function send(call: ServedCall, bytes: Buffer, onSent: () => void): void {
  // grpc-js would neither send it nor tell that it did not.
  if (call.is_over) return
  if (call.standing !== undefined) call.from.sendMetadata(metadataOf(call.standing))
  call.standing = undefined
  if (++call.unsent === 1) call.onLeft = call.context.unread.sent(call.peer.socket)
  call.from.sendMessage(bytes, () => {
    if (--call.unsent === 0) call.onLeft()
    onSent()
  })
}

/** Ends the call, once what was sent is on its way. */
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

function metadataOf({ seq, age_ms }: Standing): Metadata {
  const metadata = new Metadata()
  metadata.set('conveyor-role', 'standby')
  metadata.set('conveyor-position', String(seq))
  metadata.set('conveyor-age-ms', String(age_ms))
  return metadata
}

/** Calls `end` at most once, with the reason. Must be disposed of, by the returned function. */
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
