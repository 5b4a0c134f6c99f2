/**
 * The edges of a graph: lines with arrow heads, by kind, and labels that say when an edge is taken.
 * Live rates are drawn over them, and are all that changes.
 */
import { type ReadonlySignal, useComputed } from '@preact/signals'
import type { VNode } from 'preact'
import { useMemo } from 'preact/hooks'
import { type Drawing, type Edge, edgeKey, type Point } from '../../diagram/drawing.ts'
import { tenth } from '../../diagram/layout.ts'
import { cut, label_chars_max } from '../../diagram/text.ts'
import { shownText } from '../parts/texts.ts'
import { flowText, type GraphCounts } from './counts.ts'
import type { Area } from './zoom.ts'

const heads = ['go', 'error', 'time', 'passed'] as const
const corner_px = 8

interface Seen {
  readonly drawing: Drawing
  readonly seen: Area
  readonly is_far: boolean
}

interface EdgesProps extends Seen {
  readonly passed: ReadonlySet<string> | undefined
}

export function Edges({ drawing, seen, passed, is_far }: EdgesProps) {
  const { edges, width, height } = drawing
  const lines = useMemo(() => linesOf(edges, passed), [edges, passed])
  const shown = lines.filter(({ area }) =>
    overlaps(seen, area.left, area.top, area.right, area.bottom),
  )
  return (
    <>
      <svg class="graph-edges" width={width} height={height} aria-hidden="true">
        <defs>
          {heads.map((kind) => (
            <marker
              key={kind}
              id={`to-${kind}`}
              class={kind}
              viewBox="0 0 8 8"
              refX="7.5"
              refY="4"
              markerWidth="8"
              markerHeight="8"
              markerUnits="userSpaceOnUse"
              orient="auto"
            >
              <path d="M0 0L8 4L0 8z" />
            </marker>
          ))}
        </defs>
        {shown.map(({ line }) => line)}
      </svg>
      <div class="graph-labels" aria-hidden="true">
        {!is_far && shown.map(({ label }) => label)}
      </div>
    </>
  )
}

/** An edge with its elements, which are the same at each drawing, so that they are not compared. */
interface Line {
  readonly area: Area
  readonly line: VNode
  readonly label: VNode | undefined
}

function linesOf(edges: readonly Edge[], passed: ReadonlySet<string> | undefined): Line[] {
  return edges.map(({ from_node_id, to_node_id, kind, points, label, label_at }, key) => {
    const is_passed = passed?.has(edgeKey(from_node_id, to_node_id)) === true
    const name = `${kind}${is_passed ? ' passed' : ''}`
    const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)]
    return {
      area: {
        left: Math.min(...xs),
        top: Math.min(...ys),
        right: Math.max(...xs),
        bottom: Math.max(...ys),
      },
      line: (
        <path
          key={key}
          class={name}
          d={lineOf(points)}
          marker-end={`url(#to-${is_passed ? 'passed' : kind})`}
        />
      ),
      label:
        label_at === undefined || label === '' ? undefined : (
          <span key={key} class={`edge-label ${kind}`} style={placeOf(label_at)}>
            <bdi title={shownText(label)}>{shownText(cut(label, label_chars_max))}</bdi>
          </span>
        ),
    }
  })
}

/** The rates along the edges, of which only those that tasks have taken have elements. */
export function Rates({ drawing, counts, seen, is_far }: Seen & { readonly counts: GraphCounts }) {
  const { edges, width, height } = drawing
  const byKey = useMemo(() => firstEdges(edges), [edges])
  const flows = counts.flowing.value.flatMap((key) => {
    const edge = byKey.get(key)
    if (edge === undefined || !edge.points.some(({ x, y }) => overlaps(seen, x, y, x, y))) return []
    return [{ key, edge, per_s: counts.rateOf(key) }]
  })
  return (
    <>
      <svg class="graph-edges" width={width} height={height} aria-hidden="true">
        {flows.map(({ key, ...flow }) => (
          <Flow key={key} {...flow} />
        ))}
      </svg>
      <div class="graph-labels" aria-hidden="true">
        {!is_far && flows.map(({ key, ...flow }) => <Rate key={key} {...flow} />)}
      </div>
    </>
  )
}

interface FlowProps {
  readonly edge: Edge
  readonly per_s: ReadonlySignal<number>
}

function Flow({ edge, per_s }: FlowProps) {
  const look = useComputed(() => `flow ${edge.kind} ${strengthOf(per_s.value)}`)
  return <path class={look} d={lineOf(edge.points)} />
}

function Rate({ edge, per_s }: FlowProps) {
  const text = useComputed(() => (per_s.value > 0 ? flowText(per_s.value) : ''))
  return (
    <span class="rate" style={placeOf(rateAt(edge))}>
      <span>{text}</span>
    </span>
  )
}

export function overlaps(
  seen: Area,
  left: number,
  top: number,
  right: number,
  bottom: number,
): boolean {
  return left <= seen.right && right >= seen.left && top <= seen.bottom && bottom >= seen.top
}

/** Several edges between two nodes share one rate, drawn along the one taken without a fault. */
function firstEdges(edges: readonly Edge[]): ReadonlyMap<string, Edge> {
  const found = new Map<string, Edge>()
  for (const edge of edges) {
    const key = edgeKey(edge.from_node_id, edge.to_node_id)
    if (!found.has(key) || edge.kind === 'go') found.set(key, edge)
  }
  return found
}

function strengthOf(per_s: number): string {
  if (per_s === 0) return 'none'
  return per_s < 1 ? 'weak' : per_s < 100 ? 'strong' : 'full'
}

/** Below the label, or in the middle of the longest part of an edge without one. */
function rateAt({ label_at, points }: Edge): Point {
  if (label_at !== undefined) return { x: label_at.x, y: label_at.y + 16 }
  let middle: Point = { x: 0, y: 0 }
  let longest = -1
  for (const [at, to] of points.entries()) {
    const from = points[at - 1]
    if (from === undefined) continue
    const length = Math.hypot(to.x - from.x, to.y - from.y)
    if (length <= longest) continue
    longest = length
    middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }
  }
  return middle
}

function placeOf({ x, y }: Point): { left: string; top: string } {
  return { left: `${x}px`, top: `${y}px` }
}

/** A line through the points, with its corners rounded. */
export function lineOf(points: readonly Point[]): string {
  const parts = points.map((point, at) => {
    const [before, after] = [points[at - 1], points[at + 1]]
    if (before === undefined) return `M${point.x} ${point.y}`
    if (after === undefined) return `L${point.x} ${point.y}`
    const from = towards(point, before)
    const to = towards(point, after)
    return `L${from.x} ${from.y}Q${point.x} ${point.y} ${to.x} ${to.y}`
  })
  return parts.join('')
}

/** From the corner so far towards another as it is rounded, at most half of the way. */
function towards(corner: Point, other: Point): Point {
  const length = Math.hypot(other.x - corner.x, other.y - corner.y)
  const part = length === 0 ? 0 : Math.min(corner_px, length / 2) / length
  return {
    x: tenth(corner.x + (other.x - corner.x) * part),
    y: tenth(corner.y + (other.y - corner.y) * part),
  }
}
