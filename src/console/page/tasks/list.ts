/**
 * The tasks that a search finds, page after page. A page may bring no task and still go on, where
 * little matches: then the search goes on by itself, shows its progress, and can be
 * stopped. The page shows a bounded number of tasks at once and then begins a new part.
 */
import { type Signal, signal } from '@preact/signals'
import type { SortedBy } from '../../../engine/api/search-api.ts'
import type { SentFilter } from '../../../task-operations/searches.ts'
import type { CallName, ConsoleCalls, TaskRow } from '../../server/messages.ts'
import { filterOf, isObjId, type Search, type SearchMistake } from './search.ts'

/** As session.ts has it. */
export type Call = <Name extends CallName>(
  name: Name,
  input: ConsoleCalls[Name]['in'],
) => Promise<ConsoleCalls[Name]['out']>

const page_tasks = 50
export const part_tasks = 1_000

export interface Progress {
  /** Rows that stood in parts before this one. */
  readonly before: number
  /** Tasks looked at. */
  readonly scanned: number
  readonly reached_ms?: number
  readonly sorted_by?: SortedBy
  /** It has more to find. */
  readonly goes_on: boolean
  readonly is_running: boolean
  /** By the reader, or by a refusal: it goes on when he says so. */
  readonly is_stopped: boolean
}

/** What the reader has chosen of it: tasks by their ids, or all that the filter finds. */
export type Chosen = 'all' | ReadonlySet<string>

export interface TaskList {
  readonly rows: Signal<readonly TaskRow[]>
  readonly progress: Signal<Progress>
  readonly mistakes: Signal<readonly SearchMistake[]>
  readonly fault: Signal<unknown>
  /** Of what is shown; absent where a task was found by its id, and where it cannot be meant. */
  readonly filter: Signal<SentFilter | undefined>
  begin(search: Search): Promise<void>
  /** At least one row more, unless it ends, is stopped or refused. */
  more(): Promise<void>
  /** Another part, in place of this one. */
  nextPart(): Promise<void>
  stop(): void
}

const at_first: Progress = {
  ...{ before: 0, scanned: 0 },
  ...{ goes_on: false, is_running: false, is_stopped: false },
}

export function newTaskList(call: Call): TaskList {
  const rows = signal<readonly TaskRow[]>([])
  const progress = signal<Progress>(at_first)
  const mistakes = signal<readonly SearchMistake[]>([])
  const fault = signal<unknown>(undefined)
  const filter = signal<SentFilter | undefined>(undefined)
  let newest_first = true
  let cursor: string | undefined
  /** Another one with each search and each stop: what an older one brings is left out. */
  let run = 0

  async function begin(search: Search): Promise<void> {
    const meant = filterOf(search)
    mistakes.value = meant.mistakes
    if (meant.filter === undefined) return
    run++
    fault.value = undefined
    cursor = undefined
    newest_first = search.newest_first
    const by_id = isObjId(search.name)
    filter.value = by_id ? undefined : meant.filter
    progress.value = { ...at_first, is_running: true }
    if (by_id) return take(run, findById(search))
    await fetchPages(run, true)
  }

  async function findById({ name, conv_id }: Search): Promise<void> {
    const found = await call('find', { text: name, ...(conv_id === '' ? {} : { conv_id }) })
    rows.value = found.rows
    progress.value = { ...at_first, scanned: found.rows.length }
  }

  async function fetchPages(own: number, is_new: boolean): Promise<void> {
    progress.value = { ...progress.value, is_running: true, is_stopped: false }
    let kept = is_new ? [] : rows.value
    const wanted = kept.length + 1
    await take(
      own,
      (async () => {
        do {
          const from = cursor === undefined ? {} : { cursor }
          const limit = Math.min(page_tasks, part_tasks - kept.length)
          const page = await call('tasks', { ...filter.value, newest_first, limit, ...from })
          if (own !== run) return
          cursor = page.cursor
          kept = [...kept, ...page.rows]
          rows.value = kept
          const { reached_ms, sorted_by } = page
          progress.value = {
            ...{ before: progress.value.before, sorted_by, is_running: true, is_stopped: false },
            scanned: progress.value.scanned + page.scanned,
            goes_on: cursor !== undefined,
            ...(reached_ms === undefined ? {} : { reached_ms }),
          }
        } while (cursor !== undefined && kept.length < wanted)
      })(),
    )
  }

  async function take(own: number, work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      if (own === run) fault.value = error
    }
    if (own !== run) return
    const is_stopped = fault.value !== undefined
    progress.value = { ...progress.value, is_running: false, is_stopped }
  }

  return {
    ...{ rows, progress, mistakes, fault, filter, begin },
    async more() {
      if (progress.value.is_running) return
      fault.value = undefined
      await fetchPages(run, false)
    },
    async nextPart() {
      const { before } = progress.value
      progress.value = { ...progress.value, before: before + rows.value.length }
      await fetchPages(run, true)
    },
    stop() {
      run++
      progress.value = { ...progress.value, is_running: false, is_stopped: true }
    },
  }
}
