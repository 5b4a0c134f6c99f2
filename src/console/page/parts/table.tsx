/**
 * A table of rows that are objects; columns draw the cells and may sort. A row is redrawn only for
 * another object or other columns, so what changes often is in signals. A table with more rows
 * loads them when its end comes near, or by its button.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { Button } from './button.tsx'

export interface Column<Row> {
  readonly key: string
  readonly title: ComponentChildren
  readonly cell: (row: Row) => ComponentChildren
  /** Its heading sorts; `down`: the greatest first at the first press. */
  readonly sorts?: 'up' | 'down'
  readonly class?: string
  /** Names the row: its cell is the head of the row for screen readers. */
  readonly is_head?: boolean
}

export interface Sorting {
  readonly key: string
  readonly is_down: boolean
}

interface TableProps<Row extends object> {
  readonly label: string
  /** Made once: other columns draw all rows again. */
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly sorting?: Sorting
  readonly onSort?: (sorting: Sorting) => void
  readonly more?: (() => unknown) | undefined
  readonly empty?: ComponentChildren
  readonly classOf?: (row: Row) => string
  readonly class?: string
}

export function Table<Row extends object>(props: TableProps<Row>) {
  const { label, columns, rows, keyOf, sorting, onSort, more, empty, classOf } = props
  return (
    <div class={`table-frame ${props.class ?? ''}`}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.key} column={column} sorting={sorting} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <TableRow key={keyOf(row)} row={row} columns={columns} look={classOf?.(row)} />
          ))}
        </tbody>
      </table>
      {rows.length === 0 && empty !== undefined && <div class="empty">{empty}</div>}
      {more !== undefined && <More more={more} rows={rows.length} />}
    </div>
  )
}

interface HeadingProps<Row> {
  readonly column: Column<Row>
  readonly sorting: Sorting | undefined
  readonly onSort: ((sorting: Sorting) => void) | undefined
}

function Heading<Row>({ column, sorting, onSort }: HeadingProps<Row>) {
  const { key, title, sorts, class: look } = column
  if (sorts === undefined || onSort === undefined) {
    return (
      <th scope="col" class={look}>
        {title}
      </th>
    )
  }
  const is_sorted = sorting?.key === key
  const is_down = is_sorted ? sorting.is_down : sorts === 'down'
  return (
    <th
      scope="col"
      class={look}
      aria-sort={is_sorted ? (is_down ? 'descending' : 'ascending') : undefined}
    >
      <button
        type="button"
        class="sorter"
        onClick={() => onSort({ key, is_down: is_sorted ? !is_down : is_down })}
      >
        {title}
        <span aria-hidden="true">{is_sorted ? (is_down ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  )
}

interface TableRowProps<Row> {
  readonly row: Row
  readonly columns: readonly Column<Row>[]
  readonly look: string | undefined
}

function TableRow<Row>({ row, columns, look }: TableRowProps<Row>) {
  return useMemo(
    () => (
      <tr class={look}>
        {columns.map(({ key, cell, class: of_cell, is_head }) =>
          is_head ? (
            <th key={key} scope="row" class={of_cell}>
              {cell(row)}
            </th>
          ) : (
            <td key={key} class={of_cell}>
              {cell(row)}
            </td>
          ),
        )}
      </tr>
    ),
    [row, columns, look],
  )
}

/**
 * Asks as soon as it comes near the window, and again where that has brought rows and the end is
 * still near; by a press for who has no window, and where a search is long without finding any.
 */
function More({ more, rows }: { readonly more: () => unknown; readonly rows: number }) {
  const end = useRef<HTMLDivElement>(null)
  const runs = useSignal(false)
  const latest = useRef(more)
  latest.current = more
  const fetchMore = async () => {
    if (runs.value) return
    runs.value = true
    try {
      await latest.current()
    } finally {
      runs.value = false
    }
  }
  useEffect(() => {
    const watcher = new IntersectionObserver(
      // What fails here is not asked again by itself: the button says why.
      (seen) => seen.some(({ isIntersecting }) => isIntersecting) && fetchMore().catch(() => {}),
      { rootMargin: '300px' },
    )
    if (end.current !== null) watcher.observe(end.current)
    return () => watcher.disconnect()
  }, [rows])
  return (
    <div class="more" ref={end}>
      <Button act={fetchMore} is_running={runs.value}>
        Show more
      </Button>
    </div>
  )
}
