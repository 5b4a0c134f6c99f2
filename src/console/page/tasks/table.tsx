/** The table of found tasks, with checkboxes where the reader may change them. */

import { type Signal, useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { TaskRow } from '../../server/messages.ts'
import { processes } from '../known-processes.ts'
import { Button } from '../parts/button.tsx'
import { ProcessLink, TaskLink, Words } from '../parts/link.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { type Column, Table } from '../parts/table.tsx'
import { StatusBadge, Time } from '../parts/values.tsx'
import { keep } from '../place.ts'
import { inShort } from '../task/words.ts'
import { type Chosen, part_tasks, type TaskList } from './list.ts'
import type { Search } from './search.ts'

interface TaskTableProps {
  readonly list: TaskList
  readonly chosen: Signal<Chosen> | undefined
  readonly search: Search
}

export function TaskTable({ list, chosen, search }: TaskTableProps) {
  const columns = useMemo(
    () => (chosen === undefined ? shown : [choice(list, chosen), ...shown]),
    [list, chosen],
  )
  const { goes_on, is_running, is_stopped } = list.progress.value
  const { value: rows } = list.rows
  const asks = goes_on && !is_running && !is_stopped && rows.length < part_tasks
  return (
    <Table
      class="tasks"
      label="Tasks"
      columns={columns}
      rows={rows}
      keyOf={({ obj_id }) => obj_id}
      more={asks ? list.more : undefined}
      empty={is_running ? 'Searching …' : goes_on ? 'None so far.' : <None search={search} />}
    />
  )
}

function None({ search }: { readonly search: Search }) {
  return (
    <>
      <p>There is no such task.</p>
      {search.status === 'live' && (
        <Button kind="quiet" act={() => keep({ ...search, status: 'any' })}>
          Search among ended ones too
        </Button>
      )}
    </>
  )
}

const column = (
  title: string,
  look: string | undefined,
  cell: Column<TaskRow>['cell'],
): Column<TaskRow> => ({ key: title, title, cell, ...(look && { class: look }) })

const shown: readonly Column<TaskRow>[] = [
  {
    ...column('Ref', 'task-ref', ({ obj_id, ref }) => (
      <TaskLink obj_id={obj_id} ref_text={ref ?? 'no ref'} />
    )),
    is_head: true,
  },
  column('Id', 'task-id', ({ obj_id }) => <code>{obj_id}</code>),
  column('Process', 'task-process', ({ conv_id }) => <Process conv_id={conv_id} />),
  column('Node', 'task-node', ({ node_title, node_id }) => <Name of={node_title || node_id} />),
  column('Status', undefined, ({ status }) => <StatusBadge status={status} />),
  column('Waits for, failed with', 'task-why', (row) => <Words of={inShort(row)} />),
  column('Created', 'number', ({ create_time_ms }) => <Time ms={create_time_ms} />),
  column('Changed', 'number', ({ change_time_ms }) => <Time ms={change_time_ms} />),
]

function Process({ conv_id }: { readonly conv_id: string }) {
  const title = useComputed(() => processes.value.get(conv_id)?.title ?? '')
  return <ProcessLink conv_id={conv_id} title={title.value} />
}

function choice(list: TaskList, chosen: Signal<Chosen>): Column<TaskRow> {
  return {
    key: 'choice',
    title: <ChooseShown list={list} chosen={chosen} />,
    class: 'choice',
    cell: (row) => <Choose row={row} chosen={chosen} />,
  }
}

function ChooseShown({ list, chosen }: { list: TaskList; chosen: Signal<Chosen> }) {
  const { value } = chosen
  const rows = list.rows.value
  const is_all =
    value === 'all' || (rows.length > 0 && rows.every(({ obj_id }) => value.has(obj_id)))
  return (
    <input
      type="checkbox"
      aria-label="Choose all that are shown"
      checked={is_all}
      indeterminate={!is_all && value.size > 0}
      onChange={() => set(chosen, new Set(is_all ? [] : rows.map(({ obj_id }) => obj_id)))}
    />
  )
}

function Choose({ row: { obj_id, ref }, chosen }: { row: TaskRow; chosen: Signal<Chosen> }) {
  const is_chosen = useComputed(() => chosen.value === 'all' || chosen.value.has(obj_id))
  return (
    <input
      type="checkbox"
      aria-label={`Choose ${ref ?? obj_id}`}
      checked={is_chosen.value}
      onChange={() => {
        // Unchecking one of `all` starts a new choice, with that one in it.
        const before = chosen.value === 'all' ? [] : chosen.value
        const after = new Set(before)
        if (!after.delete(obj_id)) after.add(obj_id)
        chosen.value = after
      }}
    />
  )
}
