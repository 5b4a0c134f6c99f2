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
import type { Limits } from '../../words/limits.ts'
import { refuse } from './refusal.ts'

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
export function hasRoom(held: Unverified, announced_bytes: number, address: string): boolean {
  const { limits } = held
  if (held.bytes + announced_bytes > limits.unverified_bytes_max) return false
  if (announced_bytes <= limits.large_body_bytes) return true
  return (held.large.get(address) ?? 0) < limits.large_bodies_max
}

/** A body that is being read: settles once, by its end or by `fail`. */
export interface Reading {
  readonly request: IncomingMessage
  readonly body: Promise<Buffer>
  /** Gives the body up: `body` rejects with the reason, what still arrives is thrown away. */
  fail(reason: unknown): void
}

/**
 * Starts to read. `announced_bytes` is the Content-Length, 0 where there is none. `body` rejects
 * with `body_too_large` or `overloaded` as soon as a bound is passed.
 */
export function readBody(
  request: IncomingMessage,
  announced_bytes: number,
  held: Unverified,
): Reading {
  const { limits } = held
  const bytes_max = announced_bytes || limits.body_bytes_max
  let buffer: Buffer = empty
  let bytes = 0
  let held_bytes = 0
  let address: string | undefined
  let settle: ((body: Buffer) => void) | undefined
  let refuseWith: (reason: unknown) => void = () => {}

  const onData = (chunk: Buffer): void => {
    const reason = take(chunk)
    if (reason !== undefined) fail(reason)
  }
  const take = (chunk: Buffer): Error | undefined => {
    const needed = bytes + chunk.length
    if (needed > limits.body_bytes_max) return tooLarge(limits.body_bytes_max)
    if (address === undefined && needed > limits.large_body_bytes && !enterLarge()) {
      return refuse('overloaded', 'too many large bodies of this address at once')
    }
    if (needed > buffer.length) {
      const next_bytes =
        bytes === 0 ? needed : Math.min(bytes_max, Math.max(needed, 2 * buffer.length))
      if (held.bytes + next_bytes - held_bytes > limits.unverified_bytes_max) {
        return refuse('overloaded', 'too many bytes of bodies not yet verified')
      }
      hold(next_bytes)
      // The first chunk is most often the whole body, and is kept as it is.
      buffer = bytes === 0 ? chunk : grown(buffer, bytes, next_bytes)
    }
    if (bytes > 0) chunk.copy(buffer, bytes)
    bytes = needed
    return undefined
  }
  const onEnd = (): void => {
    const resolve = settle
    release()
    resolve?.(bytes === buffer.length ? buffer : buffer.subarray(0, bytes))
  }
  const fail = (reason: unknown): void => {
    if (settle === undefined) return
    release()
    buffer = empty
    request.off('data', onData)
    request.off('end', onEnd)
    request.resume()
    refuseWith(reason)
  }
  const hold = (next_bytes: number): void => {
    held.bytes += next_bytes - held_bytes
    held_bytes = next_bytes
  }
  const release = (): void => {
    settle = undefined
    hold(0)
    if (address !== undefined) leaveLarge(held, address)
    address = undefined
  }
  const enterLarge = (): boolean => {
    const from = addressOf(request)
    const count = held.large.get(from) ?? 0
    if (count >= limits.large_bodies_max) return false
    held.large.set(from, count + 1)
    address = from
    return true
  }

  const body = new Promise<Buffer>((resolve, reject) => {
    settle = resolve
    refuseWith = reject
  })
  if (announced_bytes > limits.large_body_bytes) enterLarge()
  request.on('data', onData)
  request.on('end', onEnd)
  return { request, body, fail }
}

/** The remote address; one empty text where the connection is already gone. */
export function addressOf(request: IncomingMessage): string {
  return request.socket.remoteAddress ?? ''
}

export function tooLarge(body_bytes_max: number): Error {
  return refuse('body_too_large', `the body is over ${body_bytes_max} bytes`)
}

const empty = Buffer.alloc(0)

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
