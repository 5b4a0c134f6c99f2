/**
 * The admin verbs that find many tasks. A filter crosses the socket with its `where` as JSON text,
 * so that numbers keep their exact text; tasks are masked as in task-verbs.
 */
import { rawJson } from '../../codec/json.ts'
import { fault, isFault } from '../../core/faults.ts'
import type { Doc } from '../../core/model.ts'
import type { Engine } from '../../engine/api.ts'
import type { TaskFilter, TaskPage, TaskQuery } from '../../engine/search-api.ts'
import type { ParamPath } from '../../process/param-path.ts'
import { maskOf, type TaskView, viewOfTask } from './task-verbs.ts'

type Sent<T extends TaskFilter> = Omit<T, 'where'> & { readonly where_text?: string }

export type SentFilter = Sent<TaskFilter>
export type SentQuery = Sent<TaskQuery>
export type SentPage = Omit<TaskPage, 'tasks'> & { readonly tasks: readonly TaskView[] }

export async function listTasks(engine: Engine, args: SentQuery): Promise<SentPage> {
  const page = await engine.tasks.list(received(args))
  return { ...page, tasks: await viewsOf(engine, page.tasks) }
}

/** The filter as the engine takes it. Throws `bad_filter`. */
export function received<T extends SentFilter>({
  where_text,
  ...filter
}: T): Omit<T, 'where_text'> & { readonly where?: Doc } {
  if (where_text === undefined) return filter
  try {
    return { ...filter, where: rawJson(where_text) }
  } catch (error) {
    if (!isFault(error)) throw error
    throw fault('bad_filter', `filter: where is no JSON object: ${error.message}`)
  }
}

/** The tasks, each masked as its own process says. */
export async function viewsOf(engine: Engine, tasks: TaskPage['tasks']): Promise<TaskView[]> {
  const paths = new Map<string, readonly ParamPath[]>()
  for (const { conv_id } of tasks) {
    if (!paths.has(conv_id)) paths.set(conv_id, await maskOf(engine, conv_id))
  }
  return tasks.map((task) => viewOfTask(task, paths.get(task.conv_id) ?? []))
}
