/**
 * The tasks that a search finds, over all processes or in one, and bulk actions on them. The search
 * is kept with the place, so that going back finds it again.
 */
import { type Signal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { BulkAction, BulkJob } from '../../../engine/api/search-api.ts'
import type { Bulk, TaskRow } from '../../server/messages.ts'
import { learnProcesses } from '../known-processes.ts'
import { Button } from '../parts/button.tsx'
import { ViewTitle } from '../parts/link.tsx'
import { set } from '../parts/set.ts'
import { countText, tasksText } from '../parts/texts.ts'
import { FaultText } from '../parts/toasts.tsx'
import { Time } from '../parts/values.tsx'
import { given, keep } from '../place.ts'
import { call, may } from '../session.ts'
import { BulkDialog, ResumeDialog } from './bulk-dialog.tsx'
import { verbs } from './bulk-work.ts'
import { CsvExport, CsvImport } from './csv.tsx'
import { type Chosen, newTaskList, part_tasks, type TaskList } from './list.ts'
import { type Search, searchOf } from './search.ts'
import { SearchForm } from './search-form.tsx'
import { TaskTable } from './table.tsx'

export function TasksView() {
  const list = useMemo(() => newTaskList(call), [])
  const chosen = useSignal<Chosen>(new Set())
  const search = useMemo(() => searchOf(given.value), [given.value])
  const begin = () => {
    chosen.value = new Set()
    return list.begin(search)
  }
  useEffect(() => {
    void learnProcesses()
    return list.stop
  }, [])
  useEffect(() => void begin(), [search])
  // A new object, so the same search runs again.
  const onSearch = (wanted: Search) => keep({ ...wanted })
  const { is_running } = list.progress.value
  return (
    <div class="tasks-view">
      <ViewTitle window="Tasks" />
      {may('operate') && <OpenJobs />}
      <SearchForm
        search={search}
        mistakes={list.mistakes.value}
        is_running={is_running}
        onSearch={onSearch}
      />
      <FaultText fault={list.fault.value} />
      {may('operate') && <BulkBar list={list} chosen={chosen} search={search} again={begin} />}
      <TaskTable list={list} chosen={may('operate') ? chosen : undefined} search={search} />
      <HowFar list={list} />
      <div class="how-far">
        <CsvExport filter={list.filter.value} newest_first={search.newest_first} />
        {may('operate') && search.conv_id !== '' && (
          <CsvImport conv_id={search.conv_id} onDone={begin} />
        )}
      </div>
    </div>
  )
}

function HowFar({ list }: { readonly list: TaskList }) {
  const { is_running, is_stopped, goes_on, scanned, before } = list.progress.value
  const { reached_ms, sorted_by } = list.progress.value
  const shown = list.rows.value.length
  const is_full = shown >= part_tasks
  return (
    <div class="how-far">
      <span role="status">
        {tasksText(before + shown)}
        {goes_on && ' so far'}
        {scanned > before + shown && `, ${countText(scanned)} looked at`}
        {reached_ms !== undefined && goes_on && (
          <>
            , {reached_words[sorted_by ?? 'created']} <Time ms={reached_ms} as="exact" />
          </>
        )}
      </span>
      {is_running && <Button act={list.stop}>Stop</Button>}
      {is_stopped && goes_on && !is_full && <Button act={list.more}>Go on</Button>}
      {!is_running && goes_on && is_full && (
        <Button act={list.nextPart}>Show the next {countText(part_tasks)}</Button>
      )}
    </div>
  )
}

const reached_words = {
  ref: 'up to',
  due: 'up to those due',
  ended: 'up to those that ended',
  failed: 'up to those that failed',
  created: 'up to those created',
} as const

interface BulkBarProps {
  readonly list: TaskList
  readonly chosen: Signal<Chosen>
  readonly search: Search
  readonly again: () => unknown
}

const actions: readonly BulkAction[] = ['retry', 'cancel', 'move', 'modify']

function BulkBar({ list, chosen, search, again }: BulkBarProps) {
  const opened = useSignal<BulkAction | undefined>(undefined)
  const rows = useComputed(() => {
    const { value } = chosen
    return value === 'all' ? [] : list.rows.value.filter(({ obj_id }) => value.has(obj_id))
  })
  const is_all = chosen.value === 'all'
  const count = rows.value.length
  if (!is_all && count === 0) return null
  const why_all_not = is_all && whyNotAll(search)
  const { conv_id } = is_all ? search : oneProcess(rows.value)
  const which = is_all
    ? 'All live tasks that the filter finds, also those not shown yet.'
    : `${tasksText(count)} that you have chosen.`
  const { value: action } = opened
  return (
    // biome-ignore lint/a11y/useSemanticElements: it is no part of a form
    <div class="bulk-bar panel" role="group" aria-label="What to do with the chosen tasks">
      <strong>{is_all ? 'All chosen that the filter finds' : `${countText(count)} chosen`}</strong>
      {actions.map((one) => (
        <Button
          key={one}
          kind={one === 'cancel' ? 'danger' : 'plain'}
          act={() => set(opened, one)}
          why_not={
            why_all_not ||
            (one === 'move' && conv_id === '' && 'Only tasks of one process can be moved')
          }
        >
          {one === 'modify' ? 'Send data' : verbs[one]} …
        </Button>
      ))}
      {!is_all && list.progress.value.goes_on && list.filter.value !== undefined && (
        <Button kind="quiet" act={() => set(chosen, 'all')}>
          All that the filter finds
        </Button>
      )}
      <Button kind="quiet" act={() => set(chosen, new Set())}>
        None
      </Button>
      {action !== undefined && (
        <BulkDialog
          bulk={bulkOf(action, list, rows.value, conv_id)}
          which={which}
          onClose={(has_changed) => {
            opened.value = undefined
            if (has_changed) again()
          }}
        />
      )}
    </div>
  )
}

function bulkOf(
  action: BulkAction,
  { filter }: TaskList,
  rows: readonly TaskRow[],
  conv_id: string,
): Bulk {
  const process = conv_id === '' ? {} : { conv_id }
  if (rows.length > 0) {
    return { action, filter: process, obj_ids: rows.map(({ obj_id }) => obj_id) }
  }
  const { status, ...others } = filter.value ?? {}
  // Ended tasks that it would find stay as they are.
  return { action, filter: { ...others, ...(status === 'any' ? {} : status && { status }) } }
}

function whyNotAll({ status }: Search): string | false {
  const is_over = status === 'ended' || status === 'processed' || status === 'canceled'
  return is_over && 'These tasks have ended: nothing can be done to them'
}

function oneProcess(rows: readonly TaskRow[]): { readonly conv_id: string } {
  const [first] = rows
  const is_one = rows.every(({ conv_id }) => conv_id === first?.conv_id)
  return { conv_id: is_one && first !== undefined ? first.conv_id : '' }
}

function OpenJobs() {
  const jobs = useSignal<readonly BulkJob[]>([])
  const opened = useSignal<BulkJob | undefined>(undefined)
  const ask = async () => {
    const found = await call('bulk_jobs', {}).catch(() => ({ jobs: [] }))
    jobs.value = found.jobs.filter(({ is_done }) => !is_done)
  }
  useEffect(() => void ask(), [])
  if (jobs.value.length === 0) return null
  return (
    <section class="open-jobs" aria-label="Work that is not done">
      {jobs.value.map((job) => (
        <div key={job.id}>
          <span>
            {verbs[job.action]} tasks: stopped after {countText(job.changed)}, begun{' '}
            <Time ms={job.started_ms} />.
          </span>
          <Button act={() => set(opened, job)}>Go on …</Button>
        </div>
      ))}
      {opened.value !== undefined && (
        <ResumeDialog
          job={opened.value}
          onClose={() => {
            opened.value = undefined
            void ask()
          }}
        />
      )}
    </section>
  )
}
