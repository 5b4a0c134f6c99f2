/**
 * `task list` and `task count`. A list is read page by page; a long search prints its progress on
 * stderr, and, if it ends before everything is found, the cursor to continue with.
 */
import { defined } from '../../core/defined.ts'
import type { SortedBy, TaskCounts } from '../../engine/api/search-api.ts'
import type { TaskWait } from '../../engine/tasks/waits.ts'
import type { Admin } from '../../server/admin/verbs.ts'
import type { SentPage, SentQuery } from '../../task-operations/searches.ts'
import type { TaskView } from '../../task-operations/task-view.ts'
import { type WaitPart, waitParts } from '../../task-operations/wait-parts.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { ask, fileVerb } from '../file-verb.ts'
import { type Io, print } from '../io.ts'
import { newProgress, printDone, printLines, taskJson } from '../output.ts'
import { columns, table, timeText } from '../text.ts'
import { flag, type Given, isOn, text } from '../verb.ts'
import { filter_notes, filterFlags, filterOf } from './task-filter.ts'

export const listVerb = fileVerb('task list [CONV]', {
  flags: [
    ...filterFlags,
    flag('newest', 'the newest first, instead of the oldest'),
    flag('limit N', 'at most so many (default 100; 0 lists all)'),
    flag('all', 'all of them, as --limit 0'),
    flag('cursor C', 'go on where a list with the same flags ended'),
  ],
  says: 'list the tasks of a process, or of all',
  notes: [
    'Without --status live tasks. Sorted by when they were created; by ref with --ref-prefix, by',
    'due time with --due-before, by their last change with --status failed or one of ended tasks.',
    ...filter_notes,
  ],
  run: listTasks,
})

export const countVerb = fileVerb('task count [CONV]', {
  flags: filterFlags.filter(({ name }) => ['node', 'status'].includes(name)),
  says: 'count the tasks by process, or those of a process by node, and by status',
  async run(given, io) {
    const [conv_id] = given.words
    const filter = { ...filterOf(given, io), ...defined({ conv_id }) }
    const counts = await ask(given, io, 'task.count', filter)
    return printDone(given, io, counts, countsText(counts))
  },
})

function countsText({ rows, by_status, total }: TaskCounts): string {
  const statuses = Object.keys(by_status) as (keyof typeof by_status)[]
  const has_nodes = rows.some(({ node_id }) => node_id !== undefined)
  const cellsOf = (counts: Pick<TaskCounts, 'total' | 'by_status'>): string[] => {
    return [counts.total, ...statuses.map((one) => counts.by_status[one] ?? 0)].map(String)
  }
  const lines = rows.map(({ conv_id, node_id = '', title, ...counts }) => [
    ...[conv_id, ...(has_nodes ? [node_id] : []), title, ...cellsOf(counts)],
  ])
  const heads = ['PROCESS', ...(has_nodes ? ['NODE'] : []), 'TITLE', 'TASKS']
  const sum = ['all', ...(has_nodes ? [''] : []), '', ...cellsOf({ total, by_status })]
  return columns([[...heads, ...statuses.map((one) => one.toUpperCase())], ...lines, sum])
}

const page_tasks = 500

async function listTasks(given: Given, io: Io): Promise<Exit> {
  const [conv_id] = given.words
  const limit = isOn(given, 'all') ? Infinity : limitOf(text(given, 'limit') ?? '100')
  let shown = 0
  await eachPage(given, io, limit, async ({ tasks, cursor }, { admin, query, is_last }) => {
    if (isOn(given, 'json')) await printLines(io, tasks.map(taskJson))
    else await print(io.stdout, rowsOf(tasks, shown === 0, conv_id === undefined))
    shown += tasks.length
    if (!is_last) return
    if (shown === 0 && !isOn(given, 'json')) await sayNone(admin, io, query)
    if (cursor !== undefined) await print(io.stderr, `there may be more: --cursor ${cursor}\n`)
  })
  return exits.done
}

interface PageOf {
  readonly admin: Admin
  readonly query: SentQuery
  readonly is_last: boolean
}

