/**
 * What a task waits for, in few words, alike on the operator's page and in the command line. Times
 * and tasks stay what they are, so that each shows them in its own way. It needs no Node.
 */
import type { TaskWait } from '../engine/tasks/waits.ts'

/** A text, a time, or a task. */
export type WaitPart = string | { readonly at_ms: number } | { readonly obj_id: string }

/** Such as `callback` and `timer 5`, the thing that is waited for first. */
export function waitParts(wait: TaskWait): WaitPart[][] {
  const { due_ms, next_ms, attempt = 1 } = wait
  const what = whatOf(wait)
  return [
    ...(wait.is_paused === true ? [['its process is paused']] : []),
    ...(what.length === 0 ? [] : [what]),
    ...(attempt > 1 ? [[`attempt ${attempt}`]] : []),
    ...(next_ms === undefined ? [] : [['next try ', { at_ms: next_ms }]]),
    ...(due_ms === undefined ? [] : [['timer ', { at_ms: due_ms }]]),
  ]
}

const words: Readonly<
  Record<Exclude<TaskWait['for'], 'reply' | 'handler' | 'call' | 'slot' | 'timer'>, string>
> = {
  callback: 'callback',
  turn: 'its next turn',
  queue: 'a task that takes it from the queue',
  db: 'database',
  code: 'code',
  nothing: 'nothing: it stays here until it is moved',
}

/** `2`, or `10 per 60 s`. */
export function limitCount({ at_once, rate }: NonNullable<TaskWait['limit']>): string {
  return rate === undefined ? String(at_once ?? '') : `${rate.rate} per ${rate.per_s} s`
}

function limitText({ limit }: TaskWait): string {
  if (limit === undefined) return ''
  const { key, ahead_max } = limit
  const count = limitCount(limit)
  const at = count === '' ? '' : `: limit ${count} for ${key}`
  return `${at}, ${ahead_max === 0 ? 'it is the first' : `at most ${ahead_max} ahead of it`}`
}

function whatOf(wait: TaskWait): WaitPart[] {
  const { obj_id, handler = '', host, has_handler } = wait
  if (wait.for === 'reply') {
    return obj_id === undefined ? ['a reply'] : ['the reply of task ', { obj_id }]
  }
  if (wait.for === 'handler') {
    return [`handler ${handler}${has_handler === false ? ' (none is registered)' : ''}`]
  }
  if (wait.for === 'slot') return [`its turn${limitText(wait)}`]
  if (wait.for === 'call') return [host ? `call to ${host}` : 'call']
  return wait.for === 'timer' ? [] : [words[wait.for]]
}
