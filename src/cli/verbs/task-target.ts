/**
 * What the verbs on tasks share: how a task is named, and the data of an op. A word that names a
 * task is an obj_id if it is 24 lowercase hex digits, else a ref; `--ref` and `--obj-id` are
 * explicit.
 */
import { parseJson } from '../../codec/json.ts'
import { isFault } from '../../core/faults.ts'
import type { JsonValue } from '../../core/model.ts'
import type { TargetInput } from '../../engine/api/task-api.ts'
import type { RawOp, ResultView } from '../../task-operations/task-actions.ts'
import { type Exit, usageError } from '../exit-codes.ts'
import { ask } from '../file-verb.ts'
import type { Io } from '../io.ts'
import { printResult } from '../output.ts'
import { type Flag, flag, type Given, text } from '../verb.ts'
import { dataText } from './task-import.ts'

export const conv_word = { name: 'CONV' }
export const task_word = { name: 'TASK', optional: true } as const

export const target_flags: readonly Flag[] = [
  flag('ref R', 'the task with this ref'),
  flag('obj-id ID', 'the task with this obj_id'),
]

export const target_notes = [
  'TASK: 24 lowercase hex digits are an obj_id, anything else is a ref; --ref and --obj-id name',
  'one or the other explicitly.',
]

export const data_flag: Flag = flag('data JSON', 'a JSON object (default {})')

/** The named task. Throws a usage fault unless it is named exactly once. */
export function targetOf(
  given: Given,
): TargetInput & { readonly conv_id: string; readonly ref?: string } {
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

export async function applyOp(
  given: Given,
  io: Io,
  op: RawOp,
  textOf: (result: ResultView) => string,
): Promise<Exit> {
  const [result] = await ask(given, io, 'task.apply', { ops: [op] })
  if (result === undefined) throw new Error('an op came back without a result')
  return printResult(given, io, result, textOf(result))
}
