/**
 * The verbs that change tasks: one that is named, or all that the flags of a filter find, which
 * task-bulk does. Without a name and without such a flag nothing is changed.
 */
import { defined } from '../../core/defined.ts'
import type { BulkAction } from '../../engine/api/search-api.ts'
import type { ResultView } from '../../task-operations/task-actions.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, usageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { printResult } from '../output.ts'
import { type Flag, file_flags, flag, type Given, isOn, text, type Verb } from '../verb.ts'
import { bulk_notes, bulkFlags, changeMany } from './task-bulk.ts'
import { filter_notes, filterFlags } from './task-filter.ts'
import {
  applyOp,
  conv_word,
  data_flag,
  dataOf,
  target_flags,
  target_notes,
  targetOf,
  task_word,
} from './task-target.ts'

interface ChangeVerb {
  readonly action: BulkAction
  readonly says: string
  readonly flags: readonly Flag[]
  one(given: Given, io: Io): Promise<Exit>
}

const rows: readonly ChangeVerb[] = [
  {
    action: 'modify',
    says: 'add data to a task, or to many; one that waits for a callback goes on',
    flags: [data_flag, flag('sync', 'only if the task waits for a callback')],
    one: modifyTask,
  },
  {
    action: 'retry',
    says: 'run a failed task again, or many',
    flags: [flag('to NODE', 'from this node, instead of where it failed')],
    one: (given, io) => act(given, io, 'retry', 'runs again'),
  },
  {
    action: 'move',
    says: 'put a live task into another node, where it runs on, or many',
    flags: [flag('to NODE', 'the node to go to', { no_env: true })],
    one: (given, io) => act(given, io, 'move', 'moved'),
  },
  {
    action: 'cancel',
    says: 'end a live task and free its ref, or many',
    flags: [],
    one: (given, io) => act(given, io, 'cancel', 'canceled'),
  },
]

export const changeVerbs: readonly Verb[] = rows.map(({ action, says, flags, one }) => ({
  name: `task ${action}`,
  words: [conv_word, task_word],
  flags: [...flags, ...target_flags, ...filterFlags, ...bulkFlags, ...file_flags],
  says,
  notes: [...target_notes, ...bulk_notes, ...filter_notes],
  async run(given, io) {
    const [, task] = given.words
    const is_one = task !== undefined || ['ref', 'obj-id'].some((name) => text(given, name))
    if (action === 'move' && text(given, 'to') === undefined) throw usageError('--to is missing')
    const many = manyFlag(given, is_one && action === 'modify')
    if (is_one && many !== undefined) {
      throw usageError(`name one task, or say which by --${many}, not both`)
    }
    return is_one || many === undefined ? one(given, io) : changeMany(given, io, action)
  },
}))

/** A flag by which many tasks are meant. `--node` beside the name of one is a condition on it. */
function manyFlag(given: Given, is_node_condition: boolean): string | undefined {
  const names = [...filterFlags.map(({ name }) => name), 'all', 'dry-run', 'yes', 'id']
  return names.find((name) => {
    return given.flags[name] !== undefined && !(name === 'node' && is_node_condition)
  })
}

async function modifyTask(given: Given, io: Io): Promise<Exit> {
  const { conv_id, ref, obj_id } = targetOf(given)
  const node_id = text(given, 'node')
  const op = {
    type: 'modify',
    conv_id,
    data_text: dataOf(given),
    ...(ref === undefined ? {} : { ref_text: JSON.stringify(ref) }),
    ...defined({ obj_id }),
    ...(isOn(given, 'sync') ? { is_sync: true } : {}),
    ...defined({ node_id }),
  } as const
  return applyOp(given, io, op, () => 'modified')
}

async function act(
  given: Given,
  io: Io,
  action: 'retry' | 'move' | 'cancel',
  done: string,
): Promise<Exit> {
  const target = targetOf(given)
  const to = text(given, 'to')
  const args = to === undefined ? { target } : { target, node_id: to }
  const result = await withAdmin(given, io, async (admin) => {
    const done = await admin.call(`task.${action}`, args)
    if (done.proc !== 'not_found_task') return done
    // The protocol has one code for a task that has ended and for one that never existed.
    const found = await admin.call('task.show', target)
    const says = found === null ? '' : `: it has ended, ${found.status}`
    return { ...done, description: `${done.description}${says}` }
  })
  return printResult(given, io, result, `${done}${didText(result)}`)
}

/** Such as `: delayed in node wait, was failed in node pay`. */
function didText({ was, now }: ResultView): string {
  if (was === undefined || now === undefined) return ''
  const is = now.status === 'canceled' ? '' : `: ${now.status} in node ${now.node_id}`
  return `${is}, was ${was.status} in node ${was.node_id}`
}
