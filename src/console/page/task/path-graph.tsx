/**
 * The path of a task on the graph of its process: the nodes and the edges that it went through, as
 * far as its history goes, and where it is now.
 */

import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { ShownEntry } from '../../../task-operations/task-view.ts'
import type { Drawing } from '../../diagram/drawing.ts'
import { Graph } from '../graph/graph.tsx'
import type { Mark } from '../graph/node.tsx'
import { set } from '../parts/set.ts'
import { FaultText } from '../parts/toasts.tsx'
import { go } from '../place.ts'
import { call } from '../session.ts'
import { pathOf } from './path.ts'

interface PathGraphProps {
  readonly conv_id: string
  readonly history: readonly ShownEntry[]
  /** Where the task is, or ended. */
  readonly node_id: string
}

export function PathGraph({ conv_id, history, node_id }: PathGraphProps) {
  const drawing = useSignal<Drawing | undefined>(undefined)
  const fault = useSignal<unknown>(undefined)
  useEffect(() => {
    call('process', { conv_id, waits: true }).then(
      (page) => set(drawing, page.drawing),
      (error) => set(fault, error),
    )
  }, [conv_id])
  const path = useMemo(() => pathOf(history), [history])
  const marks = useMemo(() => {
    const found = new Map<string, Mark>()
    for (const [passed, times] of path.nodes) {
      const sign = times > 1 ? `${times}×` : ''
      found.set(passed, { kind: 'passed', sign, says: `passed ${times === 1 ? '' : sign}` })
    }
    return found.set(node_id, { kind: 'present', sign: '●', says: 'the task is here' })
  }, [path, node_id])
  const here = useSignal<string | undefined>(node_id)
  useEffect(() => set(here, node_id), [node_id])
  if (drawing.value === undefined) return <FaultText fault={fault.value} />
  return (
    <Graph
      name="The path of the task"
      drawing={drawing.value}
      marks={marks}
      passed={path.edges}
      shows={here}
      onOpen={(opened) => go({ name: 'process', conv_id }, { node_id: opened })}
    />
  )
}
