/** Calls that outlast a request: `Client.changes`, and `Client.result` over HTTP. */
import { is_over } from '../codec/task-record.ts'
import type { Chance } from '../core/clock.ts'
import type { TargetInput } from '../engine/api/task-api.ts'
import type { ClientChange, ClientTask } from './api.ts'
import { type Cancellation, throwIfCancelled } from './cancellation.ts'
import { clientFault, isClientFault } from './faults.ts'
import { afterFault, type RetryPolicy, realPause, waitBefore } from './retry.ts'

/** A connection yields changes, and positions between them. */
export type ReceivedChange =
  | ClientChange
  | { readonly position: string; readonly obj_id?: undefined }

/**
 * `Client.changes`: follows the feed over as many connections as it takes. After a broken one it
 * continues after the last position: no change is missed or repeated. Before the first message it
 * gives up as any call does; later only if it is cancelled or the server refuses. `watch` is one
 * try from a position on.
 */
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

const first_pause_ms = 100
const pause_ms_max = 5_000

/**
 * `Client.result` over HTTP: polls with `show`, ever more rarely. The first answer fixes the
 * obj_id, so a later task with the same ref is not mistaken for it.
 */
export async function polledResult(
  given: TargetInput,
  show: (target: TargetInput) => Promise<ClientTask | undefined>,
  chance: Chance,
  cancellation: Cancellation,
): Promise<ClientTask> {
  let target = given
  for (let pause_ms = first_pause_ms; ; pause_ms = Math.min(2 * pause_ms, pause_ms_max)) {
    const task = await show(target)
    if (task === undefined) throw clientFault('not_found_task', 'not found task')
    if (is_over[task.status]) return task
    target = { conv_id: given.conv_id, obj_id: task.obj_id }
    await realPause(pause_ms * (0.75 + chance.fraction() / 4), cancellation)
    throwIfCancelled(cancellation)
  }
}
