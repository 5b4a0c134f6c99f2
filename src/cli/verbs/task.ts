/**
 * `task …`: creates, changes and lists tasks without signing; whoever may open the file may do so.
 * A word that names a task is an obj_id if it is 24 lowercase hex digits, else a ref; `--ref` and
 * `--obj-id` are explicit.
 */
import { parseJson } from '../../codec/json.ts'
import { fault, isFault } from '../../core/faults.ts'
import type { JsonValue } from '../../core/model.ts'
import type { TargetInput } from '../../engine/op-api.ts'
import type { RawOp, ResultView, TaskView } from '../../server/admin/task-verbs.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { type Io, print } from '../io.ts'
import { columns, printJson, printResult, table, taskJson, timeText } from '../output.ts'
import { db_flag, type Flag, type Given, isOn, json_flag, text, type Verb, word } from '../verb.ts'
import { createFromFile, dataText } from './task-import.ts'
import { listVerb } from './task-list.ts'

const flags = [db_flag, json_flag]
const conv_word = { name: 'CONV' }
const task_word = { name: 'TASK', optional: true } as const

const target_flags: readonly Flag[] = [
  { name: 'ref', value: 'R', says: 'the task with this ref' },
  { name: 'obj-id', value: 'ID', says: 'the task with this obj_id' },
]

const target_notes = [
  'TASK: 24 lowercase hex digits are an obj_id, anything else is a ref. --ref and --obj-id',
  'stand in for it where that is not meant.',
]

export const data_flag: Flag = { name: 'data', value: 'JSON', says: 'a JSON object (default {})' }

