/**
 * What every call of our service meets before its message (a server interceptor of grpc-js): who
 * is it, and how long may it take to say what it wants. So a caller without rights fills no memory.
 * The first question is asked again with the message itself, for its answer may have changed.
 *
 * The messages of a stream are read one by one, as its handler asks for them: node would read
 * sixteen ahead. Answers are handed over without waiting for the one before, so that all that are
 * there in one turn go out together; `onSent` tells when one is on its way.
 */
import {
  type Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js'
import { systemClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { Who } from './authenticate.ts'
import { admit, type Door } from './door.ts'
import { failedStatus } from './fault-response.ts'

/** What a handler knows of its call beside its messages. */
export interface Gate {
  readonly who: Who
  /** Lets one more message of a stream be read. */
  next(): void
}

/** A message as a handler gives it; its bytes go with it, so that no second copy is kept. */
export interface Answer {
  bytes: Buffer | undefined
  /** Never, where it cannot be sent. */
  onSent(): void
}

export function takeBytes(answer: Answer): Buffer {
  const { bytes } = answer
  answer.bytes = undefined
  return bytes as Buffer
}

export interface Gates {
  readonly interceptor: ServerInterceptor
  /** The gate of the call that has this metadata. */
  of(metadata: Metadata): Gate
}

/** `path` is what the paths of our rpcs begin with. */
export function newGates(door: Door, path: string): Gates {
  /** A handler is given the very metadata that its interceptor hands on. */
  const gates = new WeakMap<Metadata, Gate>()

  const interceptor: ServerInterceptor = ({ path: of, requestStream }, call) => {
    const gated = new ServerInterceptingCall(call)
    return of.startsWith(path) ? Object.assign(gated, gateOf(call, requestStream)) : gated
  }
  const gateOf = (call: ServerInterceptingCallInterface, is_stream: boolean): Gated => {
    const refuse = (thrown: unknown): void => call.sendStatus(failedStatus(thrown, door.onBug))
    let stopWaiting = (): void => {}
    let is_wanted = false
    let is_asked = true
    const read = (): void => {
      if (!is_wanted || !is_asked) return
      is_wanted = false
      is_asked = !is_stream
      call.startRead()
    }
    const next = (): void => {
      is_asked = true
      read()
    }
    return {
      start: (listener) =>
        call.start({
          onReceiveMetadata(metadata) {
            try {
              checkSize(metadata, door.limits)
              const who = door.identity.whoIs(call.getPeer())
              admit(door, who)
              gates.set(metadata, { who, next })
            } catch (thrown) {
              return refuse(thrown)
            }
            if (!is_stream) {
              const until_ms = systemClock.now_ms() + door.limits.request_ms_max
              stopWaiting = systemClock.wake_at(until_ms, () => refuse(fault('request_timeout')))
            }
            listener.onReceiveMetadata(metadata)
          },
          onReceiveMessage: (message) => listener.onReceiveMessage(message),
          onReceiveHalfClose() {
            stopWaiting()
            listener.onReceiveHalfClose()
          },
          onCancel() {
            stopWaiting()
            listener.onCancel()
          },
        }),
      startRead() {
        is_wanted = true
        read()
      },
      sendMessage(answer: Answer, onTaken) {
        call.sendMessage(answer, answer.onSent)
        onTaken()
      },
    }
  }
  return { interceptor, of: (metadata) => gates.get(metadata) as Gate }
}

/** What a call of ours does otherwise than any. */
type Gated = Pick<ServerInterceptingCallInterface, 'start' | 'startRead' | 'sendMessage'>

/** Throws `bad_request`. The names of HTTP/2 itself are not counted. */
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
