/**
 * A body into one Buffer, exactly as received, and the bytes held for callers who have
 * not proven who they are (wire 1.8).
 *
 * Memory follows what has arrived, never what a header announces: a body grows by doubling, so that
 * one sent in a million tiny chunks costs no more than one sent whole. What is unverified counts in
 * `unverified_bytes_max` until the body is complete or its connection is gone; a body over
 * `large_body_bytes` also takes one of `large_bodies_max` places of its address.
 */
import type { IncomingMessage } from 'node:http'
import type { Limits } from '../../core/limits.ts'
import { httpFault } from './fault-response.ts'

/** What is unverified of bodies not yet verified. */
export interface UnverifiedBodies {
  readonly limits: Limits
  bytes: number
  /** Large bodies under way, by remote address; no entry where there is none. */
  readonly large: Map<string, number>
}

export function newUnverifiedBodies(limits: Limits): UnverifiedBodies {
  return { limits, bytes: 0, large: new Map() }
}

/** Whether a body of the announced length could be taken now. */
export function hasCapacity(
  unverified: UnverifiedBodies,
  announced_bytes: number,
  request: IncomingMessage,
): boolean {
  const { limits } = unverified
  if (unverified.bytes + announced_bytes > limits.unverified_bytes_max) return false
  if (announced_bytes <= limits.large_body_bytes) return true
  return (unverified.large.get(addressOf(request)) ?? 0) < limits.large_bodies_max
}

/** A body that is being read, until its end, a bound or `abortReading`. */
export interface BodyReading {
  readonly request: IncomingMessage
}

/** Told once how a reading ended: the body, or undefined and the reason why there is none. */
export type OnBody = (body: Buffer | undefined, reason?: unknown) => void

/**
 * Starts to read. `announced_bytes` is the Content-Length, 0 where there is none. The reason is
 * `body_too_large` or `overloaded` as soon as a bound is passed.
 */
export function readBody(
  request: IncomingMessage,
  announced_bytes: number,
  unverified: UnverifiedBodies,
  onBody: OnBody,
): BodyReading {
  const state: State = {
    request,
    unverified,
    bytes_max: announced_bytes || unverified.limits.body_bytes_max,
    buffer: empty,
    bytes: 0,
    counted_bytes: 0,
    large_slot_of: undefined,
    onBody,
  }
  if (announced_bytes > unverified.limits.large_body_bytes) claimLargeSlot(state)
  ;(request as RequestWithReading)[reading_key] = state
  request.on('data', onData)
  request.on('end', onEnd)
  return state
}

/** Ends a reading with the reason, unless it has ended. What still arrives is thrown away. */
export function abortReading(reading: BodyReading, reason: unknown): void {
  const state = reading as State
  const { request, onBody } = state
  if (onBody === undefined) return
  release(state)
  state.buffer = empty
  request.off('data', onData)
  request.off('end', onEnd)
  request.resume()
  onBody(undefined, reason)
}

/** The remote address; one empty text where the connection is already gone. */
export function addressOf(request: IncomingMessage): string {
  return request.socket.remoteAddress ?? ''
}

export function tooLarge(body_bytes_max: number): Error {
  return httpFault('body_too_large', `the body is over ${body_bytes_max} bytes`)
}

const empty = Buffer.alloc(0)

/** A reading from inside. */
interface State extends BodyReading {
  readonly unverified: UnverifiedBodies
  /** No body grows its buffer beyond this. */
  readonly bytes_max: number
  buffer: Buffer
  /** How much of the buffer is filled. */
  bytes: number
  /** What of `unverified.bytes` is this one's. */
  counted_bytes: number
  /** The address whose place for a large body is taken. */
  large_slot_of: string | undefined
  /** Undefined once the reading has ended. */
  onBody: OnBody | undefined
}

const reading_key = Symbol('conveyor.reading')

interface RequestWithReading extends IncomingMessage {
  [reading_key]?: State
}

function onData(this: IncomingMessage, chunk: Buffer): void {
  const state = (this as RequestWithReading)[reading_key] as State
  const reason = append(state, chunk)
  if (reason !== undefined) abortReading(state, reason)
}

function onEnd(this: IncomingMessage): void {
  const state = (this as RequestWithReading)[reading_key] as State
  const { onBody, buffer, bytes } = state
  release(state)
  onBody?.(bytes === buffer.length ? buffer : buffer.subarray(0, bytes))
}

/** Keeps a chunk, or says why not. */
function append(state: State, chunk: Buffer): Error | undefined {
  const { unverified, bytes } = state
  const { limits } = unverified
  const needed = bytes + chunk.length
  if (needed > limits.body_bytes_max) return tooLarge(limits.body_bytes_max)
  if (needed > limits.large_body_bytes && !claimLargeSlot(state)) {
    return httpFault('overloaded', 'too many large bodies of this address at once')
  }
  if (needed > state.buffer.length) {
    const next_bytes =
      bytes === 0 ? needed : Math.min(state.bytes_max, Math.max(needed, 2 * state.buffer.length))
    if (unverified.bytes + next_bytes - state.counted_bytes > limits.unverified_bytes_max) {
      return httpFault('overloaded', 'too many bytes of bodies not yet verified')
    }
    hold(state, next_bytes)
    // The first chunk is most often the whole body, and is kept as it is.
    state.buffer = bytes === 0 ? chunk : grown(state.buffer, bytes, next_bytes)
  }
  if (bytes > 0) chunk.copy(state.buffer, bytes)
  state.bytes = needed
  return undefined
}

function hold(state: State, bytes: number): void {
  state.unverified.bytes += bytes - state.counted_bytes
  state.counted_bytes = bytes
}

function release(state: State): void {
  state.onBody = undefined
  hold(state, 0)
  if (state.large_slot_of !== undefined) releaseLargeSlot(state.unverified, state.large_slot_of)
  state.large_slot_of = undefined
}

/** Takes a place for a large body of this address, unless it has one; false where none is left. */
function claimLargeSlot(state: State): boolean {
  if (state.large_slot_of !== undefined) return true
  const { limits, large } = state.unverified
  const address = addressOf(state.request)
  const count = large.get(address) ?? 0
  if (count >= limits.large_bodies_max) return false
  large.set(address, count + 1)
  state.large_slot_of = address
  return true
}

function releaseLargeSlot(unverified: UnverifiedBodies, address: string): void {
  const count = (unverified.large.get(address) ?? 0) - 1
  if (count > 0) unverified.large.set(address, count)
  else unverified.large.delete(address)
}

function grown(buffer: Buffer, bytes: number, next_bytes: number): Buffer {
  const next = Buffer.allocUnsafe(next_bytes)
  buffer.copy(next, 0, 0, bytes)
  return next
}
