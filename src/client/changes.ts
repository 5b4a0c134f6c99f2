/**
 * `Client.changes`: follows the feed of a server over as many connections as it takes. After a
 * broken one it goes on behind the last position received: none is missed and none comes twice.
 *
 * Before the first message of the server it gives up as any call does; after that it goes on until
 * it is cancelled, or the server refuses to.
 */
import type { ClientChange } from './api.ts'
import type { Cancellation } from './cancellation.ts'
import { clientFault, isClientFault } from './faults.ts'
import { afterFault } from './repeats.ts'
import { type RetryPolicy, realPause, waitBefore } from './retry.ts'

/** What one connection yields: a change, or only a position. */
export type ReceivedChange =
  | ClientChange
  | { readonly position: string; readonly obj_id?: undefined }

/** `watch` is one try from a position on. Ends where it is cancelled. */
export async function* followed(
  start: string | undefined,
  watch: (from: string | undefined) => AsyncIterable<ReceivedChange>,
  policy: RetryPolicy,
  cancellation: Cancellation,
): AsyncGenerator<ClientChange, void, undefined> {
  const { clock, retries_max, ready, pause = realPause } = policy
  const { patience_ms = Number.POSITIVE_INFINITY } = policy
  const gives_up_ms = clock.now_ms() + patience_ms
  let from = start
  let has_received = false
  for (let tries = 0; cancellation.reason() === undefined; tries++) {
    try {
      const wait = ready?.(cancellation)
      if (wait !== undefined) await wait
      for await (const change of watch(from)) {
        has_received = true
        tries = 0
        from = change.position
        if (change.obj_id !== undefined) yield change
      }
      throw clientFault('unreachable', 'the changes ended')
    } catch (error) {
      if (cancellation.reason() !== undefined) return
      if (!isClientFault(error) || afterFault(error.code) === undefined) throw error
      const gives_up = tries >= retries_max || clock.now_ms() >= gives_up_ms
      if (!has_received && gives_up) throw error
      await pause(waitBefore(tries, error, policy), cancellation)
    }
  }
}
