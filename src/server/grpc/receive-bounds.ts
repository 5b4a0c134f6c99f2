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

/** The bytes that a connection has sent and the engine does not have yet. */
export interface ConnectionReceiver {
  /** A call begins that may bring a message; `refuse` ends it. */
  begin(refuse: (reason: Fault) => void): ReceivingCall
}

export interface ReceivingCall {
  /** A message is complete. */
  arrived(message: Buffer): void
  /** Counts bytes of messages that are held; negative when they are released. */
  hold(bytes: number): void
  /** The call receives no more messages, and holds none. A second call does nothing. */
  end(): void
  /** Ends the call and, where much of a message has arrived, its connection, to free that. */
  giveUp(reason: Fault): void
}

export interface ReceiveBounds {
  connected(socket: Socket): ConnectionReceiver
  /** Whether so much is held that a stream with batches under way should read no further. */
  isCrowded(): boolean
}

export const check_ms = 50
/** Lets a refusal be sent before its connection is closed. */
const close_ms = 100
/** The approximate overhead of HTTP/2 for a call and for a message. */
const call_bytes = 256
const message_bytes = 128
const frame_bytes = 16 * 1024
/** So much of a compressed message is compressed again, to estimate its length on the wire. */
const sample_bytes = 64 * 1024
/** The flag and the length before a message. */
const head_bytes = 5

interface State {
  readonly socket: Socket
  readonly calls: Set<(reason: Fault) => void>
  /** Of the bytes received, those that are no part of an unfinished message. */
  done_bytes: number
  held_bytes: number
  is_closing: boolean
}

export function newReceiveBounds({
  unverified_bytes_max,
  large_body_bytes,
}: Limits): ReceiveBounds {
  const active = new Set<State>()
  let crowded_bytes = 0
  const check = newRepeatedCheck(check_ms, () => {
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
    return active.size > 0
  })

  function beginCall(state: State, refuse: (reason: Fault) => void): ReceivingCall {
    const { calls, socket } = state
    let held_bytes = 0
    let is_open = true
    if (calls.size === 0) state.done_bytes = socket.bytesRead
    calls.add(refuse)
    addDone(state, call_bytes)
    if (!state.is_closing) active.add(state)
    check()
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
        // Everything received so far belongs to this call.
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
 * Estimates, rather high, the bytes received for a message: a low estimate would add up while a
 * stream is open, and look like a message that never ends.
 */
function receivedBytes(message: Buffer): number {
  const length = isPlain(message) ? message.length : compressedBytes(message)
  return length + message_bytes + (length / frame_bytes) * message_bytes
}

/** grpc-js does not report the length; a quick compression seldom yields fewer bytes. */
function compressedBytes(message: Buffer): number {
  const sample = message.subarray(0, sample_bytes)
  const { length } = deflateRawSync(sample, { level: 1 })
  return sample.length === 0 ? 0 : (length / sample.length) * message.length
}

/** Whether the message arrived uncompressed: grpc-js then passes a view of what it collected. */
function isPlain({ buffer, byteOffset, length }: Buffer): boolean {
  if (byteOffset < head_bytes) return false
  const head = new DataView(buffer, byteOffset - head_bytes, head_bytes)
  return head.getUint8(0) === 0 && head.getUint32(1) === length
}

/**
 * Calls `check` every `every_ms`, from the first call of the returned function until `check`
 * returns false.
 */
export function newRepeatedCheck(every_ms: number, check: () => boolean): () => void {
  let is_scheduled = false
  function schedule(): void {
    if (is_scheduled) return
    is_scheduled = true
    systemClock.wake_at(systemClock.now_ms() + every_ms, () => {
      is_scheduled = false
      if (check()) schedule()
    })
  }
  return schedule
}

/** The calls whose message has not arrived: one that takes longer than `ms_max` is given up. */
export interface Reception<Call> {
  begin(call: Call): void
  /** A second call does nothing. */
  end(call: Call): void
}

export function newReception<Call>(ms_max: number, giveUp: (call: Call) => void): Reception<Call> {
  /** When each is due, the oldest first: all have the same time, so one timer is enough. */
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
