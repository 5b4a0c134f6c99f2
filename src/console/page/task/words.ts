/**
 * Why a task is where it is, in words. A sentence is a list of parts: texts, and times and tasks,
 * which the page shows as countdowns and links.
 */
import type { HistoryEntry, HistoryWhy, Status } from '../../../core/model.ts'
import type { TaskWait } from '../../../engine/tasks/waits.ts'
import { limitCount, type WaitPart, waitParts } from '../../../task-operations/wait-parts.ts'
import type { ShownTask } from '../../server/messages.ts'
import { durationText } from '../parts/texts.ts'

export type Sentence = readonly WaitPart[]

type Waiting = Pick<ShownTask, 'status' | 'status_details' | 'wait'>

/** In a table: what it waits for, or as what it has failed; nothing for one that has ended. */
export function inShort({ status, status_details, wait }: Waiting): Sentence {
  if (status === 'failed') return [status_details?.tag ?? 'failed']
  if (wait === undefined) return []
  return waitParts(wait).flatMap((part, at) => (at === 0 ? part : [', ', ...part]))
}

/** Why it is there, and what brings it on; the first sentence is the answer. */
export function whyOf({ status, status_details, wait }: Waiting): Sentence[] {
  if (status === 'failed') {
    const { tag = 'failed', description = '' } = status_details ?? {}
    return [[`It failed: ${tag}${description === '' ? '.' : ` – ${description}`}`], [helpOf(tag)]]
  }
  if (status === 'processed') return [['It is done: it has ended in this node.']]
  if (status === 'canceled') return [['It was canceled in this node.']]
  if (wait === undefined) return [['It runs just now.']]
  const { due_ms, next_ms, attempt = 1, last_error, has_handler } = wait
  const error =
    last_error && `The last attempt failed: ${last_error.tag} – ${last_error.description}`
  const tries: Sentence =
    attempt === 1
      ? []
      : [
          `Attempt ${attempt} `,
          ...(next_ms === undefined
            ? ['is next or under way.']
            : ['comes ', { at_ms: next_ms }, '.']),
        ]
  return [
    ...(wait.is_paused === true
      ? [['Its process is paused: nothing here goes on until that is resumed.']]
      : []),
    long_words[wait.for](wait),
    ...(tries.length === 0 ? [] : [tries]),
    ...(error === undefined ? [] : [[error]]),
    ...(has_handler === false
      ? [['Start a program with this handler: it takes the tasks that wait already, too.']]
      : []),
    ...(due_ms === undefined || wait.for === 'timer'
      ? []
      : [['If nothing comes, its timer fires ', { at_ms: due_ms }, '.']]),
  ]
}

const long_words: Readonly<Record<TaskWait['for'], (wait: TaskWait) => Sentence>> = {
  callback: () => ['It waits for a callback.'],
  turn: () => ['It goes on with the next turn of the engine.'],
  reply: ({ obj_id }) =>
    obj_id === undefined
      ? ['It waits for the reply of a task that it has called.']
      : ['It waits for the reply of the task ', { obj_id }, ', which it has called.'],
  queue: () => ['It waits in a queue until another task takes it.'],
  slot: ({ limit }) => {
    const { key = '', ahead_max = 0 } = limit ?? {}
    const count = limit === undefined ? '' : limitCount(limit)
    const ahead = ahead_max === 0 ? 'it is the first in line' : `at most ${ahead_max} are ahead`
    const how = count === '' ? '' : ` (${count} for ${key})`
    return [`It waits for its turn at a limit of this node${how}: ${ahead}.`]
  },
  timer: ({ due_ms }) =>
    due_ms === undefined
      ? ['It waits for its timer.']
      : ['It waits for its timer, which fires ', { at_ms: due_ms }, '.'],
  handler: ({ handler = '-', has_handler }) => [
    has_handler === false
      ? `It waits for the handler “${handler}”, which this server does not have.`
      : `It waits for the handler “${handler}”.`,
  ],
  call: ({ host }) => [`It waits for the answer of ${host ?? 'an HTTP call'}.`],
  db: () => ['It waits for the answer of a database.'],
  code: () => ['It waits until its code has run.'],
  nothing: () => ['It waits for nothing: it stays in this node until it is moved or canceled.'],
}

