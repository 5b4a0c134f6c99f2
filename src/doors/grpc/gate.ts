/**
 * What a call meets before its message: who is it, and how long it may take to say what it wants.
 * So a caller without rights fills no memory, and a message that never ends holds nothing for long.
 * The same question is asked again with the message itself, for its answer may have changed.
 *
 * A call of ours goes no further: grpc-js would make a node stream of each, and hand its messages
 * on one by one. Its messages come to a `Talk` instead, which answers the call itself.
 */
import {
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js'
import { admit, type Door } from './door.ts'
import type { Who } from './identity.ts'
import { failedCall, refusalOf } from './status.ts'

/** A call under our hands: messages and the status go out by it, and each message is asked for. */
export type Call = ServerInterceptingCallInterface

/** What is told of a call once its caller is let in. */
export interface Talk {
  onMessage(message: unknown): void
  /** The caller has said all; comes when it is asked for, as a message does. */
  onEnd(): void
  /** Nothing more can be sent, be it that all was. */
  onOver(): void
}

/** Begins a call, and asks for its first message. */
export type Opening = (call: Call, who: Who) => Talk

/** `openings`: by the path of the rpc. Health and reflection are open to each certificate. */
export function gate(door: Door, openings: ReadonlyMap<string, Opening>): ServerInterceptor {
  return ({ path }, call) => {
    const open = openings.get(path)
    if (open === undefined) return new ServerInterceptingCall(call)
    let talk: Talk | undefined
    return new ServerInterceptingCall(call, {
      start(next) {
        next({
          onReceiveMetadata() {
            try {
              const who = door.identity.whoIs(call)
              admit(door, who)
              talk = open(call, who)
            } catch (thrown) {
              call.sendStatus(failedCall(refusalOf(thrown, door.onBug)))
            }
          },
          onReceiveMessage: (message) => talk?.onMessage(message),
          onReceiveHalfClose: () => talk?.onEnd(),
          onCancel: () => talk?.onOver(),
        })
      },
    })
  }
}
