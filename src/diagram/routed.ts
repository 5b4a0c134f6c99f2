/**
 * Boxes at the places of the definition, as an editor drew them, with ways that libavoid leads
 * around all boxes at right angles. Undefined where a node has no place, boxes stand on each
 * other, the graph is too large, or a way found no room.
 */
import { AvoidLib } from 'libavoid-js'
import type { Point } from './drawing.ts'
import type { Graph, GraphWay } from './graph.ts'
import { box_px, halves, type Layout, overlap, type Rect, type Route, waysUnder } from './layout.ts'
import { label_height_px, labelWidth } from './text.ts'

/** The work grows faster than the square of it: 800 ways take 3 s. */
const routed_ways_max = 1_000
const routed_boxes_max = 600

export async function routedOf({ boxes, ways }: Graph): Promise<Layout | undefined> {
  if (ways.length > routed_ways_max || boxes.length > routed_boxes_max) return undefined
  const middles = boxes.flatMap(({ drawn_at }) => drawn_at ?? [])
  if (middles.length < boxes.length) return undefined
  const rects = middles.map((middle) => ({ ...middle, ...halves }))
  if (rects.some((a, at) => rects.slice(at + 1).some((b) => overlap(a, b)))) return undefined
  const routes = (await pointsOf(middles, ways)).map((points) => ({ points }))
  if (waysUnder({ middles, routes }) > 0) return undefined
  return { middles, routes: withLabels(rects, ways, routes) }
}

/** Ends of ways: the middle of any side; of a way back to its own box two places on the right. */
const [any_side, loop_out, loop_back] = [1, 2, 3] as const

let loaded: Promise<void> | undefined

async function pointsOf(middles: readonly Point[], ways: readonly GraphWay[]): Promise<Point[][]> {
  loaded ??= AvoidLib.load()
  await loaded
  const avoid = AvoidLib.getInstance()
  const router = new avoid.Router(avoid.OrthogonalRouting)
  router.setRoutingParameter(avoid.shapeBufferDistance, 14)
  router.setRoutingParameter(avoid.idealNudgingDistance, 12)
  router.setRoutingParameter(avoid.segmentPenalty, 50)
  router.setRoutingOption(avoid.nudgeOrthogonalSegmentsConnectedToShapes, true)
  router.setRoutingOption(avoid.nudgeOrthogonalTouchingColinearSegments, true)
  const pins = [
    [any_side, 0.5, 0, avoid.ConnDirUp],
    [any_side, 0.5, 1, avoid.ConnDirDown],
    [any_side, 0, 0.5, avoid.ConnDirLeft],
    [any_side, 1, 0.5, avoid.ConnDirRight],
    [loop_out, 1, 0.25, avoid.ConnDirRight],
    [loop_back, 1, 0.75, avoid.ConnDirRight],
  ] as const
  const { width, height } = box_px
  const shapes = middles.map(({ x, y }) => {
    const outline = new avoid.Rectangle(new avoid.Point(x, y), width, height)
    const shape = new avoid.ShapeRef(router, outline)
    for (const [end, part_x, part_y, side] of pins) {
      const pin = new avoid.ShapeConnectionPin(shape, end, part_x, part_y, true, 0, side)
      pin.setExclusive(false)
    }
    return shape
  })
  const connectors = ways.map(({ from, to }) => {
    const [out, into] = from === to ? [loop_out, loop_back] : [any_side, any_side]
    const end = (at: number, pin: number) => new avoid.ConnEnd(shapes[at] as object, pin)
    return new avoid.ConnRef(router, end(from, out), end(to, into))
  })
  router.processTransaction()
  const points = connectors.map((connector) => {
    const line = connector.displayRoute()
    return Array.from({ length: line.size() }, (_, at) => {
      const { x, y } = line.get_ps(at)
      return { x, y }
    })
  })
  avoid.destroy(router)
  return points
}

/** Each label stands on a straight part of its way, where it covers no box and no other label. */
function withLabels(
  boxes: readonly Rect[],
  ways: readonly GraphWay[],
  routes: readonly Route[],
): Route[] {
  const taken = [...boxes]
  return routes.map((route, at) => {
    const { label } = ways[at] as GraphWay
    if (label === '') return route
    const half = { half_x: labelWidth(label) / 2, half_y: label_height_px / 2 }
    const rects = placesOn(route.points).map((place) => ({ ...place, ...half }))
    const [first = { x: 0, y: 0, ...half }] = rects
    const rect = rects.find((one) => !taken.some((other) => overlap(one, other))) ?? first
    taken.push(rect)
    return { ...route, label_at: { x: rect.x, y: rect.y } }
  })
}

/** Points of a way, from the middles of its longest parts on. */
function placesOn(points: readonly Point[]): Point[] {
  const parts = points.slice(1).map((to, at) => ({ from: points[at] as Point, to }))
  const length = ({ from, to }: (typeof parts)[number]): number =>
    Math.abs(from.x - to.x) + Math.abs(from.y - to.y)
  parts.sort((a, b) => length(b) - length(a))
  return [0.5, 0.3, 0.7, 0.15, 0.85].flatMap((t) =>
    parts.map(({ from, to }) => ({
      x: from.x + (to.x - from.x) * t,
      y: from.y + (to.y - from.y) * t,
    })),
  )
}
