/**
 * What a task waits for, in a line for people: in a list in short, on its own page in full.
 */

import type { TaskWait } from '../engine/tasks/waits.ts'
import type { TaskView } from '../task-operations/task-view.ts'
import { type WaitPart, waitParts } from '../task-operations/wait-parts.ts'
import { timeText } from './text.ts'

/** Why the task is where it is; empty for one that has ended. */
export function whyText({ status, status_details, wait }: TaskView): string {
  if (status === 'failed') return `failed: ${status_details?.tag ?? '-'}`
  return wait === undefined ? '' : [...waitTexts(wait), ...lastError(wait, 'short')].join(', ')
}

/** The rows of its page. */
export function waitRows({ wait }: TaskView): [label: string, value: string | undefined][] {
  return [
    ['waits for', wait && waitTexts(wait).join(', ')],
    ['last error', wait && lastError(wait, 'full')[0]],
  ]
}

function waitTexts(wait: TaskWait): string[] {
  return waitParts(wait).map((parts) => parts.map(textOf).join(''))
}

function textOf(part: WaitPart): string {
  if (typeof part === 'string') return part
  return 'at_ms' in part ? timeText(part.at_ms) : part.obj_id
}

function lastError({ last_error }: TaskWait, form: 'short' | 'full'): string[] {
  if (last_error === undefined) return []
  const { tag, description } = last_error
  return [form === 'short' || description === '' ? tag : `${tag}: ${description}`]
}
