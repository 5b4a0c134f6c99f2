/**
 * A body into one Buffer, exactly as received, and the account of what is held for callers who have
 * not proven who they are (wire 1.8).
 *
 * Memory follows what has arrived, never what a header announces: a body grows by doubling, so that
 * one sent in a million tiny chunks costs no more than one sent whole. What is held counts in
 * `unverified_bytes_max` until the body is complete or its connection is gone; a body over
 * `large_body_bytes` also takes one of `large_bodies_max` places of its address.
 */
import type { IncomingMessage } from 'node:http'
import type { Limits } from '../../core/limits.ts'
import { refuse } from './fault-response.ts'

/** What is held of bodies not yet verified. */
export interface Unverified {
  readonly limits: Limits
  bytes: number
  /** Large bodies under way, by remote address; no entry where there is none. */
  readonly large: Map<string, number>
}

export function noUnverified(limits: Limits): Unverified {
  return { limits, bytes: 0, large: new Map() }
}

/** Whether a body of the announced length could be taken now. */
export function hasRoom(
  held: Unverified,
  announced_bytes: number,
  request: IncomingMessage,
): boolean {
  const { limits } = held
  if (held.bytes + announced_bytes > limits.unverified_bytes_max) return false
  if (announced_bytes <= limits.large_body_bytes) return true
  return (held.large.get(addressOf(request)) ?? 0) < limits.large_bodies_max
}

/** A body that is being read, until its end, a bound or `giveUp`. */
export interface Reading {
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
  held: Unverified,
  onBody: OnBody,
): Reading {
  const state: State = {
    request,
    held,
    bytes_max: announced_bytes || held.limits.body_bytes_max,
    buffer: empty,
    bytes: 0,
    held_bytes: 0,
    large_of: undefined,
    onBody,
  }
  if (announced_bytes > held.limits.large_body_bytes) enterLarge(state)
  ;(request as Carrier)[reading_key] = state
  request.on('data', onData)
  request.on('end', onEnd)
  return state
}

/** Ends a reading with the reason, unless it has ended. What still arrives is thrown away. */
export function giveUp(reading: Reading, reason: unknown): void {
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
  return refuse('body_too_large', `the body is over ${body_bytes_max} bytes`)
}

const empty = Buffer.alloc(0)

/** A reading from inside. */
interface State extends Reading {
  readonly held: Unverified
  /** No body grows its buffer beyond this. */
  readonly bytes_max: number
  buffer: Buffer
  /** How much of the buffer is filled. */
  bytes: number
  /** What of `held.bytes` is this one's. */
  held_bytes: number
  /** The address whose place for a large body is taken. */
  large_of: string | undefined
  /** Undefined once the reading has ended. */
  onBody: OnBody | undefined
}

const reading_key = Symbol('conveyor.reading')

interface Carrier extends IncomingMessage {
  [reading_key]?: State
}

function onData(this: IncomingMessage, chunk: Buffer): void {
  const state = (this as Carrier)[reading_key] as State
  const reason = take(state, chunk)
  if (reason !== undefined) giveUp(state, reason)
}

function onEnd(this: IncomingMessage): void {
  const state = (this as Carrier)[reading_key] as State
  const { onBody, buffer, bytes } = state
  release(state)
  onBody?.(bytes === buffer.length ? buffer : buffer.subarray(0, bytes))
}

/** Keeps a chunk, or says why not. */
function take(state: State, chunk: Buffer): Error | undefined {
  const { held, bytes } = state
  const { limits } = held
  const needed = bytes + chunk.length
  if (needed > limits.body_bytes_max) return tooLarge(limits.body_bytes_max)
  if (needed > limits.large_body_bytes && !enterLarge(state)) {
    return refuse('overloaded', 'too many large bodies of this address at once')
  }
  if (needed > state.buffer.length) {
    const next_bytes =
      bytes === 0 ? needed : Math.min(state.bytes_max, Math.max(needed, 2 * state.buffer.length))
    if (held.bytes + next_bytes - state.held_bytes > limits.unverified_bytes_max) {
      return refuse('overloaded', 'too many bytes of bodies not yet verified')
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
  state.held.bytes += bytes - state.held_bytes
  state.held_bytes = bytes
}

function release(state: State): void {
  state.onBody = undefined
  hold(state, 0)
  if (state.large_of !== undefined) leaveLarge(state.held, state.large_of)
  state.large_of = undefined
}

/** Takes a place for a large body of this address, unless it has one; false where none is left. */
function enterLarge(state: State): boolean {
  if (state.large_of !== undefined) return true
  const { limits, large } = state.held
  const address = addressOf(state.request)
  const count = large.get(address) ?? 0
  if (count >= limits.large_bodies_max) return false
  large.set(address, count + 1)
  state.large_of = address
  return true
}

function leaveLarge(held: Unverified, address: string): void {
  const count = (held.large.get(address) ?? 0) - 1
  if (count > 0) held.large.set(address, count)
  else held.large.delete(address)
}

function grown(buffer: Buffer, bytes: number, next_bytes: number): Buffer {
  const next = Buffer.allocUnsafe(next_bytes)
  buffer.copy(next, 0, 0, bytes)
  return next
}