/** By the beginning of a tag, the longest first. */
const helps: readonly (readonly [string, string])[] = [
  ['limit_wrong_key', 'Fix the data that the key of the limit is made of, then retry it.'],
  ['handler_timeout', 'See why the handler takes so long, then retry it.'],
  ['handler_task_size', 'The handler returned more data than a task may hold: let it return less.'],
  ['handler', 'See the log for the line of the error, fix the handler, then retry it.'],
  ['db_call_connection', 'See whether the database is up and takes its user, then retry it.'],
  ['db_call_timeout', 'See why the database takes so long for this query, then retry it.'],
  ['db_call_expire', 'Raise how many connections the database may have, then retry it.'],
  ['db_call_instance', 'Give the server the database that the node names, then retry it.'],
  ['db_call_size', 'The query gives more than a task may hold: let it return less.'],
  ['db_call', 'Fix the query or the data that it is made of, then retry it.'],
  ['code', 'Fix the code of the node or the data that it reads, then retry it.'],
  ['api_bad_answer', 'See whether the other side answers again, then retry it.'],
  [
    'api_expire_query',
    'The answer did not come in time: see whether the other side is up, then retry it.',
  ],
  ['api_no_valid_json', 'The other side did not answer with JSON: see what its address answers.'],
  ['api_task_size', 'The answer is more than a task may hold: ask for less, or keep less of it.'],
  ['api_bind_error', 'Fix the data or the parameters that the call is made of, then retry it.'],
  ['api', 'See what the other side answers to this call, fix it or the data, then retry it.'],
  ['rpc_task_size', 'The reply is more than a task may hold: let the called process reply less.'],
  ['rpc', 'See the task that it has called, fix that or the data, then retry it.'],
  [
    'access_denied',
    'Give the owner of the process the right to the process it uses, then retry it.',
  ],
  ['conveyor_is_not_active', 'Resume the process that it uses, then retry it.'],
  ['not_found_task', 'The task that it looks for is not there: fix the ref or make that task.'],
  ['not_unical_ref', 'A live task holds the ref already: end that task or fix the ref.'],
  [
    'loop',
    'It went round too often without a wait: fix what sends it round, then move or retry it.',
  ],
  ['bad_definition', 'Its node has a mistake: import a version without it, then retry it.'],
  ['go_if_const', 'The condition could not be worked out: fix it or the data, then retry it.'],
  ['semaphor', 'The node’s timer has no valid time: fix the data that it reads, then retry it.'],
]

export function helpOf(tag: string): string {
  const [, help] = helps.find(([start]) => tag.startsWith(start)) ?? []
  return help ?? 'Fix what the sentence names: the data below or the process; then retry it.'
}

const why_words: Readonly<Record<HistoryWhy, string>> = {
  create: 'created',
  callback: 'callback came',
  modify: 'data added',
  retry: 'retried',
  move: 'moved',
  cancel: 'canceled',
  schedule: 'created by a schedule',
  go: 'reached',
  timer: 'timer fired',
  fail: 'failed',
  migrate: 'moved, its node was dropped',
  count: 'created by a count',
  handler: 'handler answered',
  call: 'call answered',
  db: 'database answered',
  code: 'code has run',
  queue: 'taken from the queue',
  reply: 'reply came',
  copy: 'copied by a task',
  rpc: 'called by a task',
}

export interface Happening extends HistoryEntry {
  readonly says: string
  readonly node_title?: string
  /** It came into its node with this; else it was there already. */
  readonly has_moved: boolean
  readonly is_end: boolean
  /** Of one that came into its node: how long it stayed; absent where it is there still. */
  readonly stayed_ms?: number
  /** It goes on since this: its present node, or the last that happened there. */
  readonly is_present: boolean
}

export function happenings(
  entries: readonly (HistoryEntry & { readonly node_title?: string })[],
  status: Status,
): Happening[] {
  const is_over = status === 'processed' || status === 'canceled'
  const made: Happening[] = []
  // From the last on, as how long one stays is known by what comes after it.
  let left_ms = is_over ? entries.at(-1)?.at_ms : undefined
  for (const [at, entry] of [...entries.entries()].reverse()) {
    const is_last = at === entries.length - 1
    const has_moved = entry.node_id !== entries[at - 1]?.node_id
    const is_end = is_last && is_over
    const stayed = has_moved && left_ms !== undefined && !is_end
    made.unshift({
      ...{ ...entry, says: why_words[entry.why] ?? entry.why, has_moved, is_end },
      ...(stayed ? { stayed_ms: Number(left_ms) - entry.at_ms } : {}),
      is_present: !is_over && (is_last || (has_moved && left_ms === undefined)),
    })
    if (has_moved) left_ms = entry.at_ms
  }
  return made
}

/** How long it was somewhere, also where that is no second. */
export function stayText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : durationText(ms)
}
