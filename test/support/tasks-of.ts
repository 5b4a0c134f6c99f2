/** All tasks of a process that a filter finds, over all pages, up to `limit`. */
import type { Engine, Task, TaskFilter } from '../../src/index.ts'

export async function tasksOf(
  engine: Engine,
  conv_id: string | number,
  { limit = Infinity, ...filter }: TaskFilter & { readonly limit?: number } = {},
): Promise<Task[]> {
  const found: Task[] = []
  let cursor: string | undefined
  do {
    const page = await engine.tasks.list({
      ...{ ...filter, conv_id, limit: Math.min(limit - found.length, 10_000) },
      ...(cursor === undefined ? {} : { cursor }),
    })
    found.push(...page.tasks)
    cursor = page.cursor
  } while (cursor !== undefined && found.length < limit)
  return found
}
