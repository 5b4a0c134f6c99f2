/**
 * What all servers share: their options, and a drain that waits for the requests under way.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { keepAlive, nextTurn, systemClock, within } from '../../core/clock.ts'
import type { LimitName } from '../../core/limits.ts'

export interface Underway {
  begin(): void
  end(count?: number): void
  /** Resolves once no request is under way, or after `ms_max`. */
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
      // A connection that is no longer read does not keep the process alive.
      await within(systemClock, ms_max, quiet).finally(keepAlive())
    },
  }
}

/** A connection is accepted in one turn, and what it sent is read in the next. */
const quiet_turns = 8
const read_turns_max = 2_000

/**
 * Resolves once the event loop has read what the kernel received before, so that a draining server
 * answers requests sent before the drain. One connection is accepted per turn, so it continues
 * while `seen`, a count of connections and requests, changes.
 */
export async function inputRead(seen: () => number): Promise<void> {
  let last = seen()
  let quiet = 0
  for (let turn = 0; turn < read_turns_max && quiet < quiet_turns; turn++) {
    await nextTurn()
    quiet = seen() === last ? quiet + 1 : 0
    last = seen()
  }
}

/**
 * Resolves once the last connection has closed. `close` of an HTTP server would also close idle
 * connections, which includes those with unread answers.
 */
export function stopAccepting(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()))
}

const ends_of = new WeakMap<Socket, Set<() => void>>()

/**
 * Calls `end` once, when the response has left or its connection has closed. Node does not close a
 * response that still waits behind another one.
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

/** Drains with the first call; later calls get the same promise. */
export function drainOnce(drain: () => Promise<void>): () => Promise<void> {
  let drained: Promise<void> | undefined
  return () => {
    drained ??= drain()
    return drained
  }
}

/** The options of every server. */
export interface ServerOptions {
  /**
   * A server's own limits bound its connections, heads and bodies; `ops_max` can only be lowered;
   * limits of ops, tasks and the queue are the engine's.
   */
  readonly limits?: Partial<Record<LimitName, number>>
  /** Receives bugs: exceptions that are no Fault. The caller gets `internal_error`. */
  readonly onBug?: (error: unknown) => void
}
