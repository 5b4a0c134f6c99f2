/**
 * The graph of a process: boxes over edges, as a `Drawing` places them. Only what is in sight is
 * rendered, and a frame re-renders only boxes and rates that it changes. Boxes are buttons in the
 * order of the drawing, whose names say what is in them.
 */
import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Drawing } from '../../diagram/drawing.ts'
import { set } from '../parts/set.ts'
import type { GraphCounts } from './counts.ts'
import { Edges, overlaps, Rates } from './edges.tsx'
import { type Mark, Node } from './node.tsx'
import { useZoom, type Zoom } from './zoom.ts'

/** Below this nothing that is written can be read, and boxes are drawn without it. */
const far_zoom = 0.35

export interface GraphProps {
  readonly drawing: Drawing
  /** For screen readers. */
  readonly name: string
  readonly counts?: GraphCounts
  readonly marks?: ReadonlyMap<string, Mark>
  /** Where a task went, by `edgeKey`: these edges are drawn strongly. */
  readonly passed?: ReadonlySet<string>
  readonly opened?: ReadonlySignal<string | undefined>
  readonly shows?: ReadonlySignal<string | undefined>
  onOpen(node_id: string): void
}

export function Graph(props: GraphProps) {
  const { drawing, name, shows } = props
  const frame = useRef<HTMLDivElement>(null)
  const after = useRef<HTMLSpanElement>(null)
  const zoom = useZoom(frame, drawing)
  const show = (node_id: string | undefined) => {
    const { boxes } = drawing
    const wanted = boxes.find((box) => box.node_id === node_id)
    const box = wanted ?? boxes.find(({ kind }) => kind === 'start')
    if (box) zoom.show(box.x + box.width / 2, box.y + box.height / 2)
  }
  // Every look at a node is a new one, also at the same node again.
  useSignalEffect(() => show(shows?.value))
  useEffect(() => show(shows?.peek()), [zoom])
  return (
    <div class="graph">
      <button type="button" class="button past" onClick={() => after.current?.focus()}>
        Past the graph
      </button>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by the arrow keys */}
      <section class="graph-frame" ref={frame} aria-label={name} tabIndex={0}>
        <div class="graph-place">
          <Stage {...props} zoom={zoom} />
        </div>
      </section>
      <ZoomBar zoom={zoom} />
      <span ref={after} tabIndex={-1} />
    </div>
  )
}

/** What is in sight, and the boxes before and after the focused one, so that Tab finds them. */
function Stage({ zoom, ...props }: GraphProps & { readonly zoom: Zoom }) {
  const { drawing, counts, marks, passed, opened, onOpen } = props
  const { boxes, width, height } = drawing
  const focused = useSignal<string | undefined>(undefined)
  const is_far = useComputed(() => zoom.value.value < far_zoom)
  const seen = zoom.seen.value
  const at = useMemo(() => boxes.findIndex((box) => box.node_id === focused.value), [focused.value])
  const shown = boxes.filter((box, index) => {
    const { x, y } = box
    const is_near_focus = at !== -1 && Math.abs(index - at) < 2
    return is_near_focus || overlaps(seen, x, y, x + box.width, y + box.height)
  })
  return (
    <div
      class={is_far.value ? 'graph-stage far' : 'graph-stage'}
      style={{ width: `${width}px`, height: `${height}px` }}
      onFocusIn={({ target }) => set(focused, (target as HTMLElement).dataset.node)}
    >
      <Edges drawing={drawing} seen={seen} passed={passed} is_far={is_far.value} />
      {counts && <Rates drawing={drawing} counts={counts} seen={seen} is_far={is_far.value} />}
      {shown.map((box) => (
        <Node
          key={box.node_id}
          box={box}
          counts={counts?.of(box.node_id)}
          mark={marks?.get(box.node_id)}
          is_far={is_far}
          opened={opened}
          onOpen={onOpen}
        />
      ))}
    </div>
  )
}

function ZoomBar({ zoom }: { readonly zoom: Zoom }) {
  const percent = useComputed(() => `${Math.round(zoom.value.value * 100)} %`)
  return (
    <fieldset class="graph-zoom" aria-label="Zoom">
      <button type="button" onClick={zoom.out} aria-label="Smaller" title="Smaller (-)">
        −
      </button>
      <button type="button" onClick={zoom.reset} title="As large as drawn">
        {percent}
      </button>
      <button type="button" onClick={zoom.in} aria-label="Larger" title="Larger (+)">
        +
      </button>
      <button type="button" onClick={zoom.fit} title="All of it (0)">
        Fit
      </button>
    </fieldset>
  )
}
