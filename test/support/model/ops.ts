/**
 * The ops of callers and the administration of tasks and processes, in the model: each answers what
 * the engine must.
 */
import { advance, drain, enter, migrate, saveAndDrain } from './advance.ts'
import { modifyTask } from './modify.ts'
import { type Data, definitionText, type Plan } from './plan.ts'
import { isLive, type ModelTask, type Ref, type Refusal, type World } from './world.ts'

/** `task` where one is known, `says` where it is a refusal. */
export interface Answer {
  readonly code: 'ok' | Refusal['code']
  readonly says?: string
  readonly task?: ModelTask
  /** Of a modify that was taken. */
  readonly resumed?: boolean
}

export type Target = { readonly ref: Ref } | { readonly obj_id: string }

const not_active: Answer = { code: 'conveyor_is_not_active', says: 'conveyor is not active' }
const not_found: Answer = { code: 'not_found_task', says: 'not found task' }

function access(world: World, type: string, conv: string, user?: string): Answer | undefined {
  if (user !== undefined) {
    const is_granted = world.mayUse(user, conv, type) && world.processes.has(conv)
    if (is_granted) return undefined
    return { code: 'access_denied', says: `user: ${user}, conv_id: ${conv}` }
  }
  if (world.processes.has(conv)) return undefined
  return { code: 'conv_not_found', says: `Object conv with id ${conv} does not exist` }
}

function find(world: World, conv: string, target: Target): ModelTask | undefined {
  const found = 'ref' in target ? world.holder(conv, target.ref) : world.tasks.get(target.obj_id)
  return found?.conv === conv ? found : undefined
}

function findLive(world: World, conv: string, target: Target): ModelTask | undefined {
  const task = find(world, conv, target)
  return task !== undefined && isLive(task) ? task : undefined
}

export function create(
  world: World,
  conv: string,
  ref: Ref | undefined,
  data: Data,
  user?: string,
): Answer {
  const refused = access(world, 'create', conv, user)
  if (refused !== undefined) return refused
  const process = world.processes.get(conv)
  world.beginOp()
  const holder = ref === undefined ? undefined : world.holder(conv, ref)
  const clash = holder !== undefined && isLive(holder) ? holder : undefined
  if (clash !== undefined && world.sameData(clash.first, data)) return { code: 'ok', task: clash }
  if (process?.is_paused) return not_active
  const wrong = world.overSize(data) ?? world.wrongParam(process?.plan as Plan, data)
  if (wrong !== undefined) return wrong
  if (clash !== undefined) {
    return { code: 'not_unical_ref', says: 'not unical reference', task: clash }
  }
  const task = world.newTask({ conv, ref, user, data, former: holder, caller: undefined })
  enter(world, task, 's', 'create', user)
  saveAndDrain(world, task)
  return { code: 'ok', task }
}

export interface Demand {
  readonly is_sync?: boolean | undefined
  readonly node_id?: string | undefined
}

export function modify(
  world: World,
  conv: string,
  target: Target,
  data: Data,
  demand: Demand,
  user?: string,
): Answer {
  const refused = access(world, 'modify', conv, user)
  if (refused !== undefined) return refused
  world.beginOp()
  if (world.processes.get(conv)?.is_paused) return not_active
  const task = findLive(world, conv, target)
  if (task === undefined) return not_found
  // A task whose node was dropped goes on first, and may have ended by that.
  if (migrate(world, task)) {
    world.save(task)
    if (!isLive(task)) {
      drain(world)
      return not_found
    }
  }
  const at = modifyTask(world, task, data, demand)
  if (typeof at === 'object') {
    drain(world)
    return { ...at, task }
  }
  world.note(task, at !== 'stays' && at > 0 ? 'callback' : 'modify', { by: user })
  if (at !== 'stays') advance(world, task, at)
  world.save(task)
  drain(world)
  return { code: 'ok', task, resumed: at !== 'stays' }
}

export function show(world: World, conv: string, target: Target, user?: string): Answer {
  const refused = access(world, 'show', conv, user)
  if (refused !== undefined) return refused
  const task = find(world, conv, target)
  return task === undefined ? not_found : { code: 'ok', task }
}

