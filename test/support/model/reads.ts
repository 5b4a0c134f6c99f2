/**
 * What the templates of a task may read in the model's world, and which process a logic reaches.
 */
import { member, type Reads } from './expressions.ts'
import type { Json, Plan, Step } from './plan.ts'
import { isLive, type ModelTask, type World } from './world.ts'

export const variables: Readonly<Record<string, { readonly [key: string]: Json }>> = {
  v: { key: 'value', n: 7 },
}

export function readsOf(world: World, task: ModelTask): Reads {
  const { now_ms, limits } = world
  return {
    ...{ data: task.data, now_ms, bytes_max: limits.task_bytes_max },
    root: (name) => rootOf(world, task, name),
    canRead: (conv, is_from_template) =>
      target(world, task, { conv, is_from_template }, 'show') !== undefined,
    count: (node, conv = task.conv) => world.liveCount(conv, node),
    sum: (node, name, conv = task.conv) => world.sums.get(`${conv} ${node} ${name}`),
    taskData(conv, ref) {
      if (conv === task.conv && String(task.ref) === ref && task.ref !== undefined) return task.data
      const found = world.holder(conv, ref)
      return found !== undefined && isLive(found) ? found.data : undefined
    },
    variable: (name, key) => member(variables[name], key),
  }
}

/** A process named in the definition may be reached by its right, else by that of the user. */
export function target(
  world: World,
  task: ModelTask,
  to: { readonly conv: string; readonly is_from_template: boolean },
  type: 'create' | 'modify' | 'show',
): string | undefined {
  const { conv } = to
  const { user } = task
  const covered =
    !to.is_from_template ||
    (user === undefined
      ? conv === task.conv || namedIn(world.planOf(task.conv)).has(conv)
      : world.mayUse(user, conv, type))
  return covered && world.processes.has(conv) ? conv : undefined
}

const named_in = new WeakMap<Plan, Set<string>>()

/** The processes that a definition names without a template. */
function namedIn(plan: Plan | undefined): Set<string> {
  if (plan === undefined) return new Set()
  const known = named_in.get(plan)
  if (known !== undefined) return known
  const found = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if ('conv' in value) {
      const { conv } = value as { conv: unknown }
      if (typeof conv === 'string') found.add(conv)
      else if (Array.isArray(conv) && conv.length === 1 && typeof conv[0] === 'string') {
        found.add(conv[0])
      }
    }
    for (const one of Object.values(value)) visit(one)
  }
  for (const { steps, timers } of plan.nodes.values()) visit([steps as Step[], timers])
  named_in.set(plan, found)
  return found
}

function rootOf(world: World, task: ModelTask, name: string): Json | undefined {
  const nodes = world.planOf(task.conv)?.nodes
  switch (name) {
    case 'task_id':
      return task.obj_id
    case 'ref':
      return task.ref === undefined ? undefined : String(task.ref)
    case 'conv_id':
      return asNumber(task.conv)
    case 'node_id':
      return task.node
    case 'prev_node_id':
      return task.prev
    case 'node_name':
      return nodes?.get(task.node)?.title
    case 'prev_node_name':
      return nodes?.get(task.prev)?.title
    case 'status':
      return task.status
    case 'create_time':
      return Math.floor(task.created_ms / 1_000)
    case 'change_time':
      return Math.floor(task.changed_ms / 1_000)
    case 'user_id':
      return task.user === undefined ? undefined : asNumber(task.user)
    default:
      return undefined
  }
}

const asNumber = (id: string): Json => (/^[1-9][0-9]*$/.test(id) ? Number(id) : id)
