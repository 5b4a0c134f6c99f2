/**
 * What a task waits for, in a line for people: in a list in short, on its own page in full.
 */
import type { TaskWait } from '../engine/task-wait.ts'
import type { TaskView } from '../server/admin/task-verbs.ts'
import { timeText } from './output.ts'

/** Why the task is where it is; empty for one that has ended. */
export function whyText({ status, status_details, wait }: TaskView): string {
  if (status === 'failed') return `failed: ${status_details?.tag ?? '-'}`
  return wait === undefined ? '' : [...waitParts(wait), ...lastError(wait, 'short')].join(', ')
}

/** The rows of its page. */
export function waitRows({ wait }: TaskView): [string, string][] {
  if (wait === undefined) return []
  const [error] = lastError(wait, 'full')
  return [
    ['waits for', waitParts(wait).join(', ')],
    ...(error === undefined ? [] : ([['last error', error]] as [string, string][])),
  ]
}

const words: Readonly<Record<TaskWait['for'], string>> = {
  callback: 'callback',
  turn: 'its next turn',
  reply: 'the reply of task',
  queue: 'a task that takes it from the queue',
  timer: '',
  handler: 'handler',
  call: 'call',
  code: 'code',
  nothing: 'nothing: it stays here until it is moved',
}

function waitParts(wait: TaskWait): string[] {
  const { due_ms, obj_id = '', handler = '', host, has_handler, attempt = 1, next_ms } = wait
  const names = { reply: ` ${obj_id}`, handler: ` ${handler}`, call: host ? ` to ${host}` : '' }
  const name = wait.for in names ? names[wait.for as keyof typeof names] : ''
  const what = `${words[wait.for]}${name}`
  const none = has_handler === false ? ' (none is registered)' : ''
  return [
    ...(wait.is_paused === true ? ['its process is paused'] : []),
    ...(what === '' ? [] : [`${what}${none}`]),
    ...(attempt > 1 ? [`attempt ${attempt}`] : []),
    ...(next_ms === undefined ? [] : [`next try ${timeText(next_ms)}`]),
    ...(due_ms === undefined ? [] : [`timer ${timeText(due_ms)}`]),
  ]
}

function lastError({ last_error }: TaskWait, form: 'short' | 'full'): string[] {
  if (last_error === undefined) return []
  const { tag, description } = last_error
  return [form === 'short' || description === '' ? tag : `${tag}: ${description}`]
}
