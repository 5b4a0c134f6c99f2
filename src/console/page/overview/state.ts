/**
 * What the overview shows, as signals: a row for each process, whose numbers change without a
 * redraw of the table. The first frame of a connection is whole, later ones hold what differs.
 */
import { type ReadonlySignal, type Signal, signal } from '@preact/signals'
import {
  doneAMinute,
  type FailedTasks,
  type Health,
  type Overview,
  type ProcessRow,
} from '../../overview/messages.ts'

export interface LiveRow {
  readonly conv_id: string
  readonly title: ReadonlySignal<string>
  readonly status: ReadonlySignal<ProcessRow['status']>
  /** Tasks that are neither failed nor ended. */
  readonly waiting: ReadonlySignal<number>
  readonly failed: ReadonlySignal<number>
  /** Of every status, as far as they are kept. */
  readonly tasks: ReadonlySignal<number>
  /** Ended in each minute that is over, the oldest first. */
  readonly done: ReadonlySignal<readonly number[]>
  /** Of the last minute that is over, or of the one that runs where that has more already. */
  readonly done_a_minute: ReadonlySignal<number>
}

export type OverviewState = ReturnType<typeof newOverviewState>

interface OwnRow extends LiveRow {
  readonly take: (row: ProcessRow) => void
}

export function newOverviewState() {
  const known = new Map<string, OwnRow>()
  /** Another array when a process comes or goes. Undefined before the first frame. */
  const rows = signal<readonly LiveRow[] | undefined>(undefined)
  const failed = signal<FailedTasks | undefined>(undefined)
  const health = signal<Health | undefined>(undefined)
  return {
    ...{ rows, failed, health },
    take(overview: Overview, is_whole: boolean): void {
      const { processes, removed } = overview
      const named = is_whole ? new Set(processes.map(({ conv_id }) => conv_id)) : undefined
      const gone = named === undefined ? removed : [...known.keys()].filter((id) => !named.has(id))
      for (const conv_id of gone) known.delete(conv_id)
      let has_others = rows.value === undefined || gone.length > 0
      for (const row of processes) {
        const live = known.get(row.conv_id)
        if (live !== undefined) live.take(row)
        else {
          known.set(row.conv_id, newRow(row))
          has_others = true
        }
      }
      if (has_others) rows.value = [...known.values()]
      if (overview.failed !== undefined) failed.value = overview.failed
      health.value = overview.health
    },
  }
}

function newRow(first: ProcessRow): OwnRow {
  const title = signal('')
  const status = signal(first.status)
  const waiting = signal(0)
  const failed = signal(0)
  const tasks = signal(0)
  const done: Signal<readonly number[]> = signal([])
  const done_a_minute = signal(0)
  const take = (row: ProcessRow) => {
    const { by_status } = row
    title.value = row.title || row.conv_id
    status.value = row.status
    waiting.value = (by_status.delayed ?? 0) + (by_status.processing ?? 0)
    failed.value = by_status.failed ?? 0
    tasks.value = Object.values(by_status).reduce((sum, count) => sum + count, 0)
    const over = row.done.slice(0, -1)
    if (over.some((count, at) => count !== done.value[at])) done.value = over
    done_a_minute.value = doneAMinute(row)
  }
  take(first)
  const { conv_id } = first
  return { conv_id, title, status, waiting, failed, tasks, done, done_a_minute, take }
}

/** By what the table of processes is sorted; what is equal goes by title. */
export const sorters = {
  title: () => 0,
  waiting: (one: LiveRow, other: LiveRow) => one.waiting.peek() - other.waiting.peek(),
  failed: (one: LiveRow, other: LiveRow) =>
    one.failed.peek() - other.failed.peek() || one.waiting.peek() - other.waiting.peek(),
  done: (one: LiveRow, other: LiveRow) => one.done_a_minute.peek() - other.done_a_minute.peek(),
}
export type SortKey = keyof typeof sorters

const by_title = new Intl.Collator('en', { numeric: true })

export function sorted(rows: readonly LiveRow[], key: SortKey, is_down: boolean): LiveRow[] {
  const compare = sorters[key]
  const sign = is_down ? -1 : 1
  const title_sign = key === 'title' ? sign : 1
  return rows.toSorted(
    (one, other) =>
      sign * compare(one, other) ||
      title_sign * by_title.compare(one.title.peek(), other.title.peek()),
  )
}

export function matching(rows: readonly LiveRow[], text: string): readonly LiveRow[] {
  const sought = text.trim().toLowerCase()
  if (sought === '') return rows
  return rows.filter(
    ({ conv_id, title }) => conv_id.includes(sought) || title.value.toLowerCase().includes(sought),
  )
}
