/** `task …`: creates, shows, changes and lists tasks without a signature. */
import { fault } from '../../core/faults.ts'
import type { TaskView } from '../../task-operations/task-view.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, usageError } from '../exit-codes.ts'
import { ask, fileVerb } from '../file-verb.ts'
import type { Io } from '../io.ts'
import { printDone, taskJson } from '../output.ts'
import { fields, table, timeText } from '../text.ts'
import { flag, type Given, isOn, text, type Verb, word } from '../verb.ts'
import { jobsVerb } from './task-bulk.ts'
import { changeVerbs } from './task-change.ts'
import { csvVerbs } from './task-csv.ts'
import { createFromFile } from './task-import.ts'
import { countVerb, listVerb, waitRows } from './task-list.ts'
import { applyOp, data_flag, dataOf, target_flags, target_notes, targetOf } from './task-target.ts'

export const taskVerbs: readonly Verb[] = [
  fileVerb('task create CONV', {
    flags: [
      flag('ref R', 'its ref, unique among the live tasks of the process'),
      data_flag,
      flag('file F.ndjson', 'one task a line, instead of --ref and --data'),
    ],
    says: 'create a task, or one for each line of a file',
    notes: [
      'A line of the file with a member "data" is a task, {"ref":"…","data":{…}}, and may hold',
      'nothing else; a line without one is the data itself. - is standard input. Bad lines are',
      'named and passed over; with --json each line is answered by one.',
    ],
    run: createTask,
  }),
  ...csvVerbs,
  ...changeVerbs,
  fileVerb('task show CONV [TASK]', {
    flags: [
      ...target_flags,
      flag('history', 'also what has happened to it: when, in which node, why, by whom'),
    ],
    says: 'show a task and its data',
    notes: [...target_notes, 'Parameters that the process marks as auto-clear are shown as ***.'],
    async run(given, io) {
      const args = { ...targetOf(given), with_history: isOn(given, 'history') }
      const task = await ask(given, io, 'task.show', args)
      if (task === null) throw fault('not_found_task', 'there is no such task in this process')
      return printDone(given, io, taskJson(task), pageOf(task) + historyOf(task))
    },
  }),
  listVerb,
  countVerb,
  jobsVerb,
]

async function createTask(given: Given, io: Io): Promise<Exit> {
  const conv_id = word(given, 0)
  const file = text(given, 'file')
  const ref = text(given, 'ref')
  const json = isOn(given, 'json')
  if (file !== undefined) {
    if (ref !== undefined || text(given, 'data') !== undefined) {
      throw usageError('--file brings refs and data: leave out --ref and --data')
    }
    return withAdmin(given, io, (admin) => createFromFile(admin, io, { conv_id, file, json }))
  }
  const op = {
    type: 'create',
    conv_id,
    data_text: dataOf(given),
    ...(ref === undefined ? {} : { ref_text: JSON.stringify(ref) }),
  } as const
  return applyOp(given, io, op, ({ obj_id = '' }) => obj_id)
}

function pageOf(task: TaskView): string {
  const { status_details } = task
  return fields([
    ['task', task.obj_id],
    ['process', task.conv_id],
    ['ref', task.ref ?? '-'],
    ['status', task.status],
    ['why', status_details && `${status_details.tag}: ${status_details.description}`],
    ['node', nodeText(task)],
    ...waitRows(task),
    ['came from', task.node_prev_id === '' ? '-' : task.node_prev_id],
    ['user', task.user_id ?? '-'],
    ['created', timeText(task.create_time_ms)],
    ['changed', timeText(task.change_time_ms)],
    ['trace', task.trace_id],
    ['data', task.data_text],
  ])
}

/** The node by its title and its id, which commands take. */
function nodeText({ node_id, node_title = node_id }: TaskView): string {
  return node_title === node_id ? node_id : `${node_title} (${node_id})`
}

function historyOf({ history }: TaskView): string {
  if (history === undefined) return ''
  const rows = history.map(({ at_ms, node_id, node_title = '-', why, by = '-', tag = '-' }) => [
    ...[timeText(at_ms), why, node_title, by, tag, node_id],
  ])
  return `\n${table(['TIME', 'WHY', 'NODE', 'USER', 'TAG', 'ID'], rows)}`
}
