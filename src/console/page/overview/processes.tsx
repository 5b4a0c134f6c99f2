/**
 * The table of processes. Numbers change in place; rows are sorted again every few seconds, but not
 * while the pointer or the focus is among them.
 */
import { type ReadonlySignal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { Link, ProcessLink } from '../parts/link.tsx'
import { type Column, type Sorting, Table } from '../parts/table.tsx'
import { countText } from '../parts/texts.ts'
import { Count, Sparkline, StatusBadge } from '../parts/values.tsx'
import { given, keep } from '../place.ts'
import { type LiveRow, matching, type SortKey, sorted, sorters } from './state.ts'

const sort_every_ms = 5_000
const rows_at_once = 60

const number = (key: SortKey, title: string, cell: Column<LiveRow>['cell']): Column<LiveRow> => ({
  ...{ key, title, cell, sorts: 'down', class: 'number' },
})

const columns: readonly Column<LiveRow>[] = [
  {
    ...{ key: 'title', title: 'Process', sorts: 'up', is_head: true },
    cell: ({ conv_id, title, status }) => (
      <>
        <ProcessLink conv_id={conv_id} title={title} />
        <Status status={status} />
      </>
    ),
  },
  number('failed', 'Failed', (row) => <FailedLink {...row} />),
  number('waiting', 'Waiting', ({ waiting }) => <Count of={waiting} />),
  number('done', 'Done a minute', ({ done_a_minute }) => <Count of={done_a_minute} />),
  {
    ...{ key: 'line', title: 'Last half hour', class: 'line' },
    cell: ({ done }) => <Sparkline of={done} text={lineText} />,
  },
]

function lineText(values: readonly number[]): string {
  return `${countText(Math.max(0, ...values))} done in the busiest minute`
}

function Status({ status }: { readonly status: LiveRow['status'] }) {
  return status.value === 'active' ? null : <StatusBadge status={status.value} />
}

function FailedLink({ conv_id, failed }: Pick<LiveRow, 'conv_id' | 'failed'>) {
  const has_failed = useComputed(() => failed.value > 0).value
  if (!has_failed) return <Count of={failed} />
  return (
    <Link to={{ name: 'tasks' }} given={{ conv_id, status: 'failed' }}>
      <Count of={failed} is_bad />
    </Link>
  )
}

/** What the reader has chosen, kept with the place. */
interface Chosen {
  readonly text: string
  readonly sorting: Sorting
}

function chosenOf(kept: unknown): Chosen {
  const { text, sorting } = (kept ?? {}) as Partial<Chosen>
  const is_known = sorting !== undefined && sorting.key in sorters
  return {
    text: typeof text === 'string' ? text : '',
    sorting: is_known ? sorting : { key: 'failed', is_down: true },
  }
}

export function Processes({ rows }: { readonly rows: ReadonlySignal<readonly LiveRow[]> }) {
  const box = useRef<HTMLElement>(null)
  const chosen = useSignal(chosenOf(given.peek()))
  const turn = useSignal(0)
  const rows_max = useSignal(rows_at_once)
  const { text, sorting } = chosen.value
  const all = rows.value
  const shown = useMemo(
    () => sorted(matching(all, text), sorting.key as SortKey, sorting.is_down),
    [all, text, sorting, turn.value],
  )
  const change = (value: Chosen) => {
    chosen.value = value
    keep(value)
  }
  const drawMore = () => {
    rows_max.value += rows_at_once
  }
  useEffect(() => {
    const timer = setInterval(() => {
      if (box.current?.querySelector('tbody :is(:focus, :hover)') == null) turn.value += 1
    }, sort_every_ms)
    return () => clearInterval(timer)
  }, [])
  return (
    <section class="processes" ref={box} aria-labelledby="processes">
      <header>
        <h2 id="processes">
          Processes <span class="quiet-text">{countOf(shown.length, all.length)}</span>
        </h2>
        <input
          type="search"
          aria-label="Search processes by title or id"
          placeholder="Search by title or id"
          value={text}
          onInput={({ currentTarget }) => change({ text: currentTarget.value, sorting })}
        />
      </header>
      <Table
        label="Processes"
        columns={columns}
        rows={shown.slice(0, rows_max.value)}
        keyOf={({ conv_id }) => conv_id}
        sorting={sorting}
        onSort={(value) => change({ text, sorting: value })}
        more={shown.length > rows_max.value ? drawMore : undefined}
        empty="No process has this in its title or id."
      />
    </section>
  )
}

function countOf(shown: number, all: number): string {
  return shown === all ? countText(all) : `${countText(shown)} of ${countText(all)}`
}
