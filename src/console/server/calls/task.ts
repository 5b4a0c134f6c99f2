/**
 * The calls that show one task, with its wait, data, history and the tasks bound to it by a call,
 * and that return one whole frame of a view, for a page that has no live stream and polls. A task
 * that is gone is `not_found`.
 */
import { fault } from '../../../core/faults.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { processOf, wholeView } from '../../../task-operations/task-view.ts'
import type { BoundTask, ShownTask, View } from '../messages.ts'
import { badRequest, type CallRow, idOf, inputOf, objIdOf } from './call.ts'

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

export const frame: CallRow<'frame'> = {
  right: 'look',
  async run({ engine, overviews }, given) {
    const view = viewOf(given)
    if (view.view === 'process') {
      return { view: view.view, counts: await overviews.counts(view.conv_id) }
    }
    if (view.view === 'task') {
      return { view: view.view, task: await shownTask(engine, view.obj_id) }
    }
    const watch = overviews.watch()
    try {
      return { view: view.view, overview: await watch.next() }
    } finally {
      watch.close()
    }
  },
}

export function viewOf(given: unknown): View {
  const { view, conv_id, obj_id } = inputOf(given, ['view', 'conv_id', 'obj_id'])
  if (view === 'overview') return { view }
  if (view === 'process') return { view, conv_id: idOf('conv_id', conv_id) }
  if (view === 'task') return { view, obj_id: objIdOf('obj_id', obj_id) }
  throw badRequest('view is one of overview, process, task')
}
