/**
 * What a modify does to a task in the model, for callers and for logics alike.
 */
import type { Data } from './plan.ts'
import type { ModelTask, Refusal, World } from './world.ts'

/** The logic at which it goes on, `stays`, or why it is refused. */
export function modifyTask(
  world: World,
  task: ModelTask,
  data: Data,
  demand: { readonly is_sync?: boolean | undefined; readonly node_id?: string | undefined },
): number | 'stays' | Refusal {
  const at = callbackAt(world, task)
  const { is_sync = false, node_id } = demand
  const is_elsewhere = node_id !== undefined && node_id !== task.node
  if ((is_sync || node_id !== undefined) && (at === undefined || is_elsewhere)) {
    const says = 'no api callback logic in node with task'
    return { code: 'no_api_callback_in_node_with_task', says, task }
  }
  const merged = { ...task.data, ...data }
  const over = world.overSize(merged)
  if (over !== undefined) return { ...over, task }
  task.data = merged
  task.job?.seen.push(merged)
  if (at !== undefined) return at + 1
  const is_state = world.planOf(task.conv)?.kind === 'state'
  return is_state && task.status === 'delayed' && task.wait === 'nothing' ? 0 : 'stays'
}

/** The callback at which it waits. In a state process, that of its node where it waits for no other. */
function callbackAt(world: World, task: ModelTask): number | undefined {
  const plan = world.planOf(task.conv)
  const waits = task.wait === 'callback' || (task.wait === 'nothing' && plan?.kind === 'state')
  if (task.status !== 'delayed' || !waits) return undefined
  const steps = plan?.nodes.get(task.node)?.steps ?? []
  if (steps[task.at]?.does === 'api_callback') return task.at
  const at = steps.findIndex(({ does }) => does === 'api_callback')
  return at === -1 ? undefined : at
}
