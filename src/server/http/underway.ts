/**
 * Tells when a request is over, and counts those that are under way, so that a server that drains
 * can wait for their end.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { systemClock, within } from '../../core/clock.ts'

export interface Underway {
  begin(): void
  end(count?: number): void
  /** Resolves once none is under way, or after `ms_max`. */
  quiet(ms_max: number): Promise<void>
}

export function newUnderway(): Underway {
  let underway = 0
  let onQuiet = (): void => {}
  return {
    begin() {
      underway++
    },
    end(count = 1) {
      underway -= count
      if (underway === 0) onQuiet()
    },
    async quiet(ms_max) {
      if (underway === 0) return
      const quiet = new Promise<void>((resolve) => {
        onQuiet = resolve
      })
      await within(systemClock, ms_max, quiet)
    },
  }
}

const ends_of = new WeakMap<Socket, Set<() => void>>()

/**
 * Calls `end` once, when the response has left or its connection has closed. Node closes no
 * response that still waits behind another one of its connection.
 */
export function whenOver(
  { socket }: Pick<IncomingMessage, 'socket'>,
  response: ServerResponse,
  end: () => void,
): void {
  const known = ends_of.get(socket)
  const ends = known ?? new Set()
  const over = (): void => {
    if (ends.delete(over)) end()
  }
  ends.add(over)
  response.once('close', over)
  if (known !== undefined) return
  ends_of.set(socket, ends)
  socket.once('close', () => {
    for (const one of ends) one()
  })
}
