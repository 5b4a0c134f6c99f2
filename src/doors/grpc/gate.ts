/**
 * What a call meets before its message: who is it, and how long it may take to say what it wants.
 * So a caller without rights fills no memory, and a message that never ends holds nothing for long.
 *
 * The same question is asked again with the message itself, for its answer may have changed.
 */
import {
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js'
import { systemClock } from '../../words/clock.ts'
import { fault } from '../../words/faults.ts'
import { admit, type Door } from './door.ts'
import { failedCall, refusalOf } from './status.ts'

/** For the calls of `service_name`; health and reflection are open to each verified certificate. */
export function gate(door: Door, service_name: string): ServerInterceptor {
  const prefix = `/${service_name}/`
  return ({ path, requestStream }, call) => {
    if (!path.startsWith(prefix)) return new ServerInterceptingCall(call)
    const refuse = (thrown: unknown): void =>
      call.sendStatus(failedCall(refusalOf(thrown, door.onBug)))
    let cancel = (): void => {}
    return new ServerInterceptingCall(call, {
      start(next) {
        next({
          onReceiveMetadata(metadata, pass) {
            try {
              admit(door, call as Admitted)
            } catch (thrown) {
              return refuse(thrown)
            }
            if (!requestStream) cancel = armTimeout(door, () => refuse(fault('request_timeout')))
            pass(metadata)
          },
          onReceiveMessage(message, pass) {
            cancel()
            pass(message)
          },
          onCancel: () => cancel(),
        })
      },
    })
  }
}

/** An intercepted call knows its connection, as every call does. */
type Admitted = ServerInterceptingCallInterface & Parameters<typeof admit>[1]

function armTimeout(door: Door, fn: () => void): () => void {
  return systemClock.wake_at(systemClock.now_ms() + door.limits.request_ms_max, fn)
}
