/**
 * What the server knows of a connection, and how one ends.
 *
 * Closing a socket on which bytes still arrive makes the kernel send a reset, and a reset can take
 * the answer with it before the client has read it. So a connection that is to end after an answer
 * lingers: our side is shut once the answer is written, what still arrives is thrown away, and it
 * is destroyed when the client has closed its side or after `linger_ms`.
 *
 * Times here are of sockets and the real clock, not of the engine's, which a test may move by days.
 */
import type { Socket } from 'node:net'
import { systemClock } from '../../core/clock.ts'
import type { AnswerAccount } from '../../engine/unread-answers.ts'
import type { BodyReading } from './body.ts'
import { type FaultResponse, rawResponse } from './fault-response.ts'

export interface Connection {
  readonly socket: Socket
  /** What it has not read yet. */
  readonly answers: AnswerAccount
  /** Over the bound of connections: gets one answer and ends. */
  readonly is_over_limit: boolean
  /** Requests whose answer is not written yet. */
  open: number
  /** The body that is being read, or was read last. */
  reading: BodyReading | undefined
  /** Ends with an answer already given or chosen: nothing that arrives counts any more. */
  closing: boolean
  /** Said when the open requests are answered: the connection broke behind them. */
  final_error: FaultResponse | undefined
}

export const linger_ms = 2_000

export function connectionOf(
  socket: Socket,
  answers: AnswerAccount,
  is_over_limit: boolean,
): Connection {
  const state = { open: 0, reading: undefined, closing: false, final_error: undefined }
  return { socket, answers, is_over_limit, ...state }
}

/** The answer that is written last ends the connection; node calls `destroySoon` after it. */
export function closeAfterAnswer(connection: Connection): void {
  connection.closing = true
  const { socket } = connection
  socket.destroySoon = () => linger(socket)
}

/**
 * Answers where no request is open to carry the answer, then ends the connection. Waits for the
 * open requests, whose answers come first.
 */
export function sendFinalError(connection: Connection, refusal: FaultResponse): void {
  connection.closing = true
  if (connection.open > 0) {
    connection.final_error = refusal
    return
  }
  connection.final_error = undefined
  connection.socket.write(rawResponse(refusal))
  linger(connection.socket)
}

/** Destroys the socket in `after_ms` if it is still there. */
export function destroyLater(socket: Socket, after_ms: number): void {
  const cancel = systemClock.wake_at(systemClock.now_ms() + after_ms, () => socket.destroy())
  socket.once('close', cancel)
}

function linger(socket: Socket): void {
  if (socket.destroyed) return
  socket.end()
  destroyLater(socket, linger_ms)
}
