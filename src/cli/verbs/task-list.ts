/**
 * `task list`: finds tasks page by page. A filter that rarely matches says on stderr how far the
 * search has come, and where it ends before all is found, the cursor to go on with.
 */
import type { SortedBy } from '../../engine/search-api.ts'
import type { SentPage, SentQuery } from '../../server/admin/search-verbs.ts'
import type { TaskView } from '../../server/admin/task-verbs.ts'
import type { Admin } from '../../server/admin/verbs.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { type Io, print } from '../io.ts'
import { columns, printLines, table, taskJson, timeText } from '../output.ts'
import { db_flag, type Given, isOn, json_flag, text, type Verb } from '../verb.ts'
import { filter_notes, filterFlags, filterOf } from './task-filter.ts'

export const listVerb: Verb = {
  name: 'task list',
  words: [{ name: 'CONV', optional: true }],
  flags: [
    ...filterFlags,
    { name: 'newest', says: 'the newest first, instead of the oldest' },
    { name: 'limit', value: 'N', says: 'at most so many (default 100; 0 lists all)' },
    { name: 'all', says: 'all of them, as --limit 0' },
    { name: 'cursor', value: 'C', says: 'go on where a list with the same flags ended' },
    db_flag,
    json_flag,
  ],
  says: 'list the tasks of a process, or of all',
  notes: [
    'Without --status live tasks. Sorted by when they were created; by ref with --ref-prefix, by',
    'due time with --due-before, by when they ended with the status of ended tasks only.',
    ...filter_notes,
  ],
  run: listTasks,
}

const page_tasks = 500

async function listTasks(given: Given, io: Io): Promise<Exit> {
  const [conv_id] = given.words
  const limit = isOn(given, 'all') ? Infinity : limitOf(text(given, 'limit') ?? '100')
  const first_cursor = text(given, 'cursor')
  const query: SentQuery = {
    ...filterOf(given, io),
    ...(conv_id === undefined ? {} : { conv_id }),
    ...(isOn(given, 'newest') ? { newest_first: true } : {}),
    ...(first_cursor === undefined ? {} : { cursor: first_cursor }),
  }
  await withAdmin(given, io, async (admin) => {
    let shown = 0
    let cursor: string | undefined
    const report = newReport(io)
    for await (const page of pagesOf(admin, query, limit)) {
      const { tasks } = page
      if (isOn(given, 'json')) await printLines(io, tasks.map(taskJson))
      else await print(io.stdout, rowsOf(tasks, shown === 0, conv_id === undefined))
      shown += tasks.length
      cursor = page.cursor
      await report(page)
    }
    if (cursor !== undefined) await print(io.stderr, `there may be more: --cursor ${cursor}\n`)
  })
  return exits.done
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

/** Says how far a long search has come, and names damaged records. */
function newReport(io: Io): (page: SentPage) => Promise<void> {
  let scanned = 0
  let told_ms = io.clock.now_ms()
  return async (page) => {
    scanned += page.scanned
    for (const obj_id of page.damaged) {
      await print(io.stderr, `task ${obj_id} is damaged, see \`conveyor check\`\n`)
    }
    const now_ms = io.clock.now_ms()
    if (page.cursor === undefined || now_ms - told_ms < report_every_ms) return
    told_ms = now_ms
    await print(io.stderr, `${scanned} tasks read${reachedText(page)}\n`)
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

function rowsOf(tasks: readonly TaskView[], with_heads: boolean, with_process: boolean): string {
  const rows = tasks.map(({ conv_id, obj_id, status, change_time_ms, node_id, ref }) => [
    ...(with_process ? [conv_id] : []),
    obj_id,
    status.padEnd('processing'.length),
    timeText(change_time_ms),
    node_id,
    ref ?? '-',
  ])
  const heads = ['TASK', 'STATUS', 'CHANGED', 'NODE', 'REF']
  return with_heads ? table(with_process ? ['PROCESS', ...heads] : heads, rows) : columns(rows)
}
