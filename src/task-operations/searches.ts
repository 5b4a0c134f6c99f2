/**
 * Finds, counts and changes many tasks for operators. A filter comes with its `where` as JSON text,
 * so that numbers keep their exact text; found tasks are shown as in task-view.
 */
import { rawJson } from '../codec/json.ts'
import type { Doc } from '../core/model.ts'
import type { Engine } from '../engine/api/engine-api.ts'
import type {
  BulkInput,
  BulkJob,
  TaskFilter,
  TaskPage,
  TaskQuery,
} from '../engine/api/search-api.ts'
import { readWhere } from '../engine/search/task-filter.ts'
import { type TaskView, viewsOf } from './task-view.ts'

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
  return { ...filter, where: readWhere(() => rawJson(where_text)) }
}

/** What many tasks are to undergo; `data_text` is JSON text. */
export interface SentBulk extends Pick<BulkInput, 'action' | 'to_node_id' | 'id' | 'cursor'> {
  readonly filter: SentFilter
  readonly data_text?: string
}

export type SentJob = Omit<BulkJob, 'sample'> & { readonly sample?: readonly TaskView[] }

/** Steps of one call, so that a caller who has gone does not leave a long work behind. */
const steps_max = 16

/** The first steps of a job, or of a dry run: the caller goes on by the id or the cursor. */
export async function startBulk(
  engine: Engine,
  { filter, data_text, ...args }: SentBulk & { readonly dry_run?: boolean },
): Promise<SentJob> {
  const data = data_text === undefined ? {} : { data: rawJson(data_text) }
  const input = { ...args, ...data, filter: received(filter), steps_max }
  const { sample, ...job } = await engine.tasks.bulk(input)
  return sample === undefined ? job : { ...job, sample: await viewsOf(engine, sample) }
}

export async function resumeBulk(engine: Engine, args: { readonly id: string }): Promise<SentJob> {
  const { sample: _none, ...job } = await engine.tasks.resumeBulk(args.id, { steps_max })
  return job
}
