/**
 * The path of each arrow: out of a side of its box, through its points, into a side of the other.
 * The arrows on a side are spread over it in the order of their targets.
 */
import type { Arrow, Point } from './graph.ts'
import { labelWidth, newLabelPlacer } from './labels.ts'
import { box_px, type Layout } from './layout.ts'

export interface Route {
  /** The `d` of an SVG path. */
  readonly path: string
  /** The center of its label. */
  readonly label_at: Point
}

type Side = 'top' | 'bottom' | 'left' | 'right'

interface End {
  readonly box: number
  readonly side: Side
  /** The next point of the arrow, by which the ends on a side are ordered. */
  readonly towards: Point
}

export function routesOf(arrows: readonly Arrow[], layout: Layout): Route[] {
  const ends = arrows.map(({ from, to }, at) => endsOf(from, to, layout, layout.bends[at] ?? []))
  const ports = portsOf(ends.flat(), layout)
  const free = newLabelPlacer(layout.boxes)
  return arrows.map(({ from, to, label }, at) => {
    const [start, end] = ends[at] as [End, End]
    const a = ports.get(start) as Point
    const b = ports.get(end) as Point
    if (from === to) return loop(a, b, labelWidth(label))
    const half = box_px.height / 2
    const down = start.side === 'bottom'
    const bends = (layout.bends[at] ?? []).flatMap(({ x, y }) => [
      { x, y: down ? y - half : y + half },
      { x, y: down ? y + half : y - half },
    ])
    const [stop = b] = bends
    const places = onCurve(a, stop, start.side, bends.length > 0 ? opposite[start.side] : end.side)
    const path = pathOf(a, bends, b, start.side, end.side)
    return { path, label_at: free.take(places, labelWidth(label)) }
  })
}

function endsOf(from: number, to: number, layout: Layout, bends: readonly Point[]): [End, End] {
  const a = layout.boxes[from] as Point
  const b = layout.boxes[to] as Point
  const [first, last] = [bends[0] ?? b, bends.at(-1) ?? a]
  const [out, into] = sidesOf(a, b, from === to)
  return [
    { box: from, side: out, towards: first },
    { box: to, side: into, towards: last },
  ]
}

function sidesOf(a: Point, b: Point, is_loop: boolean): [Side, Side] {
  if (is_loop) return ['right', 'right']
  const { width, height } = box_px
  if (b.y - a.y > height) return ['bottom', 'top']
  if (a.y - b.y > height) return Math.abs(b.x - a.x) < 12 ? ['right', 'right'] : ['top', 'bottom']
  return b.x - a.x > width / 2 ? ['right', 'left'] : ['left', 'right']
}

/** The point of each end on its side of the box. */
function portsOf(ends: readonly End[], layout: Layout): Map<End, Point> {
  const sides = new Map<string, End[]>()
  for (const end of ends) {
    const key = `${end.box} ${end.side}`
    sides.set(key, [...(sides.get(key) ?? []), end])
  }
  const ports = new Map<End, Point>()
  for (const shared of sides.values()) {
    const { side, box } = shared[0] as End
    const { x, y } = layout.boxes[box] as Point
    const is_level = side === 'top' || side === 'bottom'
    const along = is_level ? 'x' : 'y'
    shared.sort((a, b) => a.towards[along] - b.towards[along])
    const spread_px = (is_level ? box_px.width : box_px.height) * 0.62
    const step = Math.min(spread_px / Math.max(1, shared.length - 1), is_level ? 44 : 16)
    for (const [at, end] of shared.entries()) {
      const off = (at - (shared.length - 1) / 2) * step
      const out = (is_level ? box_px.height : box_px.width) / 2
      const sign = side === 'top' || side === 'left' ? -1 : 1
      ports.set(
        end,
        is_level ? { x: x + off, y: y + sign * out } : { x: x + sign * out, y: y + off },
      )
    }
  }
  return ports
}

function pathOf(a: Point, bends: readonly Point[], b: Point, out: Side, into: Side): string {
  const points = [a, ...bends, b]
  let path = `M${xy(a)}`
  for (const [at, to] of points.slice(1).entries()) {
    const from = points[at] as Point
    const { c1, c2 } = controls(
      from,
      to,
      at === 0 ? out : opposite[into],
      at === points.length - 2 ? into : opposite[out],
    )
    path += ` C${xy(c1)} ${xy(c2)} ${xy(to)}`
  }
  return path
}

const opposite: Readonly<Record<Side, Side>> = {
  top: 'bottom',
  bottom: 'top',
  left: 'right',
  right: 'left',
}

/** The control points of a curve that meets both sides at a right angle. */
function controls(from: Point, to: Point, out: Side, into: Side): { c1: Point; c2: Point } {
  const is_level = out === 'left' || out === 'right'
  const distance = is_level
    ? Math.max(36, Math.abs(to.x - from.x) / 2)
    : Math.max(20, Math.abs(to.y - from.y) / 2)
  return { c1: moved(from, out, distance), c2: moved(to, into, distance) }
}

function moved({ x, y }: Point, side: Side, by: number): Point {
  if (side === 'top') return { x, y: y - by }
  if (side === 'bottom') return { x, y: y + by }
  return { x: side === 'left' ? x - by : x + by, y }
}

/** Label positions along the curve, from its middle outwards; above it where it is level. */
function onCurve(a: Point, b: Point, out: Side, into: Side): Point[] {
  const { c1, c2 } = controls(a, b, out, into)
  const is_level = out === 'left' || out === 'right'
  return [0.4, 0.6, 0.25, 0.75, 0.12, 0.88].map((t) => {
    const weigh = (p: 'x' | 'y'): number => {
      const [u, near, far] = [1 - t, c1[p], c2[p]]
      return u ** 3 * a[p] + 3 * u ** 2 * t * near + 3 * u * t ** 2 * far + t ** 3 * b[p]
    }
    return { x: weigh('x'), y: weigh('y') - (is_level ? 12 : 0) }
  })
}

function loop(a: Point, b: Point, label_width: number): Route {
  const out = { x: a.x + 46, y: Math.min(a.y, b.y) - 14 }
  const back = { x: a.x + 46, y: Math.max(a.y, b.y) + 14 }
  return {
    path: `M${xy(a)} C${xy(out)} ${xy(back)} ${xy(b)}`,
    label_at: { x: a.x + 38 + label_width / 2, y: (a.y + b.y) / 2 },
  }
}

function xy({ x, y }: Point): string {
  return `${round(x)} ${round(y)}`
}

/** To a tenth of a pixel, which keeps the file short. */
export function round(px: number): number {
  return Math.round(px * 10) / 10
}
