/**
 * Places the labels of edges that were routed without regard to them.
 */
import type { Point } from './drawing.ts'
import type { GraphEdge } from './graph.ts'
import {
  boxAt,
  type Layout,
  overlap,
  type Part,
  partsOf,
  type Rect,
  rectBetween,
} from './layout.ts'
import { label_height_px, labelWidth } from './text.ts'

/** In a graph with more edges labels may cover edges: to look costs the square of their number. */
const lines_max = 500

/**
 * Each label stands on a straight part of its edge, where it covers no box and no other label, and
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
