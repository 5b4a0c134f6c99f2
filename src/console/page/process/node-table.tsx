/**
 * The nodes of a process as a table: the content of the graph for screen readers and small screens.
 * Counts are signals, so a frame changes only their texts.
 */

import { type ReadonlySignal, useComputed, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { Box, Drawing } from '../../diagram/drawing.ts'
import type { Counts, GraphCounts } from '../graph/counts.ts'
import { Field } from '../parts/field.tsx'
import { Name } from '../parts/name.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Count } from '../parts/values.tsx'

const rows_first = 40

interface NodeTableProps {
  readonly drawing: Drawing
  readonly counts: GraphCounts
  onOpen(node_id: string): void
}

export function NodeTable({ drawing, counts, onOpen }: NodeTableProps) {
  const wanted = useSignal('')
  const rows_max = useSignal(rows_first)
  const columns = useMemo(() => columnsOf(drawing, counts, onOpen), [drawing, counts])
  const text = wanted.value.trim().toLowerCase()
  const found = drawing.boxes.filter(
    ({ title, node_id }) => title.toLowerCase().includes(text) || node_id === text,
  )
  const more = async () => {
    rows_max.value += rows_first
  }
  return (
    <section class="process-nodes" aria-label="Nodes">
      <header>
        <h2>Nodes</h2>
        {drawing.boxes.length > 10 && <Field label="Find a node" type="search" value={wanted} />}
      </header>
      <Table
        label="Nodes and the tasks in them"
        columns={columns}
        rows={found.slice(0, rows_max.value)}
        keyOf={({ node_id }) => node_id}
        more={found.length > rows_max.value ? more : undefined}
        empty={drawing.boxes.length === 0 ? 'It has no nodes yet.' : 'No node is called so.'}
      />
    </section>
  )
}

function columnsOf(
  drawing: Drawing,
  counts: GraphCounts,
  onOpen: (node_id: string) => void,
): Column<Box>[] {
  const titles = new Map(drawing.boxes.map(({ node_id, title }) => [node_id, title || node_id]))
  const leads = new Map<string, string[]>()
  for (const { from_node_id, to_node_id, label } of drawing.edges) {
    const to = titles.get(to_node_id) ?? to_node_id
    const edges = leads.get(from_node_id) ?? []
    edges.push(label === '' ? to : `${label} → ${to}`)
    leads.set(from_node_id, edges)
  }
  const count = (key: string, title: string, read: (counts: Counts) => number): Column<Box> => ({
    ...{ key, title, class: `number ${key}` },
    cell: ({ node_id }) => (
      <NodeCount of={counts.of(node_id)} read={read} is_bad={key === 'failed'} />
    ),
  })
  const sum = (one = 0, other = 0) => one + other
  return [
    {
      ...{ key: 'node', title: 'Node', is_head: true },
      cell: ({ node_id, title }) => (
        <button type="button" class="link" onClick={() => onOpen(node_id)}>
          <Name of={title || node_id} />
        </button>
      ),
    },
    {
      ...{ key: 'does', title: 'Does', class: 'does' },
      cell: ({ does, kind }) => does || (kind === 'logic' ? '' : kind),
    },
    count('failed', 'Failed', ({ by_status }) => by_status.failed ?? 0),
    count('waiting', 'Waiting', ({ by_status: { delayed, processing } }) =>
      sum(delayed, processing),
    ),
    count('due', 'Due soon', ({ due_soon }) => due_soon),
    count('ended', 'Ended', ({ by_status: { processed, canceled } }) => sum(processed, canceled)),
    {
      ...{ key: 'leads', title: 'Leads to', class: 'leads' },
      cell: ({ node_id }) =>
        leads.get(node_id)?.map((edge, at) => (
          <div key={at}>
            <Name of={edge} />
          </div>
        )),
    },
  ]
}

interface NodeCountProps {
  readonly of: ReadonlySignal<Counts>
  readonly read: (counts: Counts) => number
  readonly is_bad: boolean
}

function NodeCount({ of, read, is_bad }: NodeCountProps) {
  return <Count of={useComputed(() => read(of.value))} is_bad={is_bad} />
}
