/**
 * Where the boxes and edges of a graph are, what overlaps what, and where the labels of edges go
 * that were routed without regard to them.
 */
import type { Point } from './drawing.ts'
import type { GraphEdge } from './graph.ts'
import { label_height_px, labelWidth } from './text.ts'

export const box_px = { width: 190, height: 58 } as const

export interface Layout {
  readonly middles: readonly Point[]
  readonly routes: readonly Route[]
}

export interface Route {
  readonly points: readonly Point[]
  /** The middle of its label; absent without one. */
  readonly label_at?: Point
}

export interface Rect extends Point {
  readonly half_x: number
  readonly half_y: number
}

export function boxAt({ x, y }: Point): Rect {
  return { x, y, half_x: box_px.width / 2, half_y: box_px.height / 2 }
}

export function overlap(a: Rect, b: Rect): boolean {
  return Math.abs(a.x - b.x) < a.half_x + b.half_x && Math.abs(a.y - b.y) < a.half_y + b.half_y
}

export type Part = readonly [from: Point, to: Point]

export function partsOf(points: readonly Point[]): Part[] {
  return points.slice(1).map((to, at) => [points[at] as Point, to])
}

export function rectBetween(a: Point, b: Point): Rect {
  return {
    ...{ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 },
    ...{ half_x: Math.abs(a.x - b.x) / 2, half_y: Math.abs(a.y - b.y) / 2 },
  }
}

export const tenth = (px: number): number => Math.round(px * 10) / 10

/** An edge may touch the border of a box, as its ends do. */
const touch_px = 0.5

/** Whether an edge runs under a box. */
export function runsUnder({ middles, routes }: Layout): boolean {
  const boxes = middles.map(boxAt).map(({ half_x, half_y, ...middle }) => ({
    ...{ ...middle, half_x: half_x - touch_px, half_y: half_y - touch_px },
  }))
  return routes.some(({ points }) =>
    partsOf(points).some(([a, b]) => {
      const part = rectBetween(a, b)
      return boxes.some((box) => overlap(box, part))
    }),
  )
}

/** In a graph with more edges labels may cover edges: to look costs the square of their number. */
const lines_max = 500

/**
 * Each label goes on a straight part of its edge, where it covers no box and no other label, and
 * no other edge if there is such a place.
 */
export function withLabels(edges: readonly GraphEdge[], { middles, routes }: Layout): Layout {
  const taken: Rect[] = middles.map(boxAt)
  const kept_free = routes.length > lines_max ? [] : routes
  const lines = kept_free.map(({ points }) => partsOf(points).map(([a, b]) => rectBetween(a, b)))
  const labelled = routes.map((route, at) => {
    const { label } = edges[at] as GraphEdge
    if (label === '') return route
    const half = { half_x: labelWidth(label) / 2, half_y: label_height_px / 2 }
    const places = placesOn(route.points).map((place) => ({ ...place, ...half }))
    const isFree = (place: Rect): boolean => !taken.some((other) => overlap(place, other))
    const covers = (place: Rect): boolean =>
      lines.some((parts, of) => of !== at && parts.some((part) => overlap(place, part)))
    const place =
      places.find((one) => isFree(one) && !covers(one)) ??
      places.find(isFree) ??
      (places[0] as Rect)
    taken.push(place)
    return { ...route, label_at: { x: place.x, y: place.y } }
  })
  return { middles, routes: labelled }
}

/** Points of an edge, from the middles of its longest parts on. */
function placesOn(points: readonly Point[]): Point[] {
  const parts = partsOf(points)
  const length = ([a, b]: Part): number => Math.abs(a.x - b.x) + Math.abs(a.y - b.y)
  parts.sort((one, other) => length(other) - length(one))
  return [0.5, 0.3, 0.7, 0.15, 0.85].flatMap((t) =>
    parts.map(([a, b]) => ({ x: a.x + (b.x - a.x) * t, y: a.y + (b.y - a.y) * t })),
  )
}
