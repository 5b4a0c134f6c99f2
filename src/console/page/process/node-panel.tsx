/**
 * The panel of a node: what it does, where it leads, its counts and its first tasks, kept up to
 * date while it is open.
 */

import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Status } from '../../../core/model.ts'
import type { Box, Drawing } from '../../diagram/drawing.ts'
import type { ProcessPage, TaskRow } from '../../server/messages.ts'
import { Link, TaskLink } from '../parts/link.tsx'
import { Name, nameText } from '../parts/name.tsx'
import { status_words, statuses } from '../parts/texts.ts'
import { FaultText } from '../parts/toasts.tsx'
import { Count, StatusBadge, Time } from '../parts/values.tsx'
import { call, may } from '../session.ts'
import type { ProcessState } from './state.ts'

const tasks_max = 10
/** The shortest time between two fetches of its tasks. */
const ask_every_ms = 2_000

interface PanelProps {
  readonly state: ProcessState
  readonly page: ProcessPage
  readonly box: Box
  onOpen(node_id: string | undefined): void
}

export function NodePanel({ state, page, box, onOpen }: PanelProps) {
  const { node_id, title, does, kind } = box
  const { conv_id } = state
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const close = () => {
    onOpen(undefined)
    const boxes = document.querySelectorAll<HTMLElement>('[data-node]')
    for (const one of boxes) if (one.dataset.node === node_id) one.focus()
  }
  const counts = state.counts.of(node_id)
  const has_failed = useComputed(() => (counts.value.by_status.failed ?? 0) > 0)
  return (
    <section
      class="panel node-panel"
      aria-label={`Node ${nameText(title || node_id)}`}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close()
      }}
    >
      <header>
        <h2 ref={heading} tabIndex={-1}>
          <Name of={title || node_id} />
        </h2>
        <button type="button" class="close" aria-label="Close" onClick={close}>
          ×
        </button>
      </header>
      <p class="quiet-text">
        {[kind === 'logic' ? '' : kind, does].filter(Boolean).join(': ')} <code>{node_id}</code>
      </p>
      <EdgesOut drawing={page.drawing} node_id={node_id} onOpen={onOpen} />
      <ul class="totals" aria-label="Tasks by status">
        {statuses.map((status) => (
          <NodeTotal key={status} {...{ conv_id, node_id, status, counts }} />
        ))}
      </ul>
      <FirstTasks conv_id={conv_id} node_id={node_id} counts={counts} />
      <p class="panel-links">
        <Link to={{ name: 'tasks' }} given={{ conv_id, node_id }}>
          All tasks in this node
        </Link>
        {may('operate') && has_failed.value && (
          <Link to={{ name: 'tasks' }} given={{ conv_id, node_id, status: 'failed' }}>
            Fix and retry all failed…
          </Link>
        )}
      </p>
    </section>
  )
}

interface NodeTotalProps {
  readonly conv_id: string
  readonly node_id: string
  readonly status: Status
  readonly counts: ReturnType<ProcessState['counts']['of']>
}

function NodeTotal({ conv_id, node_id, status, counts }: NodeTotalProps) {
  const count = useComputed(() => counts.value.by_status[status] ?? 0)
  if (count.value === 0) return null
  return (
    <li>
      <Link to={{ name: 'tasks' }} given={{ conv_id, node_id, status }}>
        <Count of={count} is_bad={status === 'failed'} /> {status_words[status]}
      </Link>
    </li>
  )
}

interface EdgesOutProps {
  readonly drawing: Drawing
  readonly node_id: string
  onOpen(node_id: string): void
}

function EdgesOut({ drawing, node_id, onOpen }: EdgesOutProps) {
  const edges = drawing.edges.filter(({ from_node_id }) => from_node_id === node_id)
  if (edges.length === 0) return null
  const titles = new Map(drawing.boxes.map((box) => [box.node_id, box.title]))
  return (
    <ul class="edges-out" aria-label="Where it leads">
      {edges.map(({ to_node_id, kind, label }, at) => (
        <li key={at} class={kind}>
          <span class="edge-when">
            <Name of={label || 'always'} />
          </span>{' '}
          →{' '}
          <button type="button" class="link" onClick={() => onOpen(to_node_id)}>
            <Name of={titles.get(to_node_id) || to_node_id} />
          </button>
        </li>
      ))}
    </ul>
  )
}

function FirstTasks(props: Pick<NodeTotalProps, 'conv_id' | 'node_id' | 'counts'>) {
  const { conv_id, node_id, counts } = props
  const rows = useSignal<readonly TaskRow[] | undefined>(undefined)
  const fault = useSignal<unknown>(undefined)
  useEffect(() => {
    let has_ended = false
    let is_asking = false
    let is_stale = false
    const ask = async () => {
      if (is_asking) {
        is_stale = true
        return
      }
      is_asking = true
      is_stale = false
      try {
        const filter = { conv_id, node_id, status: 'live', limit: tasks_max } as const
        rows.value = (await call('tasks', filter)).rows
        fault.value = undefined
      } catch (error) {
        fault.value = error
      }
      setTimeout(() => {
        is_asking = false
        if (is_stale && !has_ended) void ask()
      }, ask_every_ms)
    }
    const stop = counts.subscribe(() => void ask())
    return () => {
      has_ended = true
      stop()
    }
  }, [])
  return (
    <>
      <FaultText fault={fault.value} />
      {rows.value?.length === 0 && <p class="quiet-text">No live task is in it now.</p>}
      {rows.value !== undefined && rows.value.length > 0 && (
        <ul class="first-tasks" aria-label="The oldest tasks in it">
          {rows.value.map((task) => (
            <li key={task.obj_id}>
              <TaskLink obj_id={task.obj_id} ref_text={task.ref} />
              <StatusBadge status={task.status} />
              <Time ms={task.change_time_ms} />
              {task.status_details && <code>{task.status_details.tag}</code>}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
