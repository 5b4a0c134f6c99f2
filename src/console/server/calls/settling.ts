/**
 * What became of tasks after a retry. A retry is accepted before calls, code and handlers answer,
 * so the server looks at the tasks until each has ended, waits or has failed again, for two seconds
 * at most; those still under way then count as running.
 */
import { pause, steadyClock } from '../../../core/clock.ts'
import type { Task } from '../../../core/model.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import type { TaskWait } from '../../../engine/tasks/waits.ts'
import { viewsOf } from '../../../task-operations/task-view.ts'
import type { Became, BecameCounts, Settled } from '../messages.ts'

const look_every_ms = 50
const looks_max = 40
const at_once_max = 64

/** What brings it on comes by itself and soon, so it has not settled yet. */
const under_way: readonly TaskWait['for'][] = ['turn', 'handler', 'call', 'db', 'code']

export function becameOf(task: Task | undefined, wait: TaskWait | undefined): Became {
  // A task that is gone has ended in a node that keeps none.
  if (task === undefined) return 'ended'
  if (task.status === 'failed') return 'failed'
  if (task.status === 'processed' || task.status === 'canceled') return 'ended'
  if (wait === undefined) return 'running'
  const is_held = wait.last_error !== undefined || wait.has_handler === false || wait.is_paused
  return is_held !== true && under_way.includes(wait.for) ? 'running' : 'waiting'
}

/** One task, as the page shows it: without its data. */
export async function settledTask(engine: ServedEngine, obj_id: string): Promise<Settled> {
  await settledCounts(engine, [obj_id])
  const { task } = (await engine.taskById(obj_id)) ?? {}
  const [wait] = await engine.waitsOf([obj_id])
  const [view] = task === undefined ? [] : await viewsOf(engine, [task])
  const became = becameOf(task, wait)
  if (view === undefined) return { became }
  const { data_text: _data, ...row } = view
  return { became, task: row }
}

export async function settledCounts(
  engine: ServedEngine,
  obj_ids: readonly string[],
): Promise<BecameCounts> {
  const counts = { ended: 0, waiting: 0, failed: 0, running: 0 }
  let left = obj_ids
  for (let looks = 0; ; looks++) {
    const running: string[] = []
    for (let at = 0; at < left.length; at += at_once_max) {
      const part = left.slice(at, at + at_once_max)
      const found = await Promise.all(part.map((obj_id) => engine.taskById(obj_id)))
      const waits = await engine.waitsOf(part)
      for (const [index, obj_id] of part.entries()) {
        const became = becameOf(found[index]?.task, waits[index])
        if (became === 'running') running.push(obj_id)
        else counts[became]++
      }
    }
    left = running
    if (left.length === 0 || looks === looks_max) return { ...counts, running: left.length }
    await pause(steadyClock, look_every_ms)
  }
}