export function cancel(world: World, conv: string, target: Target): Answer {
  const refused = access(world, 'cancel', conv)
  if (refused !== undefined) return refused
  world.beginOp()
  const task = findLive(world, conv, target)
  if (task === undefined) return not_found
  world.note(task, 'cancel')
  Object.assign(task, {
    status: 'canceled',
    details: undefined,
    wait: 'nothing',
    keeps_ended: true,
  })
  return saved(world, task)
}

/** The task is as this change left it: what it has made ready may change it since. */
function saved(world: World, task: ModelTask): Answer {
  world.save(task)
  const left = { ...task, history: [...task.history] }
  drain(world)
  return { code: 'ok', task: left }
}

const noNode = (task: ModelTask, node: string): Answer => ({
  ...{ code: 'error', says: `Value is not valid. node_id: "${node}" is no node`, task },
})

export function retry(
  world: World,
  conv: string,
  target: Target,
  node: string | undefined,
): Answer {
  const refused = access(world, 'retry', conv)
  if (refused !== undefined) return refused
  world.beginOp()
  const process = world.processes.get(conv)
  if (process?.is_paused) return not_active
  const task = findLive(world, conv, target)
  if (task === undefined) return not_found
  if (task.status !== 'failed') return { code: 'error', says: 'the task has not failed', task }
  if (node !== undefined && !process?.plan.nodes.has(node)) return noNode(task, node)
  migrate(world, task)
  task.moves = 0
  if (node !== undefined) enter(world, task, node, 'retry')
  else {
    world.note(task, 'retry')
    advance(world, task, 0)
  }
  return saved(world, task)
}

export function move(world: World, conv: string, target: Target, node: string): Answer {
  const refused = access(world, 'move', conv)
  if (refused !== undefined) return refused
  world.beginOp()
  const process = world.processes.get(conv)
  if (process?.is_paused) return not_active
  const task = findLive(world, conv, target)
  if (task === undefined) return not_found
  if (!process?.plan.nodes.has(node)) return noNode(task, node)
  task.moves = 0
  enter(world, task, node, 'move')
  return saved(world, task)
}

/** What the import answers, or the code it is refused with. */
export function deploy(
  world: World,
  conv: string,
  plan: Plan,
  given: ReadonlyMap<string, string>,
): string {
  const old = world.processes.get(conv)
  if (old === undefined) {
    world.processes.set(conv, { plan, is_paused: false, version: 1, moves: new Map() })
    return 'created'
  }
  if (definitionText(conv, old.plan) === definitionText(conv, plan)) return 'unchanged'
  if ([...given.values()].some((to) => !plan.nodes.has(to))) return 'bad_definition'
  const moves = new Map<string, string>()
  for (const node of new Set([...old.plan.nodes.keys(), ...old.moves.keys()])) {
    if (plan.nodes.has(node) || world.liveCount(conv, node) === 0) continue
    const before = old.moves.get(node) ?? ''
    const to = given.get(node) ?? (plan.nodes.has(before) ? before : given.get(before))
    if (to === undefined) return 'tasks_in_node'
    moves.set(node, to)
  }
  Object.assign(old, { plan, moves, version: old.version + 1 })
  return 'updated'
}

export function setPaused(world: World, conv: string, is_paused: boolean): string {
  const process = world.processes.get(conv)
  if (process === undefined) return 'conv_not_found'
  process.is_paused = is_paused
  return 'ok'
}

export function remove(world: World, conv: string): string {
  if (!world.processes.has(conv)) return 'conv_not_found'
  if (world.live(conv).length > 0) return 'process_has_tasks'
  for (const key of [...world.grants.keys()]) if (key.endsWith(` ${conv}`)) world.grants.delete(key)
  for (const key of [...world.sums.keys()]) if (key.startsWith(`${conv} `)) world.sums.delete(key)
  world.processes.delete(conv)
  return 'ok'
}

export function share(
  world: World,
  conv: string,
  user: string,
  can: readonly string[] | undefined,
): string {
  if (!world.processes.has(conv)) return 'conv_not_found'
  if (can === undefined) world.grants.delete(`${user} ${conv}`)
  else world.grants.set(`${user} ${conv}`, can)
  return 'ok'
}
