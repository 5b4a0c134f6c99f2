/**
 * What a waiting task waits for, and the node to which it migrates, by the current graph of its
 * process. A new definition may have changed the graph since the wait began.
 */
import type { TaskRecord } from '../../codec/task-record.ts'
import type { WaitReason } from '../../process/logic.ts'
import type { Process } from '../transactions/catalog.ts'
import type { ReadContext } from '../transactions/transaction.ts'

/**
 * The logic at which the task waits for a callback; -1 where it waits for none. In a state process
 * a task that has fallen through its node waits for the callback of the node again. A task that
 * waits for a handler waits for a callback where no handler is registered.
 */
export function callbackLogic(context: ReadContext, process: Process, task: TaskRecord): number {
  if (task.status !== 'delayed') return -1
  const { node_id, logic_at } = task
  if (task.wait === 'callback') return waitLogic(process, task, 'callback')
  if (task.wait === 'nothing' && process.graph.kind === 'state') {
    return waitLogic(process, task, 'callback')
  }
  if (task.wait !== 'work') return -1
  const node = process.graph.nodes.get(node_id)
  if (node?.logics[logic_at]?.waits_for !== 'callback') return -1
  const handler = context.engine.handlerName(context.view, process.conv_id, node.title)
  return handler === undefined ? logic_at : -1
}

/** The logic at which a task waits for this; -1 where the graph has none in the task's node. */
export function waitLogic(process: Process, task: TaskRecord, waits_for: WaitReason): number {
  const logics = process.graph.nodes.get(task.node_id)?.logics ?? []
  if (logics[task.logic_at]?.waits_for === waits_for) return task.logic_at
  return logics.findIndex((one) => one.waits_for === waits_for)
}

/** Whether the task waits for nothing but its timer. */
export function isIdle(task: TaskRecord): boolean {
  return task.status === 'delayed' && task.wait === 'nothing'
}

/** The node to which a task in a dropped node migrates; undefined for any other task. */
export function migrationTarget(
  { graph, record }: Process,
  { node_id }: TaskRecord,
): string | undefined {
  if (graph.nodes.has(node_id)) return undefined
  return migrationOf(record.moves, node_id) ?? graph.start_id
}

/** The node to which tasks of `node_id` migrate. A node may be called `constructor`. */
export function migrationOf(
  migrations: Readonly<Record<string, string>>,
  node_id: string,
): string | undefined {
  return Object.hasOwn(migrations, node_id) ? migrations[node_id] : undefined
}
