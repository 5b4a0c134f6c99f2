/**
 * The call that tells a view once, whole: what a live stream of it tells first, for a page that has
 * no stream and asks again and again.
 */
import type { View } from '../messages.ts'
import type { CallRow } from './call.ts'
import { badRequest, idOf, inputOf, objIdOf } from './input.ts'
import { shownTask } from './task.ts'

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
