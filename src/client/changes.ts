/**
 * `Client.changes`: follows the feed of a server over as many connections as it takes. After a
 * broken one it goes on behind the last position received: none is missed and none comes twice.
 *
 * Before the first message of the server it gives up as any call does; after that it goes on until
 * it is cancelled, or the server refuses to.
 */
import type { Chance } from '../core/clock.ts'
import type { ClientChange } from './api.ts'
import type { Cancellation } from './cancellation.ts'
import { clientFault, isClientFault } from './faults.ts'
import { realPause, transient_codes, waitBefore } from './retry.ts'

/** What one connection yields: a change, or only a position. */
export type ReceivedChange =
  | ClientChange
  | { readonly position: string; readonly obj_id?: undefined }

export interface FollowOptions {
  readonly chance: Chance
  readonly retries_max: number
  readonly cancellation: Cancellation
}

/** `watch` is one try from a position on. Ends where it is cancelled. */
export async function* followed(
  start: string | undefined,
  watch: (from: string | undefined) => AsyncIterable<ReceivedChange>,
  { chance, retries_max, cancellation }: FollowOptions,
): AsyncGenerator<ClientChange, void, undefined> {
  let from = start
  let has_received = false
  for (let tries = 0; cancellation.reason() === undefined; tries++) {
    try {
      for await (const change of watch(from)) {
        has_received = true
        tries = 0
        from = change.position
        if (change.obj_id !== undefined) yield change
      }
      throw clientFault('unreachable', 'the changes ended')
    } catch (error) {
      if (cancellation.reason() !== undefined) return
      if (!isClientFault(error) || !transient_codes.has(error.code)) throw error
      if (!has_received && tries >= retries_max) throw error
      await realPause(waitBefore(tries, error, chance), cancellation)
    }
  }
}
