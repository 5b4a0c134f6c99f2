/**
 * The server interceptor in front of our service: it authenticates a call and bounds its metadata
 * before the first message is read, so that a caller without rights takes no memory. Handlers
 * authenticate again with each message, because the rights may have changed.
 *
 * The messages of a stream are read one at a time, when the handler pulls; node alone would read 16
 * ahead. Responses are passed on without waiting for the one before, so that all responses of one
 * turn of the event loop leave together.
 */
import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js'
import { systemClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import { only_reads, type ServedEngine, type Standing } from '../../engine/served-engine.ts'
import type { Underway } from '../http/underway.ts'
import { type Authenticator, authenticate, type Peer } from './authenticate.ts'
import { faultStatus } from './fault-response.ts'

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
  draining: boolean
}

/** What a handler knows of its call beside the messages. */
export interface CallContext {
  readonly peer: Peer
  /** Of `Counters.beginRequest`. */
  readonly began_ms: number
  /** Lets one more message of a stream be read. */
  pull(): void
}

/** A response in the form in which a handler sends it. */
export interface EncodedResponse {
  /** Cleared when grpc-js takes the bytes, so that no second reference keeps them alive. */
  bytes: Buffer | undefined
  /** Called when the response is on its way; never, where it cannot be sent. */
  onSent(): void
}

export function takeBytes(response: EncodedResponse): Buffer {
  const { bytes } = response
  response.bytes = undefined
  return bytes as Buffer
}

/** The context of the call that has this metadata object. */
export type ContextOf = (metadata: Metadata) => CallContext

/** For calls whose time is not the server's: waits of their callers. */
export function untimed(contextOf: ContextOf): ContextOf {
  return (metadata) => ({ ...contextOf(metadata), began_ms: 0 })
}

export interface CallInterceptor {
  readonly interceptor: ServerInterceptor
  readonly contextOf: ContextOf
}

/** Intercepts the calls whose path starts with `path_prefix`; all others pass unchanged. */
export function newInterceptor(context: ServerContext, path_prefix: string): CallInterceptor {
  /** A handler receives the very metadata object that its interceptor passes on. */
  const contexts = new WeakMap<Metadata, CallContext>()

  const overridesFor = (call: ServerInterceptingCallInterface, is_stream: boolean): Overrides => {
    const refuse = (thrown: unknown): void =>
      call.sendStatus(faultStatus(thrown, context, { address: call.getPeer() }))
    let cancelTimeout = (): void => {}
    /** grpc-js would call the handler of a call that has ended, and never tell it of the end. */
    let is_over = false
    let is_requested = false
    let standing: Standing | undefined
    let is_pulled = true
    const readIfPulled = (): void => {
      if (!is_requested || !is_pulled) return
      is_requested = false
      is_pulled = !is_stream
      call.startRead()
    }
    const pull = (): void => {
      is_pulled = true
      readIfPulled()
    }
    return {
      start(listener) {
        context.underway.begin()
        call.start({
          onReceiveMetadata(metadata) {
            try {
              checkSize(metadata, context.limits)
              const peer = context.authenticator.peerAt(call.getPeer())
              authenticate(context, peer)
              const began_ms = context.engine.counters.beginRequest()
              standing = context.engine.standing?.()
              if (standing !== undefined && metadata.get('conveyor-role')[0] === 'owner') {
                throw fault('shutting_down', only_reads)
              }
              contexts.set(metadata, { peer, began_ms, pull })
            } catch (thrown) {
              return refuse(thrown)
            }
            if (!is_stream) {
              const until_ms = systemClock.now_ms() + context.limits.request_ms_max
              cancelTimeout = systemClock.wake_at(until_ms, () => refuse(fault('request_timeout')))
            }
            listener.onReceiveMetadata(metadata)
          },
          onReceiveMessage: (message) => listener.onReceiveMessage(message),
          onReceiveHalfClose() {
            cancelTimeout()
            if (!is_over) listener.onReceiveHalfClose()
          },
          onCancel() {
            cancelTimeout()
            is_over = true
            // grpc-js tells the end of every call so.
            context.underway.end()
            listener.onCancel()
          },
        })
      },
      startRead() {
        is_requested = true
        readIfPulled()
      },
      sendMessage(response: EncodedResponse, onTaken) {
        if (standing !== undefined) call.sendMetadata(metadataOf(standing))
        standing = undefined
        call.sendMessage(response, response.onSent)
        onTaken()
      },
    }
  }
  return {
    interceptor({ path, requestStream }, call) {
      const intercepted = new ServerInterceptingCall(call)
      if (!path.startsWith(path_prefix)) return intercepted
      return Object.assign(intercepted, overridesFor(call, requestStream))
    },
    contextOf: (metadata) => contexts.get(metadata) as CallContext,
  }
}

/** The methods that an intercepted call overrides. */
type Overrides = Pick<ServerInterceptingCallInterface, 'start' | 'startRead' | 'sendMessage'>

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
