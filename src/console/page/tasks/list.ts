/**
 * The tasks that a search finds, page after page. A page may be empty and still have a next one,
 * where little matches: the search then continues by itself, shows its progress, and can be
 * stopped. A bounded number of tasks is shown at once, then a new part begins.
 */
import { signal } from '@preact/signals'
import type { SortedBy } from '../../../engine/api/search-api.ts'
import type { SentFilter } from '../../../task-operations/searches.ts'
import type { CallName, ConsoleCalls, TaskRow } from '../../server/messages.ts'
import { filterOf, isObjId, type Search, type SearchMistake } from './search.ts'

export type Call = <Name extends CallName>(
  name: Name,
  input: ConsoleCalls[Name]['in'],
) => Promise<ConsoleCalls[Name]['out']>

const page_tasks = 50
export const part_tasks = 1_000

export interface Progress {
  /** Rows that stood in parts before this one. */
  readonly before: number
  readonly scanned: number
  readonly reached_ms?: number
  readonly sorted_by?: SortedBy
  readonly goes_on: boolean
  readonly is_running: boolean
  /** By the reader, or by a refusal: it goes on when he says so. */
  readonly is_stopped: boolean
}

/** What the reader has chosen of it: tasks by their ids, or all that the filter finds. */
export type Chosen = 'all' | ReadonlySet<string>

export type TaskList = ReturnType<typeof newTaskList>

const at_first: Progress = {
  ...{ before: 0, scanned: 0 },
  ...{ goes_on: false, is_running: false, is_stopped: false },
}

export function newTaskList(call: Call) {
  const rows = signal<readonly TaskRow[]>([])
  const progress = signal<Progress>(at_first)
  const mistakes = signal<readonly SearchMistake[]>([])
  const fault = signal<unknown>(undefined)
  /** Of what is shown; absent where a task was found by its id, and where it cannot be meant. */
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
    // Rows of another filter could be chosen by mistake.
    rows.value = []
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
    /** At least one row more, unless it ends, is stopped or refused. */
    async more(): Promise<void> {
      if (progress.value.is_running) return
      fault.value = undefined
      await fetchPages(run, false)
    },
    /** Another part, in place of this one. */
    async nextPart(): Promise<void> {
      const { before } = progress.value
      progress.value = { ...progress.value, before: before + rows.value.length }
      await fetchPages(run, true)
    },
    stop(): void {
      run++
      progress.value = { ...progress.value, is_running: false, is_stopped: true }
    },
  }
}
