/**
 * One call of ours over its HTTP/2 stream: messages in, messages out, and a status at the end, as
 * gRPC has them. Nothing goes out behind a status.
 *
 * grpc-js does the same with two node streams, a chain of interceptors and a metadata object for
 * each call, a third of what a bare call of one message costs. What it refuses is refused alike.
 */
import type { ServerHttp2Stream } from 'node:http2'
import { status } from '@grpc/grpc-js'
import { systemClock } from '../../words/clock.ts'
import { openInbox, type Receiving } from './inbox.ts'
import type { Pace } from './pace.ts'
import { type FailedCall, failedHeaders, okTrailers } from './status.ts'
import { timeoutOf } from './timeout.ts'

export interface Call {
  /** Asks for the next message or the end of them, which may come before this returns. */
  ask(): void
  /** A framed message; `onSent` once it is on its way, and never where it cannot be sent. */
  send(framed: Buffer, onSent: () => void): void
  /** Ends a call that went well, after its only message where one is given. */
  end(framed?: Buffer): void
  fail(how: FailedCall): void
}

/** What is told of a call. */
export interface Talk<Message> {
  onMessage(message: Message): void
  /** The caller has said all; comes when it is asked for, as a message does. */
  onEnd(): void
  /** Nothing more can be sent, be it that all was. */
  onOver(): void
}

export interface Calling<Message> extends Receiving<Message> {
  /** The header `grpc-timeout`. */
  readonly timeout: string | undefined
  /** Of its connection. */
  readonly pace: Pace
  /** Undefined where it has ended the call. */
  open(call: Call): Talk<Message> | undefined
}

interface Sending {
  readonly framed: Buffer
  readonly onSent: () => void
}

export function beginCall<Message>(stream: ServerHttp2Stream, calling: Calling<Message>): void {
  let talk: Talk<Message> | undefined
  /** What is sent in this turn goes out together. */
  let sending: Sending[] = []
  let has_head = false
  let trailers = okTrailers
  let is_over = false
  let stopWaiting = (): void => {}

  const isGone = (): boolean => is_over || stream.destroyed || stream.closed
  const leave = (): void => {
    if (is_over) return
    is_over = true
    stopWaiting()
    inbox.drop()
    process.nextTick(() => talk?.onOver())
  }
  const sendHead = (): void => {
    if (has_head) return
    has_head = true
    stream.respond(head, head_options)
    stream.once('wantTrailers', () => stream.sendTrailers(trailers))
  }
  const flush = (): void => {
    const sent = sending
    sending = []
    if (sent.length === 0 || isGone()) return
    sendHead()
    stream.write(joined(sent), (error) => {
      if (!error) for (const { onSent } of sent) onSent()
    })
  }
  const fail = (how: FailedCall): void => {
    if (isGone()) return
    flush()
    const told = failedHeaders(how)
    if (has_head) {
      trailers = told
      stream.end()
    } else stream.respond({ ...head, ...told }, { endStream: true })
    leave()
  }
  /** A head, the message and the trailers in one go. */
  const answer = (framed: Buffer): void => {
    if (isGone()) return
    sendHead()
    stream.end(framed)
    leave()
  }

  stream.on('error', ignore)
  stream.on('close', leave)
  // A caller's reset without an error closes nothing here where an answer of ours is stuck.
  stream.on('aborted', () => {
    leave()
    stream.destroy()
  })
  const inbox = openInbox(stream, calling, {
    onMessage: (message) => talk?.onMessage(message),
    onEnd: () => talk?.onEnd(),
    onFail: fail,
  })
  if (calling.timeout !== undefined) {
    const ms = timeoutOf(calling.timeout)
    if (ms === undefined) {
      fail({ code: status.INTERNAL, details: `Invalid grpc-timeout value "${calling.timeout}"` })
      return
    }
    stopWaiting = systemClock.wake_at(systemClock.now_ms() + ms, () =>
      fail({ code: status.DEADLINE_EXCEEDED, details: 'Deadline exceeded' }),
    )
  }
  talk = calling.open({
    ask: inbox.ask,
    send(framed, onSent) {
      if (isGone()) return
      if (sending.length === 0) process.nextTick(flush)
      sending.push({ framed, onSent })
    },
    end(framed) {
      if (framed !== undefined) return calling.pace(() => answer(framed))
      if (isGone()) return
      flush()
      sendHead()
      stream.end()
      leave()
    },
    fail,
  })
}

const head = { ':status': 200, 'content-type': 'application/grpc+proto' }
const head_options = { waitForTrailers: true, sendDate: false }

function joined([first, ...more]: readonly Sending[]): Buffer {
  const { framed } = first as Sending
  return more.length === 0 ? framed : Buffer.concat([framed, ...more.map((one) => one.framed)])
}

function ignore(): void {}
