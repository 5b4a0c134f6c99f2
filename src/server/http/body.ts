/**
 * Reads a request body into one Buffer, and bounds the memory that callers take before their
 * signature is checked (wire 1.8).
 *
 * The buffer grows by doubling as bytes arrive; a Content-Length alone allocates nothing. A buffer
 * counts towards `unverified_bytes_max` until the body is complete or the connection has closed. A
 * body over `large_body_bytes` also takes one of the `large_bodies_max` slots of its remote
 * address.
 */
import type { IncomingMessage } from 'node:http'
import type { Limits } from '../../core/limits.ts'
import { httpFault } from './fault-response.ts'

/** The bodies being read, before their signatures are checked. */
export interface UnverifiedBodies {
  readonly limits: Limits
  /** Bytes of their buffers. */
  bytes: number
  /** Count of large bodies by remote address; addresses without one have no entry. */
  readonly large: Map<string, number>
}

export function newUnverifiedBodies(limits: Limits): UnverifiedBodies {
  return { limits, bytes: 0, large: new Map() }
}

/** Whether a body with this Content-Length fits into the bounds now. */
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

/** A body being read. */
export interface BodyReading {
  readonly request: IncomingMessage
}

/** Called once, with the body, or with undefined and the fault. */
export type OnBody = (body: Buffer | undefined, reason?: unknown) => void

/**
 * Starts to read. `announced_bytes` is the Content-Length, 0 without one. Ends early with
 * `body_too_large` or `overloaded` as soon as a bound is exceeded.
 */
export function readBody(
  request: IncomingMessage,
  announced_bytes: number,
  unverified: UnverifiedBodies,
  onBody: OnBody,
): BodyReading {
  const state: ReadingState = {
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

/** Ends a reading with `reason`, unless it has ended. Bytes that arrive later are discarded. */
export function abortReading(reading: BodyReading, reason: unknown): void {
  const state = reading as ReadingState
  const { request, onBody } = state
  if (onBody === undefined) return
  release(state)
  state.buffer = empty
  request.off('data', onData)
  request.off('end', onEnd)
  request.resume()
  onBody(undefined, reason)
}

/** The remote address; empty once the connection has closed. */
function addressOf(request: IncomingMessage): string {
  return request.socket.remoteAddress ?? ''
}

export function tooLarge(body_bytes_max: number): Error {
  return httpFault('body_too_large', `the body is over ${body_bytes_max} bytes`)
}

const empty = Buffer.alloc(0)

interface ReadingState extends BodyReading {
  readonly unverified: UnverifiedBodies
  /** The buffer grows no further. */
  readonly bytes_max: number
  buffer: Buffer
  /** How much of the buffer is filled. */
  bytes: number
  /** This body's part of `unverified.bytes`. */
  counted_bytes: number
  /** The address of which this body holds a large slot. */
  large_slot_of: string | undefined
  /** Undefined once the reading has ended. */
  onBody: OnBody | undefined
}

const reading_key = Symbol('conveyor.reading')

interface RequestWithReading extends IncomingMessage {
  [reading_key]?: ReadingState
}

function onData(this: IncomingMessage, chunk: Buffer): void {
  const state = (this as RequestWithReading)[reading_key] as ReadingState
  const reason = append(state, chunk)
  if (reason !== undefined) abortReading(state, reason)
}

function onEnd(this: IncomingMessage): void {
  const state = (this as RequestWithReading)[reading_key] as ReadingState
  const { onBody, buffer, bytes } = state
  release(state)
  onBody?.(bytes === buffer.length ? buffer : buffer.subarray(0, bytes))
}

/** Appends a chunk, or returns the fault that refuses it. */
function append(state: ReadingState, chunk: Buffer): Error | undefined {
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
    setCounted(state, next_bytes)
    // Most bodies arrive in one chunk, which needs no copy.
    state.buffer = bytes === 0 ? chunk : grownCopy(state.buffer, bytes, next_bytes)
  }
  if (bytes > 0) chunk.copy(state.buffer, bytes)
  state.bytes = needed
  return undefined
}

function setCounted(state: ReadingState, bytes: number): void {
  state.unverified.bytes += bytes - state.counted_bytes
  state.counted_bytes = bytes
}

function release(state: ReadingState): void {
  state.onBody = undefined
  setCounted(state, 0)
  if (state.large_slot_of !== undefined) releaseLargeSlot(state.unverified, state.large_slot_of)
  state.large_slot_of = undefined
}

/** Takes a large slot of the address unless this body holds one; false if none is free. */
function claimLargeSlot(state: ReadingState): boolean {
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

function grownCopy(buffer: Buffer, bytes: number, next_bytes: number): Buffer {
  const next = Buffer.allocUnsafe(next_bytes)
  buffer.copy(next, 0, 0, bytes)
  return next
}
