/**
 * The calls that change one task, or whether a process goes on. What the engine refuses of a task
 * is an outcome, with its code.
 */
import {
  actAndShow,
  applyTasks,
  maskWritten,
  type ResultView,
} from '../../../task-operations/task-actions.ts'
import type { ActionOutcome, NamedTask } from '../messages.ts'
import {
  type Acted,
  badRequest,
  type CallRow,
  flagOf,
  type Input,
  idOf,
  inputOf,
  namedIn,
  objIdOf,
  optional,
} from './call.ts'
import { settledTask } from './settling.ts'

export const modify: CallRow<'modify'> = {
  right: 'operate',
  acts: actedOn,
  async run({ engine }, given) {
    const input = inputOf(given, ['conv_id', 'obj_id', 'data_text', 'node_id', 'is_sync'])
    const target = targetOf(input)
    const { data_text } = input
    if (typeof data_text !== 'string') throw badRequest('data_text is no text')
    const is_sync = flagOf('is_sync', input.is_sync)
    const where = optional('node_id', input.node_id, idOf)
    const masked = await maskWritten(engine, target.conv_id, data_text)
    if (masked !== undefined) return { proc: 'error', description: masked }
    const op = { type: 'modify', ...target, data_text, is_sync, ...where } as const
    const [result] = await applyTasks(engine, { ops: [op] })
    return outcomeOf(result as ResultView)
  },
}

function actCall<Name extends 'retry' | 'move' | 'cancel'>(
  action: Name,
  nodeOf: (value: unknown) => string | undefined,
): CallRow<Name> {
  return {
    right: 'operate',
    acts: actedOn,
    async run({ engine }, given) {
      const names = ['conv_id', 'obj_id', 'node_id'] as const
      const input = inputOf(given, action === 'cancel' ? names.slice(0, 2) : names)
      const to = nodeOf(input.node_id)
      const act = { action, ...(to !== undefined && { to_node_id: to }) }
      return outcomeOf(await actAndShow(engine, targetOf(input), act))
    },
  }
}

const retryAct = actCall('retry', (id) => optional('node_id', id, idOf).node_id)

/** Also says what became of the task. */
export const retry: CallRow<'retry'> = {
  ...retryAct,
  async run(context, given) {
    const outcome = await retryAct.run(context, given)
    if (outcome.proc !== 'ok') return outcome
    const { obj_id } = targetOf(inputOf(given, ['conv_id', 'obj_id', 'node_id']))
    return { ...outcome, settled: await settledTask(context.engine, obj_id) }
  },
}
export const move = actCall('move', (id) => idOf('node_id', id))
export const cancel = actCall('cancel', () => undefined)

function statusCall<Name extends 'pause' | 'resume'>(name: Name): CallRow<Name> {
  return {
    right: 'administer',
    acts: (input) => namedIn(input),
    async run({ engine }, given) {
      await engine.processes[name](idOf('conv_id', inputOf(given, ['conv_id']).conv_id))
      return {}
    },
  }
}

export const pause = statusCall('pause')
export const resume = statusCall('resume')

/** What is named, where it is an id, and what the engine made of it. */
function actedOn(input: unknown, output?: ActionOutcome): Acted {
  const { proc: code } = output ?? {}
  return { ...namedIn(input), ...(code && { code, tasks: code === 'ok' ? 1 : 0 }) }
}

function targetOf({ conv_id, obj_id }: Input<'conv_id' | 'obj_id'>): NamedTask {
  return { conv_id: idOf('conv_id', conv_id), obj_id: objIdOf('obj_id', obj_id) }
}

function outcomeOf({ proc, description, was, now }: ResultView): ActionOutcome {
  return {
    proc,
    ...(description === undefined ? {} : { description }),
    ...(was === undefined ? {} : { was }),
    ...(now === undefined ? {} : { now }),
  }
}
