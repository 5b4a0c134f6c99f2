/**
 * What each kind of logic does in the model: its effect on the task, and what it does to others.
 */
import { answerCaller, resume, startTask, waitAt } from './advance.ts'
import { assigned, conversion, evaluate, isFailed, termValue } from './expressions.ts'
import { modifyTask } from './modify.ts'
import {
  type Assignment,
  type Condition,
  type Data,
  type Expression,
  type Json,
  type Step,
  textOf,
} from './plan.ts'
import { readsOf, target } from './reads.ts'
import { compare, numberOf, textOfValue } from './values.ts'
import { isLive, type ModelTask, type Refusal, type World } from './world.ts'

export interface Failure {
  readonly does: 'fail'
  readonly kind: string
  readonly tag: string
  readonly says: string
  readonly err: string | undefined
  readonly is_hardware?: boolean
}

export type Effect =
  | { readonly does: 'next' }
  | { readonly does: 'go'; readonly to: string }
  | { readonly does: 'set'; readonly data: Data; readonly err: string | undefined }
  | { readonly does: 'wait'; readonly for: ModelTask['wait'] }
  | Failure

const next: Effect = { does: 'next' }
type Of<Does extends Step['does']> = Extract<Step, { does: Does }>

export function runStep(world: World, task: ModelTask, step: Step): Effect {
  switch (step.does) {
    case 'go':
      return { does: 'go', to: step.to }
    case 'go_if_const':
      return step.conditions.every((one) => holds(world, task, one))
        ? { does: 'go', to: step.to }
        : next
    case 'set_param':
      return tried(world, 'set_param', step.err, () => {
        const data = assigned(step.set, readsOf(world, task), task.data)
        return { does: 'set', data, err: step.err }
      })
    case 'api_callback': {
      const title = world.planOf(task.conv)?.nodes.get(task.node)?.title
      return { does: 'wait', for: title === world.handled_title ? 'work' : 'callback' }
    }
    case 'api_copy':
      return tried(world, 'copy_task', step.err, () => copy(world, task, step))
    case 'api_rpc':
      return tried(world, 'rpc', step.err, () => call(world, task, step))
    case 'api_rpc_reply':
      return reply(world, task, step)
    case 'api_queue':
      return tried(world, 'queue', step.err, () => {
        const data = assigned(step.set, readsOf(world, task), task.data)
        const over = world.overSize(data)
        if (over !== undefined)
          return failure('queue', 'queue_task_size_overflow', over.says, step.err)
        task.data = data
        return { does: 'wait', for: 'queue' }
      })
    case 'api_get_task':
      return tried(world, 'get_task', step.err, () => take(world, task, step))
    case 'api_sum':
      return tried(world, 'sum', step.err, () => add(world, task, step))
    default:
      return { does: 'wait', for: 'work' }
  }
}

const failure = (kind: string, tag: string, says: string, err: string | undefined): Failure => ({
  ...{ does: 'fail', kind, tag, says, err },
})

/** The tags of each kind that do not follow from its name. */
const tags: Readonly<Record<string, { readonly convert?: string; readonly overflow?: string }>> = {
  copy_task: { overflow: 'copy_task_size_overflow_limit' },
  rpc: { convert: 'rpc_task_wrong_convert_param' },
}

/** What templates fail of is a failure of the logic. */
function tried(world: World, kind: string, err: string | undefined, run: () => Effect): Effect {
  try {
    return run()
  } catch (thrown) {
    if (!isFailed(thrown)) throw thrown
    if (thrown.failed === 'denied') return failure(kind, 'access_denied', thrown.says, err)
    if (thrown.failed === 'overflow') {
      const tag = tags[kind]?.overflow ?? `${kind}_task_size_overflow`
      const says = `the values are longer than ${world.limits.task_bytes_max} bytes`
      return failure(kind, tag, says, err)
    }
    return failure(kind, tags[kind]?.convert ?? `${kind}_wrong_convert_param`, thrown.says, err)
  }
}

function holds(world: World, task: ModelTask, condition: Condition): boolean {
  const { fun, cast, param, constant } = condition
  const reads = readsOf(world, task)
  world.meet(`${cast} ${fun}`)
  try {
    const found = side(fun, () => termValue(param, reads))
    return compare(
      condition,
      found,
      side(fun, () => evaluate(constant, reads, reads.bytes_max)),
    )
  } catch (thrown) {
    if (isFailed(thrown)) return fun === 'not_eq'
    throw thrown
  }
}

/** What may not be read is missing. */
function side(fun: string, read: () => Json | undefined): Json | undefined {
  try {
    return read()
  } catch (thrown) {
    if (isFailed(thrown) && thrown.failed === 'denied' && fun !== 'regexp') return undefined
    throw thrown
  }
}

