/**
 * How the model advances a task until it waits, ends or fails, and what runs after it in the same
 * transaction: the tasks that this has made ready, the callers without an answer, the signals of
 * count semaphors.
 */
import { type Failed, isFailed, termValue } from './expressions.ts'
import { type Effect, type Failure, runStep } from './logics.ts'
import type { Data, PlanNode } from './plan.ts'
import { readsOf } from './reads.ts'
import { numberOf, textOfValue } from './values.ts'
import { isLive, type ModelTask, type World } from './world.ts'

export function moveToNode(world: World, task: ModelTask, node: string): void {
  Object.assign(task, { prev: task.node, node, due_ms: 0 })
  task.moves++
  task.visit++
  countMove(world, task)
}

function countMove({ tx }: World, task: ModelTask): void {
  tx.moves_left--
  tx.moves_made++
  tx.chain_moves = Math.max(tx.chain_moves, task.moves)
}

/** The task goes on at a logic of its node, in this transaction if there are moves left. */
export function resume(world: World, task: ModelTask, at: number, moves: number): void {
  makeReady(world, task, at)
  task.moves = Math.max(task.moves, moves) + 1
  countMove(world, task)
  world.tx.ready.push(task)
}

function makeReady({ now_ms }: World, task: ModelTask, at: number): void {
  Object.assign(task, { kept_due_ms: task.due_ms, status: 'processing', details: undefined })
  Object.assign(task, { wait: 'ready', at, due_ms: now_ms })
}

/** A task of a process, in its first node or another, that runs after the present one. */
export function startTask(
  world: World,
  given: Pick<ModelTask, 'conv' | 'ref' | 'user' | 'data' | 'former' | 'caller'>,
  node: string,
  moves: number,
  why: 'copy' | 'rpc' | 'count',
): ModelTask {
  const task = world.newTask(given)
  task.node = node
  task.visit++
  world.note(task, why)
  resume(world, task, 0, moves)
  world.save(task)
  return task
}

export function fail(world: World, task: ModelTask, tag: string, says: string): void {
  world.note(task, 'fail', { tag })
  const description = says.slice(0, 1_000)
  Object.assign(task, {
    status: 'failed',
    details: { tag, description },
    wait: 'nothing',
    due_ms: 0,
  })
}

/** Goes to the error node with the error fields, or has failed where there is none. */
export function goToErrorNode(world: World, task: ModelTask, failure: Failure): 'moved' | 'stays' {
  const { kind, tag, says, err, is_hardware = false } = failure
  if (err === undefined) {
    fail(world, task, tag, says)
    return 'stays'
  }
  const prefix = `__conveyor_${kind}_return`
  const data: Data = {
    ...task.data,
    [`${prefix}_type_error__`]: is_hardware ? 'hardware' : 'software',
    [`${prefix}_type_tag__`]: tag,
    [`${prefix}_description__`]: says.slice(0, 1_000),
  }
  if (world.overSize(data) === undefined) task.data = data
  moveToNode(world, task, err)
  world.note(task, 'fail', { tag })
  return 'moved'
}

export function enter(
  world: World,
  task: ModelTask,
  node: string,
  why: 'create' | 'timer' | 'retry' | 'move' | 'migrate',
  by?: string,
): void {
  moveToNode(world, task, node)
  world.note(task, why, { by })
  advance(world, task, 0)
}

/** Runs the node from a logic on; `decided` is what that logic does, where a job has decided it. */
export function advance(world: World, task: ModelTask, from: number, decided?: Effect): void {
  const { limits, tx } = world
  Object.assign(task, {
    status: 'processing',
    details: undefined,
    wait: 'nothing',
    called: undefined,
  })
  let at = from
  let given = decided
  for (;;) {
    const node = world.planOf(task.conv)?.nodes.get(task.node) as PlanNode
    if (task.moves >= limits.moves_without_rest_max) {
      const says = `${limits.moves_without_rest_max} moves without coming to rest`
      fail(world, task, 'loop', says)
      return
    }
    if (node.kind === 'end') {
      Object.assign(task, { status: 'processed', keeps_ended: node.save })
      return
    }
    if (tx.moves_left <= 0 && given === undefined) {
      makeReady(world, task, at)
      return
    }
    const step = node.steps[at]
    if (step === undefined && given === undefined) {
      rest(world, task, node, 'nothing', 0)
      return
    }
    if (step !== undefined) world.meet(step.does)
    const wanted = given ?? runStep(world, task, step as NonNullable<typeof step>)
    const effect = wanted.does === 'set' ? setData(world, task, wanted, step?.does ?? '') : wanted
    given = undefined
    if (effect.does === 'wait') {
      rest(world, task, node, effect.for, at)
      return
    }
    if (effect.does === 'go') {
      moveToNode(world, task, effect.to)
      world.note(task, 'go')
      at = 0
    } else if (effect.does === 'fail') {
      if (goToErrorNode(world, task, effect) === 'stays') return
      at = 0
    } else at++
  }
}

/** No data over the limit stays. */
function setData(
  world: World,
  task: ModelTask,
  set: Extract<Effect, { does: 'set' }>,
  kind: string,
): Effect {
  const over = world.overSize(set.data)
  if (over === undefined) {
    task.data = set.data
    return set
  }
  const tag = `${kind}_task_size_overflow`
  return { does: 'fail', kind, tag, says: over.says, err: set.err }
}

