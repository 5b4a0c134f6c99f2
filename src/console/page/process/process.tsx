/**
 * A process: its graph with live counts, the same nodes as a table, and actions on the whole
 * process.
 */
import { useComputed } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { ProcessPage } from '../../server/messages.ts'
import { Graph } from '../graph/graph.tsx'
import type { Mark } from '../graph/node.tsx'
import { Mistakes } from '../import/results.tsx'
import { useFrames } from '../live.ts'
import { ViewTitle } from '../parts/link.tsx'
import { FaultText } from '../parts/toasts.tsx'
import { given, keep } from '../place.ts'
import { ProcessHead } from './head.tsx'
import { NodePanel } from './node-panel.tsx'
import { NodeTable } from './node-table.tsx'
import { newProcessState, type ProcessState } from './state.ts'

export function ProcessView({ conv_id }: { readonly conv_id: string }) {
  const state = useMemo(() => newProcessState(conv_id, nodeOf(given.peek())), [conv_id])
  useFrames({ view: 'process', conv_id }, (frame) => {
    if (frame.view === 'process') state.take(frame.counts)
  })
  useEffect(() => void state.show({}), [state])
  const page = state.page.value
  if (page === undefined) {
    return (
      <div class="process-view">
        <ViewTitle window={`Process ${conv_id}`} />
        {state.fault.value === undefined ? <p class="begin">Reading…</p> : null}
        <FaultText fault={state.fault.value} />
      </div>
    )
  }
  return (
    <div class="process-view">
      <ProcessHead state={state} page={page} />
      <FaultText fault={state.fault.value} />
      <Mistakes state={state} />
      <Body state={state} page={page} />
    </div>
  )
}

function nodeOf(what: unknown): string | undefined {
  const { node_id } = (what ?? {}) as { node_id?: unknown }
  return typeof node_id === 'string' ? node_id : undefined
}

function Body({ state, page }: { readonly state: ProcessState; readonly page: ProcessPage }) {
  const { counts, opened, in_sight, mistakes } = state
  const { drawing, is_drawing, row } = page
  const marks = useComputed(() => marksOf(mistakes.value))
  const open = (node_id: string | undefined) => {
    opened.value = node_id
    keep(node_id === undefined ? null : { node_id })
  }
  const box = drawing.boxes.find(({ node_id }) => node_id === opened.value)
  return (
    <>
      <div class={box === undefined ? 'process-graph' : 'process-graph with-panel'}>
        {is_drawing ? (
          <p class="begin">Laying out its graph…</p>
        ) : (
          <Graph
            name={`Graph of ${row.title}`}
            drawing={drawing}
            counts={counts}
            marks={marks.value}
            opened={opened}
            shows={in_sight}
            onOpen={open}
          />
        )}
        {box && <NodePanel key={box.node_id} state={state} page={page} box={box} onOpen={open} />}
      </div>
      <NodeTable
        drawing={drawing}
        counts={counts}
        onOpen={(node_id) => {
          open(node_id)
          in_sight.value = node_id
        }}
      />
    </>
  )
}

function marksOf(mistakes: ProcessState['mistakes']['value']): ReadonlyMap<string, Mark> {
  return new Map(
    mistakes.flatMap(({ node_id, text }) =>
      node_id === undefined ? [] : [[node_id, { kind: 'wrong', sign: '!', says: text }]],
    ),
  )
}
