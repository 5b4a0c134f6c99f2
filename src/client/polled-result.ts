/**
 * `Client.result` over HTTP, which has no call that waits for a task: shows it again and again, at
 * first soon and then ever more rarely. The first answer says which task it is, so a later one that
 * takes over its ref is not taken for it.
 */
import { is_over } from '../codec/task-record.ts'
import type { Chance } from '../core/clock.ts'
import type { TargetInput } from '../engine/api/task-api.ts'
import type { ClientTask } from './api.ts'
import { type Cancellation, throwIfCancelled } from './cancellation.ts'
import { clientFault } from './faults.ts'
import { realPause } from './retry.ts'

const first_pause_ms = 100
const pause_ms_max = 5_000

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
