/**
 * The calls that find tasks: pages of a table, and the tasks of a ref or an id. Tasks are shown
 * without data, and what would show a masked value is masked (task-operations/task-view).
 */
import type { Task } from '../../../core/model.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { received, type SentQuery } from '../../../task-operations/searches.ts'
import { processOf, viewsOf } from '../../../task-operations/task-view.ts'
import type { Rows, TaskRow } from '../messages.ts'
import {
  type CallRow,
  countOf,
  cursorOf,
  flagOf,
  idOf,
  inputOf,
  isObjId,
  objectOf,
  optional,
  textOf,
  whereOf,
} from './call.ts'

const page_tasks_max = 500

export const tasks: CallRow<'tasks'> = {
  right: 'look',
  async run({ engine }, given) {
    const query = queryOf(given)
    const { tasks, cursor, scanned, sorted_by, reached_ms } = await engine.tasks.list(query)
    return {
      rows: await rowsOf(engine, tasks),
      ...{ scanned, sorted_by },
      ...(cursor === undefined ? {} : { cursor }),
      ...(reached_ms === undefined ? {} : { reached_ms }),
    } satisfies Rows
  },
}

/** The engine checks the filter, whose members it names. Throws `bad_filter`. */
export function queryOf(given: unknown): SentQuery {
  const { limit, newest_first, cursor, where_text, ...filter } = objectOf('the input', given)
  return received({
    ...filter,
    newest_first: flagOf('newest_first', newest_first),
    ...optional('limit', limit, (name, value) => countOf(name, value, page_tasks_max)),
    ...optional('cursor', cursor, cursorOf),
    ...optional('where_text', where_text, whereOf),
  })
}

const found_tasks_max = 20
/** A ref has 255 code points at most. */
const text_chars_max = 510

export const find: CallRow<'find'> = {
  right: 'look',
  async run({ engine }, given) {
    const input = inputOf(given, ['text', 'conv_id'])
    const text = textOf('text', input.text, text_chars_max)
    const where = optional('conv_id', input.conv_id, idOf)
    const found: Task[] = []
    const by_id = isObjId(text) ? await engine.taskById(text.toLowerCase()) : undefined
    const { conv_id = '' } = by_id?.task ?? {}
    const is_there = by_id !== undefined && (where.conv_id ?? conv_id) === conv_id
    if (is_there && (await processOf(engine, conv_id)) !== undefined) found.push(by_id.task)
    // By ref, which reads the index of the refs alone; the ref that is the text itself comes first.
    const by_ref = { ...where, ref_prefix: text, status: 'any', limit: found_tasks_max } as const
    for (const task of (await engine.tasks.list(by_ref)).tasks) {
      if (found.every(({ obj_id }) => obj_id !== task.obj_id)) found.push(task)
    }
    return { rows: await rowsOf(engine, found.slice(0, found_tasks_max)) }
  },
}

async function rowsOf(engine: ServedEngine, tasks: readonly Task[]): Promise<TaskRow[]> {
  const views = await viewsOf(engine, tasks)
  return views.map(({ data_text: _data, ...row }) => row)
}
