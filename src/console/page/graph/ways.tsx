/**
 * The ways of a graph: lines with arrow heads, by kind, and the labels that say when they are
 * taken. How many tasks take them now lies over them, and is all that changes.
 */
import { type ReadonlySignal, useComputed } from '@preact/signals'
import type { VNode } from 'preact'
import { useMemo } from 'preact/hooks'
import type { Drawing, Point, Way } from '../../diagram/drawing.ts'
import { tenth } from '../../diagram/layout.ts'
import { cut, label_chars_max } from '../../diagram/text.ts'
import { flowText, type GraphCounts } from './counts.ts'
import { wayKey } from './way-key.ts'
import type { Area } from './zoom.ts'

const heads = ['go', 'error', 'time', 'passed'] as const
const corner_px = 8

interface Seen {
  readonly drawing: Drawing
  readonly seen: Area
  /** Too far to read anything: lines are drawn alone. */
  readonly is_far: boolean
}

interface WaysProps extends Seen {
  readonly passed: ReadonlySet<string> | undefined
}

export function Ways({ drawing, seen, passed, is_far }: WaysProps) {
  const { ways, width, height } = drawing
  const lines = useMemo(() => linesOf(ways, passed), [ways, passed])
  const shown = lines.filter(({ area }) =>
    overlaps(seen, area.left, area.top, area.right, area.bottom),
  )
  return (
    <>
      <svg class="graph-ways" width={width} height={height} aria-hidden="true">
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

/** A way with its elements, which are the same at each drawing, so that they are not compared. */
interface Line {
  readonly area: Area
  readonly line: VNode
  readonly label: VNode | undefined
}

function linesOf(ways: readonly Way[], passed: ReadonlySet<string> | undefined): Line[] {
  return ways.map(({ from_node_id, to_node_id, kind, points, label, label_at }, key) => {
    const is_passed = passed?.has(wayKey(from_node_id, to_node_id)) === true
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
          <span key={key} class={`way-label ${kind}`} style={placeOf(label_at)}>
            <bdi title={label}>{cut(label, label_chars_max)}</bdi>
          </span>
        ),
    }
  })
}

/** The rates along the ways, of which only those that tasks have taken have elements. */
export function Rates({ drawing, counts, seen, is_far }: Seen & { readonly counts: GraphCounts }) {
  const { ways, width, height } = drawing
  const byKey = useMemo(() => firstWays(ways), [ways])
  const flows = counts.flowing.value.flatMap((key) => {
    const way = byKey.get(key)
    if (way === undefined || !way.points.some(({ x, y }) => overlaps(seen, x, y, x, y))) return []
    return [{ key, way, per_s: counts.rateOf(key) }]
  })
  return (
    <>
      <svg class="graph-ways" width={width} height={height} aria-hidden="true">
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
  readonly way: Way
  readonly per_s: ReadonlySignal<number>
}

function Flow({ way, per_s }: FlowProps) {
  const look = useComputed(() => `flow ${way.kind} ${strengthOf(per_s.value)}`)
  return <path class={look} d={lineOf(way.points)} />
}

function Rate({ way, per_s }: FlowProps) {
  const text = useComputed(() => (per_s.value > 0 ? flowText(per_s.value) : ''))
  return (
    <span class="rate" style={placeOf(rateAt(way))}>
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

/** Several ways between two nodes are told as one rate, along the one taken without a fault. */
function firstWays(ways: readonly Way[]): ReadonlyMap<string, Way> {
  const found = new Map<string, Way>()
  for (const way of ways) {
    const key = wayKey(way.from_node_id, way.to_node_id)
    if (!found.has(key) || way.kind === 'go') found.set(key, way)
  }
  return found
}

function strengthOf(per_s: number): string {
  if (per_s === 0) return 'none'
  return per_s < 1 ? 'weak' : per_s < 100 ? 'strong' : 'full'
}

/** Below the label, or in the middle of the longest part of a way without one. */
function rateAt({ label_at, points }: Way): Point {
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
