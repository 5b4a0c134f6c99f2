/**
 * The call that shows one task: where it is and why it waits there, its data and its history, and
 * the tasks that it is bound to by a call. A task that is gone is `not_found`.
 */
import { fault } from '../../../core/faults.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { processOf, wholeView } from '../../../task-operations/task-view.ts'
import type { BoundTask, ShownTask } from '../messages.ts'
import type { CallRow } from './call.ts'
import { inputOf, objIdOf } from './input.ts'

export const task: CallRow<'task'> = {
  right: 'look',
  async run({ engine }, given) {
    const { obj_id } = inputOf(given, ['obj_id'])
    return shownTask(engine, objIdOf('obj_id', obj_id))
  },
}

/** Rejects with `not_found` and `task_damaged`. */
export async function shownTask(engine: ServedEngine, obj_id: string): Promise<ShownTask> {
  const found = await engine.taskById(obj_id)
  const process = found && (await processOf(engine, found.task.conv_id))
  if (found === undefined || process === undefined)
    throw fault('not_found', `there is no task ${obj_id}`)
  const [wait] = await engine.waitsOf([obj_id])
  const [called, caller] = await Promise.all([
    boundTask(engine, wait?.obj_id),
    boundTask(engine, found.caller_id),
  ])
  return {
    ...wholeView(found.task, process, wait),
    process_title: process.title,
    ...(called === undefined ? {} : { called }),
    ...(caller === undefined ? {} : { caller }),
  }
}

async function boundTask(
  engine: ServedEngine,
  obj_id: string | undefined,
): Promise<BoundTask | undefined> {
  const found = obj_id === undefined ? undefined : await engine.taskById(obj_id)
  if (found === undefined) return undefined
  const { conv_id } = found.task
  const process = await processOf(engine, conv_id)
  return process && { obj_id: found.task.obj_id, conv_id, title: process.title }
}