/** The process that a logic names, and whether a template gave it. */
function convOf(
  world: World,
  task: ModelTask,
  conv: Expression,
): { conv: string; is_from_template: boolean } {
  const reads = readsOf(world, task)
  const value = evaluate(conv, reads, reads.bytes_max)
  const is_id = typeof value === 'number' || (typeof value === 'string' && value !== '')
  if (!is_id) throw conversion('conv_id', value ?? textOf(conv), 'conv_id')
  const is_from_template = conv.some((part) => typeof part !== 'string')
  return { conv: textOfValue(value), is_from_template }
}

function listed(
  world: World,
  task: ModelTask,
  step: { set: readonly Assignment[]; sends_all: boolean },
): Data {
  return assigned(step.set, readsOf(world, task), step.sends_all ? task.data : {})
}

const denied = (task: ModelTask, conv: string): Refusal => ({
  code: 'access_denied',
  says: `user: ${task.user ?? '-'}, conv_id: ${conv}`,
})
const inactive: Refusal = { code: 'conveyor_is_not_active', says: 'conveyor is not active' }
const advice = ', Try to change your data or try to split your task'

function copyFailed({ code, says }: Refusal, err: string | undefined): Failure {
  const is_over = code === 'task_size_overflow_limit'
  const tag = is_over ? 'copy_task_size_overflow_limit' : code
  return failure('copy_task', tag, is_over ? says + advice : says, err)
}

function copyDone(world: World, data: Data, err: string | undefined): Effect {
  const done = { ...data, __conveyor_copy_task_result__: 'ok' }
  const over = world.overSize(done)
  return over === undefined ? { does: 'set', data: done, err } : copyFailed(over, err)
}

function copy(world: World, task: ModelTask, step: Of<'api_copy'>): Effect {
  const { err } = step
  const reads = readsOf(world, task)
  const to = convOf(world, task, step.conv)
  const found = step.ref === undefined ? undefined : evaluate(step.ref, reads, reads.bytes_max)
  const ref = found === undefined || found === null || found === '' ? undefined : textOfValue(found)
  if (ref !== undefined && [...ref].length > 255) throw conversion('ref', ref, 'ref')
  const data = listed(world, task, step)
  if (step.mode === 'modify' && ref === undefined) {
    return failure('copy_task', 'not_found_task', 'not found task', err)
  }
  const conv = target(world, task, to, step.mode)
  if (conv === undefined) return copyFailed(denied(task, to.conv), err)
  const process = world.processes.get(conv)
  if (process?.is_paused) return copyFailed(inactive, err)
  const is_own = task.conv === conv && ref !== undefined && String(task.ref) === ref
  if (step.mode === 'modify') {
    return is_own
      ? modifySelf(world, task, data, step)
      : copyModify(world, task, conv, ref as string, data, step)
  }
  const holder = ref === undefined ? undefined : world.holder(conv, ref)
  const is_taken = is_own || (holder !== undefined && isLive(holder))
  // The task has its own ref also before it is saved; another's is looked at last.
  if (is_own) return copyFailed(ref_taken, err)
  if (holder === undefined || !isLive(holder) || !isSame(world, holder, data)) {
    const over =
      world.overSize(data) ?? world.wrongParam((process as NonNullable<typeof process>).plan, data)
    if (over !== undefined) return copyFailed(over, err)
  }
  if (is_taken) return copyFailed(ref_taken, err)
  const done = copyDone(world, task.data, err)
  if (done.does === 'set') {
    const { user, moves } = task
    startTask(
      world,
      { conv, ref, user, data, former: holder, caller: undefined },
      's',
      moves,
      'copy',
    )
  }
  return done
}

const ref_taken: Refusal = { code: 'not_unical_ref', says: 'not unical reference' }
const isSame = (world: World, holder: ModelTask, data: Data): boolean =>
  world.sameData(holder.first, data)

function modifySelf(world: World, task: ModelTask, data: Data, step: Of<'api_copy'>): Effect {
  if (step.is_sync) return copyFailed(no_callback, step.err)
  return copyDone(world, { ...task.data, ...data }, step.err)
}

const no_callback: Refusal = {
  code: 'no_api_callback_in_node_with_task',
  says: 'no api callback logic in node with task',
}

function copyModify(
  world: World,
  task: ModelTask,
  conv: string,
  ref: string,
  data: Data,
  { is_sync, err }: Of<'api_copy'>,
): Effect {
  const done = copyDone(world, task.data, err)
  if (done.does !== 'set') return done
  const other = world.holder(conv, ref)
  if (other === undefined || !isLive(other)) {
    return failure('copy_task', 'not_found_task', 'not found task', err)
  }
  const at = modifyTask(world, other, data, { is_sync })
  if (typeof at === 'object') return copyFailed(at, err)
  world.note(other, 'copy')
  if (at !== 'stays') resume(world, other, at, task.moves)
  world.save(other)
  return done
}