/** Calls `take` with each page of the tasks that the flags of a list select. */
export async function eachPage(
  given: Given,
  io: Io,
  limit: number,
  take: (page: SentPage, of: PageOf) => Promise<void>,
): Promise<void> {
  const [conv_id] = given.words
  const query: SentQuery = {
    ...filterOf(given, io),
    ...defined({ conv_id, cursor: text(given, 'cursor') }),
    ...(isOn(given, 'newest') ? { newest_first: true } : {}),
  }
  await withAdmin(given, io, async (admin) => {
    const report = newReport(io)
    let left = limit
    for await (const page of pagesOf(admin, query, limit)) {
      left -= page.tasks.length
      const is_last = page.cursor === undefined || left <= 0
      await report(page)
      await take(page, { admin, query, is_last })
    }
  })
}

/** Where there are no live tasks, says how many have ended and how to see them. */
async function sayNone(admin: Admin, io: Io, { conv_id, ...query }: SentQuery): Promise<void> {
  if (Object.keys(query).length > 0) return
  const { total } = await admin.call('task.count', conv_id === undefined ? {} : { conv_id })
  const verb = ['npx conveyor task list', ...(conv_id === undefined ? [] : [conv_id])].join(' ')
  const ended = total === 0 ? 'and none has ended' : `${total} ended: \`${verb} --status any\``
  await print(io.stderr, `no task is live, ${ended}\n`)
}

async function* pagesOf(admin: Admin, query: SentQuery, limit: number): AsyncGenerator<SentPage> {
  let left = limit
  let next: { readonly cursor?: string } = {}
  do {
    const page = await admin.call('task.list', {
      ...{ ...query, ...next, limit: Math.min(left, page_tasks) },
    })
    yield page
    left -= page.tasks.length
    if (page.cursor === undefined) return
    next = { cursor: page.cursor }
  } while (left > 0)
}

const report_every_ms = 2_000

/** Prints the progress of a long search, and names damaged records. */
function newReport(io: Io): (page: SentPage) => Promise<void> {
  const emit = newProgress(io, report_every_ms)
  let scanned = 0
  return async (page) => {
    scanned += page.scanned
    for (const obj_id of page.damaged) {
      await print(io.stderr, `task ${obj_id} is damaged, see \`npx conveyor check\`\n`)
    }
    if (page.cursor !== undefined) await emit(`${scanned} tasks read${reachedText(page)}`)
  }
}

const reached_words: Readonly<Record<SortedBy, string>> = {
  ...{ ref: '', due: 'due', ended: 'ended', failed: 'failed', created: 'created' },
}

function reachedText({ reached_ms, sorted_by }: SentPage): string {
  if (reached_ms === undefined) return ''
  return `, up to those ${reached_words[sorted_by]} ${timeText(reached_ms)}`
}

function limitOf(given: string): number {
  if (!/^[0-9]{1,15}$/.test(given)) throw usageError('--limit is a whole number')
  return Number(given) === 0 ? Infinity : Number(given)
}

export function rowsOf(
  tasks: readonly TaskView[],
  with_heads: boolean,
  with_process: boolean,
): string {
  const rows = tasks.map((task) => rowOf(task, with_process))
  const heads = ['TASK', 'STATUS', 'CHANGED', 'REF', 'NODE', 'WAITS FOR']
  return with_heads ? table(with_process ? ['PROCESS', ...heads] : heads, rows) : columns(rows)
}

function rowOf(task: TaskView, with_process: boolean): string[] {
  const { conv_id, obj_id, status, change_time_ms, node_id, node_title = node_id, ref } = task
  return [
    ...(with_process ? [conv_id] : []),
    obj_id,
    status.padEnd('processing'.length),
    timeText(change_time_ms),
    ref ?? '-',
    node_title,
    whyText(task),
  ]
}

/** Why the task is where it is; empty for one that has ended. */
function whyText({ status, status_details, wait }: TaskView): string {
  if (status === 'failed') return `failed: ${status_details?.tag ?? '-'}`
  return wait === undefined ? '' : [...waitTexts(wait), ...lastError(wait, 'short')].join(', ')
}

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
