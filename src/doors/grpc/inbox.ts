/**
 * The messages of a call as they come in: whole, read, and handed on one by one as each is asked
 * for, and the end behind the last of them.
 *
 * The stream runs as long as a message is asked for. What is whole and was not asked for is kept,
 * no more of it than came at once, and the stream stands until it is.
 */
import type { ServerHttp2Stream } from 'node:http2'
import { status } from '@grpc/grpc-js'
import { inflate } from './inflate.ts'
import type { FailedCall } from './status.ts'
import { type Frame, newUnframe } from './unframe.ts'

export interface Inbox {
  /** Asks for the next message or the end of them, which may come before this returns. */
  ask(): void
  /** What has not been handed on is for nobody, and what still comes neither. */
  drop(): void
}

export interface Receiving<Message> {
  /** The header `grpc-encoding`. */
  readonly encoding: string
  readonly bytes_max: number
  /** Throws where the bytes are no such message. */
  read(bytes: Buffer): Message
}

export interface Told<Message> {
  onMessage(message: Message): void
  onEnd(): void
  /** The call cannot go on. */
  onFail(how: FailedCall): void
}

export function openInbox<Message>(
  stream: ServerHttp2Stream,
  { encoding, bytes_max, read }: Receiving<Message>,
  told: Told<Message>,
): Inbox {
  let unframe = newUnframe(bytes_max)
  let whole: Frame[] = []
  let is_asked = false
  let is_handing = false
  let is_inflating = false
  let has_ended = false
  let is_dropped = false

  /** What is asked for within the call that hands a message on comes next: a loop, no nest. */
  const handOn = (): void => {
    if (is_handing) return
    is_handing = true
    while (is_asked && !is_inflating && !is_dropped) {
      const next = whole.shift()
      if (next === undefined && !has_ended) break
      if (next?.is_compressed) inflateNext(next)
      else {
        is_asked = false
        if (next === undefined) told.onEnd()
        else handOnOne(next)
      }
    }
    is_handing = false
    if ((is_asked && !is_inflating) || is_dropped) letRun()
    else stream.pause()
  }
  const handOnOne = ({ message }: Frame): void => {
    let value: Message
    try {
      value = read(message)
    } catch {
      told.onFail({ code: status.INTERNAL, details: 'Error deserializing request' })
      return
    }
    told.onMessage(value)
  }
  const inflateNext = ({ message }: Frame): void => {
    is_inflating = true
    inflate(message, encoding, bytes_max, (failed, plain) => {
      is_inflating = false
      if (is_dropped) return
      if (failed !== undefined) told.onFail(failed)
      else whole.unshift({ message: plain, is_compressed: false })
      handOn()
    })
  }
  const letRun = (): void => {
    if (stream.isPaused()) stream.resume()
  }

  stream.on('data', (chunk: Buffer) => {
    if (is_dropped) return
    try {
      whole.push(...unframe(chunk))
    } catch (thrown) {
      const { message } = thrown as RangeError
      told.onFail({ code: status.RESOURCE_EXHAUSTED, details: message })
    }
    handOn()
  })
  stream.on('end', () => {
    has_ended = true
    handOn()
  })
  return {
    ask() {
      is_asked = true
      handOn()
    },
    drop() {
      is_dropped = true
      whole = []
      // The stream may stand for long: it must not keep what there is of a message.
      unframe = () => []
      letRun()
    },
  }
}