function callFailed({ code, says }: Refusal, err: string | undefined): Failure {
  const of_code: Readonly<Record<string, string>> = {
    task_size_overflow_limit: 'rpc_task_size_overflow',
    wrong_validate_params: 'rpc_task_wrong_convert_param',
    access_denied: 'access_denied',
  }
  const tag = of_code[code]
  return {
    ...failure('rpc', tag ?? 'rpc_task_fatal_error', says, err),
    is_hardware: tag === undefined,
  }
}

function call(world: World, task: ModelTask, step: Of<'api_rpc'>): Effect {
  const to = convOf(world, task, step.conv)
  const data = listed(world, task, step)
  const conv = target(world, task, to, 'create')
  if (conv === undefined) return callFailed(denied(task, to.conv), step.err)
  const process = world.processes.get(conv)
  if (process?.is_paused) return callFailed(inactive, step.err)
  const over =
    world.overSize(data) ?? world.wrongParam((process as NonNullable<typeof process>).plan, data)
  if (over !== undefined) return callFailed(over, step.err)
  const { user, moves } = task
  const given = { conv, ref: undefined, user, data, former: undefined, caller: task }
  task.called = startTask(world, given, 's', moves, 'rpc')
  return { does: 'wait', for: 'reply' }
}

function reply(world: World, task: ModelTask, step: Of<'api_rpc_reply'>): Effect {
  const { err, throws } = step
  const reads = readsOf(world, task)
  let data: Data = {}
  const made = tried(world, 'rpc_reply', err, () => {
    data = assigned(step.set, reads, {})
    return next
  })
  if (made.does === 'fail' && !throws) return made
  const { caller } = task
  task.caller = undefined
  const says = throws ? textOfValue(evaluate(step.reason, reads, reads.bytes_max) ?? '') : ''
  const why = says === '' && made.does === 'fail' ? made.says : says
  if (
    caller !== undefined &&
    !caller.is_gone &&
    caller.called === task &&
    caller.wait === 'reply'
  ) {
    replyTo(world, caller, task.moves, data, throws ? why : undefined)
  }
  return made.does === 'fail' && err !== undefined ? made : next
}

function replyTo(
  world: World,
  caller: ModelTask,
  moves: number,
  added: Data,
  exception: string | undefined,
): void {
  const data = { ...caller.data, ...added }
  const over = world.overSize(data)
  if (over === undefined) caller.data = data
  const thrown = { kind: 'rpc_reply', tag: 'rpc_reply_exception', says: exception ?? '' }
  const failed = { kind: 'rpc', tag: 'rpc_task_size_overflow', says: over?.says ?? '' }
  const refused = over === undefined ? undefined : failed
  answerCaller(world, caller, moves, refused ?? (exception === undefined ? undefined : thrown))
}

function take(world: World, task: ModelTask, step: Of<'api_get_task'>): Effect {
  const { err } = step
  const to = convOf(world, task, step.conv)
  const reads = readsOf(world, task)
  const found = evaluate(step.node, reads, reads.bytes_max)
  if (found === undefined || found === null || found === '')
    throw conversion('node_id', '', 'node_id')
  const node_id = textOfValue(found)
  if ([...node_id].length > 255) throw conversion('node_id', node_id, 'node_id')
  const notTaken = (says: string, tag = 'get_task_executing_error'): Failure =>
    failure('get_task', tag, says, err)
  const conv = target(world, task, to, 'modify')
  if (conv === undefined) return notTaken('access_denied')
  const process = world.processes.get(conv)
  if (process?.is_paused) return notTaken('conveyor is not active')
  const node = process?.plan.nodes.get(node_id)
  if (!node?.steps.some(({ does }) => does === 'api_queue')) {
    return failure('queue', 'queue_wrong_logic', `No queue logic in conv_id: ${conv}`, err)
  }
  const queue = (world.queues.get(`${conv} ${node_id}`) ?? []).filter((one) => one !== task)
  const taken = step.newest ? queue.at(-1) : queue[0]
  if (taken === undefined) return notTaken('not_found_task')
  const data: Data = {
    ...task.data,
    __queue_task_data__: taken.data as Json,
    __queue_task_id__: taken.obj_id,
  }
  const over = world.overSize(data)
  if (over !== undefined) return notTaken(over.says, 'get_task_size_overflow')
  world.note(taken, 'queue')
  resume(world, taken, waitAt(node, taken, 'api_queue') + 1, task.moves)
  world.save(taken)
  return { does: 'set', data, err }
}

function add(world: World, task: ModelTask, step: Of<'api_sum'>): Effect {
  const reads = readsOf(world, task)
  const terms = step.add.flatMap(({ name, value }) => {
    const found = evaluate(value, reads, reads.bytes_max)
    if (found === undefined || found === null || found === '') return []
    const number = numberOf(found)
    if (number === undefined) throw conversion(name, found, 'number')
    return [{ name, number }]
  })
  for (const { name, number } of terms) {
    const key = `${task.conv} ${task.node} ${name}`
    world.sums.set(key, (world.sums.get(key) ?? 0) + number)
  }
  return next
}
