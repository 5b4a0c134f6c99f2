/**
 * The call that tells a view once, whole: what a live stream of it tells first, for a page that has
 * no stream and asks again and again.
 */

import type { CallRow } from './call.ts'
import { badRequest, idOf, inputOf, objIdOf } from './input.ts'
import { shownTask } from './task.ts'

export const frame: CallRow<'frame'> = {
  right: 'look',
  async run({ engine, overviews }, given) {
    const { view, conv_id, obj_id } = inputOf(given, ['view', 'conv_id', 'obj_id'])
    if (view === 'process') {
      return { view, counts: await overviews.counts(idOf('conv_id', conv_id)) }
    }
    if (view === 'task') return { view, task: await shownTask(engine, objIdOf('obj_id', obj_id)) }
    if (view !== 'overview') throw badRequest('view is one of overview, process, task')
    const watch = overviews.watch()
    try {
      return { view, overview: await watch.next() }
    } finally {
      watch.close()
    }
  },
}
