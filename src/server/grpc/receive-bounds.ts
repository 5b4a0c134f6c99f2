/**
 * Bounds what has arrived over gRPC and the engine does not have yet, in memory and in time: parts
 * of messages, messages whose call goes on, and batches that wait in their stream.
 *
 * grpc-js collects a message of up to `body_bytes_max` for each call and does not report progress.
 * So the bytes that a connection has received count, less those of its complete messages, while one
 * of its calls may bring a message. All connections together have `unverified_bytes_max`, checked
 * every `check_ms`; beyond it the connection with the most bytes is refused with `overloaded` and
 * closed, because only that frees what grpc-js has collected.
 */

import type { Socket } from 'node:net'
import { deflateRawSync } from 'node:zlib'
import { systemClock } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'

/** What a connection has sent that the engine does not have yet. */
export interface ConnectionIntake {
  /** A call begins that may bring a message; `refuse` ends it. */
  begin(refuse: (reason: Fault) => void): IntakeCall
}

export interface IntakeCall {
  /** A message is there in whole. */
  arrived(message: Buffer): void
  /** Bytes of messages that stay here; less than 0 once they go. */
  hold(bytes: number): void
  /** No message comes any more, and none is held. A second call does nothing. */
  end(): void
  /** Ends it and, where much of a message is here, the connection, as nothing else frees that. */
  giveUp(reason: Fault): void
}

export interface Intake {
  connected(socket: Socket): ConnectionIntake
  /** Whether so much is here that a stream with batches under way should read no further. */
  isCrowded(): boolean
}

export const look_ms = 50
/** Lets a refusal be sent before its connection is closed. */
const close_ms = 100
/** What HTTP/2 needs beside the bytes of a message, about: of a call, and of a message. */
const call_bytes = 256
const message_bytes = 128
const frame_bytes = 16 * 1024
/** So much of a message that came compressed is compressed again, to tell how long it was. */
const sample_bytes = 64 * 1024
/** In front of a message, uncompressed, are its flag and its length. */
const head_bytes = 5

interface State {
  readonly socket: Socket
  readonly calls: Set<(reason: Fault) => void>
  /** Of the bytes received, those that are no part of an unfinished message. */
  done_bytes: number
  held_bytes: number
  is_closing: boolean
}

export function newIntake({ unverified_bytes_max, large_body_bytes }: Limits): Intake {
  const active = new Set<State>()
  let looks = false
  let crowded_bytes = 0

  function look(): void {
    looks = false
    let all_bytes = 0
    for (const state of active) all_bytes += bytesOf(state)
    while (all_bytes > unverified_bytes_max && active.size > 0) {
      const largest = [...active].reduce((one, other) =>
        bytesOf(other) > bytesOf(one) ? other : one,
      )
      all_bytes -= bytesOf(largest)
      active.delete(largest)
      const reason = fault('overloaded', 'too many bytes of messages that are not in yet')
      for (const refuse of [...largest.calls]) refuse(reason)
      close(largest)
    }
    crowded_bytes = all_bytes
    if (active.size > 0) lookLater()
  }

  function lookLater(): void {
    if (looks) return
    looks = true
    systemClock.wake_at(systemClock.now_ms() + look_ms, look)
  }

  function beginCall(state: State, refuse: (reason: Fault) => void): IntakeCall {
    const { calls, socket } = state
    let held_bytes = 0
    let is_open = true
    if (calls.size === 0) state.done_bytes = socket.bytesRead
    calls.add(refuse)
    addDone(state, call_bytes)
    if (!state.is_closing) active.add(state)
    lookLater()
    const hold = (bytes: number): void => {
      if (!is_open) return
      held_bytes += bytes
      state.held_bytes += bytes
      crowded_bytes += bytes
    }
    const end = (): void => {
      if (!is_open) return
      hold(-held_bytes)
      is_open = false
      calls.delete(refuse)
      if (calls.size === 0) active.delete(state)
    }
    return {
      hold,
      end,
      arrived(message) {
        // All that was received before is of this call.
        if (calls.size === 1) state.done_bytes = socket.bytesRead
        else addDone(state, receivedBytes(message))
      },
      giveUp(reason) {
        if (unfinishedBytes(state) > large_body_bytes) close(state)
        refuse(reason)
        end()
      },
    }
  }

  return {
    connected(socket) {
      const state: State = {
        ...{ socket, calls: new Set(), done_bytes: 0, held_bytes: 0, is_closing: false },
      }
      socket.once('close', () => active.delete(state))
      return { begin: (refuse) => beginCall(state, refuse) }
    },
    isCrowded: () => 2 * crowded_bytes > unverified_bytes_max,
  }
}

function close(state: State): void {
  if (state.is_closing) return
  state.is_closing = true
  systemClock.wake_at(systemClock.now_ms() + close_ms, () => state.socket.destroy())
}

function unfinishedBytes({ socket, done_bytes }: State): number {
  return Math.max(0, socket.bytesRead - done_bytes)
}

function bytesOf(state: State): number {
  return state.held_bytes + unfinishedBytes(state)
}

function addDone(state: State, bytes: number): void {
  state.done_bytes = Math.min(state.done_bytes + bytes, state.socket.bytesRead)
}

/**
 * About what was received for a message. Rather more: what is too little here adds up for as long
 * as a stream is open, and would be taken for a message that never comes to its end.
 */
function receivedBytes(message: Buffer): number {
  const length = isPlain(message) ? message.length : compressedBytes(message)
  return length + message_bytes + (length / frame_bytes) * message_bytes
}

/** grpc-js does not say how long it was; a quick compression seldom makes less of it. */
function compressedBytes(message: Buffer): number {
  const sample = message.subarray(0, sample_bytes)
  const { length } = deflateRawSync(sample, { level: 1 })
  return sample.length === 0 ? 0 : (length / sample.length) * message.length
}

/** Whether grpc-js gives the message as it has collected it, behind its head. */
function isPlain({ buffer, byteOffset, length }: Buffer): boolean {
  if (byteOffset < head_bytes) return false
  const head = new DataView(buffer, byteOffset - head_bytes, head_bytes)
  return head.getUint8(0) === 0 && head.getUint32(1) === length
}

export interface Reception<Call> {
  begin(call: Call): void
  /** A second call does nothing. */
  end(call: Call): void
}

export function newReception<Call>(ms_max: number, giveUp: (call: Call) => void): Reception<Call> {
  /** When each is due, the oldest first. */
  const due_ms = new Map<Call, number>()
  let has_timer = false

  const wakeAt = (at_ms: number): void => {
    has_timer = true
    systemClock.wake_at(at_ms, giveUpDue)
  }
  const giveUpDue = (): void => {
    has_timer = false
    const now_ms = systemClock.now_ms()
    for (const [call, at_ms] of due_ms) {
      if (at_ms > now_ms) {
        wakeAt(at_ms)
        return
      }
      due_ms.delete(call)
      giveUp(call)
    }
  }
  return {
    begin(call) {
      const at_ms = systemClock.now_ms() + ms_max
      due_ms.set(call, at_ms)
      if (!has_timer) wakeAt(at_ms)
    },
    end(call) {
      due_ms.delete(call)
    },
  }
}