export const taskVerbs: readonly Verb[] = [
  {
    name: 'task create',
    words: [conv_word],
    flags: [
      { name: 'ref', value: 'R', says: 'its ref, unique among the live tasks of the process' },
      data_flag,
      { name: 'file', value: 'F.ndjson', says: 'one task a line, instead of --ref and --data' },
      ...flags,
    ],
    says: 'create a task, or one for each line of a file',
    notes: [
      'A line of the file with a member "data" is a task, {"ref":"…","data":{…}}, and may hold',
      'nothing else; a line without one is the data itself. - is standard input. Bad lines are',
      'named and passed over; with --json each line is answered by one.',
    ],
    run: createTask,
  },
  {
    name: 'task modify',
    words: [conv_word, task_word],
    flags: [
      ...target_flags,
      data_flag,
      { name: 'sync', says: 'only if the task waits for a callback' },
      { name: 'node', value: 'N', says: 'only if it waits in this node' },
      ...flags,
    ],
    says: 'add data to a task; one that waits for a callback goes on',
    notes: target_notes,
    run: modifyTask,
  },
  {
    name: 'task show',
    words: [conv_word, task_word],
    flags: [
      ...target_flags,
      { name: 'history', says: 'also what has happened to it: when, in which node, why, by whom' },
      ...flags,
    ],
    says: 'show a task and its data',
    notes: [...target_notes, 'Parameters that the process marks as auto-clear are shown as ***.'],
    async run(given, io) {
      const args = { ...targetOf(given), with_history: isOn(given, 'history') }
      const task = await withAdmin(given, io, (admin) => admin.call('task.show', args))
      if (task === null) throw fault('not_found_task', 'there is no such task in this process')
      if (isOn(given, 'json')) await printJson(io, taskJson(task))
      else await print(io.stdout, pageOf(task) + historyOf(task))
      return exits.done
    },
  },
  listVerb,
  {
    name: 'task retry',
    words: [conv_word, task_word],
    flags: [
      { name: 'to', value: 'NODE', says: 'from this node, instead of the one it failed in' },
      ...target_flags,
      ...flags,
    ],
    says: 'run a failed task again',
    notes: target_notes,
    async run(given, io) {
      const target = targetOf(given)
      const to = text(given, 'to')
      const args = to === undefined ? { target } : { target, node_id: to }
      const result = await withAdmin(given, io, (admin) => admin.call('task.retry', args))
      return printResult(io, isOn(given, 'json'), result, 'runs again')
    },
  },
  {
    name: 'task cancel',
    words: [conv_word, task_word],
    flags: [...target_flags, ...flags],
    says: 'end a live task and free its ref',
    notes: target_notes,
    async run(given, io) {
      const target = targetOf(given)
      const result = await withAdmin(given, io, (admin) => admin.call('task.cancel', { target }))
      return printResult(io, isOn(given, 'json'), result, 'canceled')
    },
  },
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

async function modifyTask(given: Given, io: Io): Promise<Exit> {
  const { conv_id, ref, obj_id } = targetOf(given)
  const node_id = text(given, 'node')
  const op = {
    type: 'modify',
    conv_id,
    data_text: dataOf(given),
    ...(ref === undefined ? {} : { ref_text: JSON.stringify(ref) }),
    ...(obj_id === undefined ? {} : { obj_id }),
    ...(isOn(given, 'sync') ? { is_sync: true } : {}),
    ...(node_id === undefined ? {} : { node_id }),
  } as const
  return applyOp(given, io, op, () => 'modified')
}

async function applyOp(
  given: Given,
  io: Io,
  op: RawOp,
  textOf: (result: ResultView) => string,
): Promise<Exit> {
  const [result] = await withAdmin(given, io, (admin) => admin.call('task.apply', { ops: [op] }))
  if (result === undefined) throw new Error('an op came back without a result')
  return printResult(io, isOn(given, 'json'), result, textOf(result))
}

/** The named task. Throws a usage fault unless it is named exactly once. */
function targetOf(given: Given): TargetInput & { readonly conv_id: string; readonly ref?: string } {
  const [conv_id = '', task] = given.words
  const ref = text(given, 'ref')
  const obj_id = text(given, 'obj-id')
  const named = [task, ref, obj_id].filter((name) => name !== undefined)
  if (named.length !== 1) {
    throw usageError(
      named.length === 0
        ? 'name the task: its obj_id or ref as a word, or --ref or --obj-id'
        : 'name the task once: as a word, by --ref or by --obj-id',
    )
  }
  if (obj_id !== undefined) {
    if (!/^[0-9a-fA-F]{24}$/.test(obj_id)) throw usageError('--obj-id takes 24 hex digits')
    return { conv_id, obj_id: obj_id.toLowerCase() }
  }
  if (task !== undefined && /^[0-9a-f]{24}$/.test(task)) return { conv_id, obj_id: task }
  return { conv_id, ref: ref ?? (task as string) }
}

export function dataOf(given: Given): string {
  const wrong = 'quote a JSON object, such as --data \'{"amount":120}\''
  try {
    const data = dataText(parseJson(text(given, 'data') ?? '{}') as JsonValue)
    if (data !== undefined) return data
  } catch (error) {
    if (isFault(error)) throw usageError(`--data is ${error.message}; ${wrong}`)
    throw error
  }
  throw usageError(`--data is not a JSON object; ${wrong}`)
}

function pageOf(task: TaskView): string {
  const { status_details } = task
  return columns([
    ['task', task.obj_id],
    ['process', task.conv_id],
    ['ref', task.ref ?? '-'],
    ['status', task.status],
    ...(status_details === undefined
      ? []
      : [['why', `${status_details.tag}: ${status_details.description}`]]),
    ['node', task.node_id],
    ['came from', task.node_prev_id === '' ? '-' : task.node_prev_id],
    ['user', task.user_id ?? '-'],
    ['created', timeText(task.create_time_ms)],
    ['changed', timeText(task.change_time_ms)],
    ['data', task.dataText],
  ])
}

function historyOf({ history }: TaskView): string {
  if (history === undefined) return ''
  const rows = history.map(({ at_ms, node_id, node_title = '-', why, by = '-', tag = '-' }) => [
    ...[timeText(at_ms), why, node_id, node_title, by, tag],
  ])
  return `\n${table(['TIME', 'WHY', 'NODE', 'TITLE', 'USER', 'TAG'], rows)}`
}