function rest(
  world: World,
  task: ModelTask,
  node: PlanNode,
  wait: ModelTask['wait'],
  at: number,
): void {
  const { now_ms } = world
  Object.assign(task, { status: 'delayed', wait, at, is_last_in_queue: wait === 'queue' })
  if (wait === 'work') {
    const type = node.steps[at]?.does ?? ''
    task.visit++
    const key = `${task.obj_id}-${task.visit}-${at}`
    task.job = { task, type, at, key, begins_ms: now_ms, attempts: 0, seen: [task.data] }
  }
  if (task.due_ms === 0) {
    for (const [timer_at, { value }] of node.timers.entries()) {
      let due_ms = now_ms
      if (typeof value === 'number') due_ms += Math.ceil(value * 1_000)
      else {
        try {
          const found = termValue(value, readsOf(world, task))
          const second = numberOf(found)
          if (second === undefined || second > 8_640_000_000_000) {
            const what = found === undefined ? 'missing' : textOfValue(found)
            const says = `Value: ${what.slice(0, 128)}, Try convert to: Unix time`
            throw { failed: 'convert', says } satisfies Failed
          }
          due_ms = Math.max(1, Math.ceil(second * 1_000))
        } catch (thrown) {
          if (!isFailed(thrown)) throw thrown
          fail(world, task, 'semaphor_wrong_convert_param', `time semaphor: ${thrown.says}`)
          return
        }
      }
      if (task.due_ms === 0 || due_ms < task.due_ms) Object.assign(task, { due_ms, timer_at })
    }
    if (task.due_ms !== 0) task.due_ms = Math.max(task.due_ms, now_ms)
  }
  if (task.due_ms === 0 || task.due_ms > now_ms) task.moves = 0
}

export function saveAndDrain(world: World, task: ModelTask): void {
  world.save(task)
  drain(world)
}

/** What an op has made ready runs in its transaction, as long as there are moves. */
export function drain(world: World): void {
  const { tx } = world
  do {
    answerCallers(world)
    while (tx.ready.length > 0 && tx.moves_left > 0) {
      const task = tx.ready.shift() as ModelTask
      const is_paused = world.processes.get(task.conv)?.is_paused ?? true
      if (task.wait === 'ready' && !is_paused && isLive(task)) {
        advanceReady(world, task)
        world.save(task)
      }
      answerCallers(world)
    }
    while (sendSignals(world));
  } while (tx.ready.length > 0 && tx.moves_left > 0)
  tx.ready.length = 0
}

export function advanceReady(world: World, task: ModelTask): void {
  task.due_ms = task.kept_due_ms
  task.kept_due_ms = 0
  if (!migrate(world, task)) advance(world, task, task.at)
}

/** A task in a dropped node goes where the import says. */
export function migrate(world: World, task: ModelTask): boolean {
  const process = world.processes.get(task.conv)
  if (process === undefined || process.plan.nodes.has(task.node)) return false
  const to = process.moves.get(task.node) ?? 's'
  if (task.status === 'failed') {
    Object.assign(task, { prev: task.node, node: to, visit: task.visit + 1 })
    world.note(task, 'migrate')
  } else enter(world, task, to, 'migrate')
  return true
}

/** The callers whose called task has ended or failed without a reply. */
function answerCallers(world: World): void {
  const { unanswered } = world.tx
  for (let one = unanswered.shift(); one !== undefined; one = unanswered.shift()) {
    if (one.caller.is_gone || one.caller.called !== one.called || one.caller.wait !== 'reply')
      continue
    const says = 'the called task ended or failed without a reply'
    const failure = { kind: 'rpc', tag: 'rpc_task_fatal_error', says, is_hardware: true }
    answerCaller(world, one.caller, one.moves, failure)
  }
}

/** The caller goes on after its call, or to the error node of the call. */
export function answerCaller(
  world: World,
  caller: ModelTask,
  moves: number,
  failure: Omit<Failure, 'does' | 'err'> | undefined,
): void {
  const plan = world.planOf(caller.conv)
  const node = plan?.nodes.get(caller.node)
  const at = waitAt(node, caller, 'api_rpc')
  const step = node?.steps[at]
  caller.called = undefined
  if (failure === undefined || node === undefined) {
    world.note(caller, 'reply')
    resume(world, caller, at + 1, moves)
  } else {
    caller.moves = Math.max(caller.moves, moves)
    const err = step !== undefined && 'err' in step ? step.err : undefined
    const outcome = goToErrorNode(world, caller, { does: 'fail', ...failure, err })
    if (outcome === 'moved') resume(world, caller, 0, moves)
  }
  world.save(caller)
}

/** The logic at which it waits, or the first of that kind in a node that has changed; else -1. */
export function waitAt(node: PlanNode | undefined, { at }: ModelTask, does: string): number {
  if (node?.steps[at]?.does === does) return at
  return node?.steps.findIndex((step) => step.does === does) ?? -1
}

/** Whether one was sent, which may have changed a number itself. */
function sendSignals(world: World): boolean {
  let has_sent = false
  const changes = [...world.tx.touched.values()].map((touched) => {
    const { conv, node, told: before } = touched
    touched.told = world.liveCount(conv, node)
    return { conv, node, before, now: touched.told }
  })
  for (const { conv, node, before, now } of changes) {
    for (const { value, to } of world.planOf(conv)?.nodes.get(node)?.counts ?? []) {
      const is_reached = before < value && now >= value
      if (!is_reached && !(before >= value && now < value)) continue
      const data = { start: is_reached ? 'true' : 'false' }
      const nobody = { ref: undefined, user: undefined, former: undefined, caller: undefined }
      world.meet(`signal ${data.start}`)
      startTask(world, { conv, data, ...nobody }, to, world.tx.chain_moves, 'count')
      has_sent = true
    }
  }
  return has_sent
}
