/**
 * Boxes at the places of the definition, as an editor drew them, with edges that libavoid leads
 * around all boxes at right angles. Undefined where a node has no place, boxes overlap, the graph
 * is too large, an edge found no room, or libavoid-js, an optional dependency, is not installed.
 */
import type { Avoid } from 'libavoid-js'
import type { Point } from './drawing.ts'
import type { Graph, GraphEdge } from './graph.ts'
import { box_px, boxAt, type Layout, overlap, runsUnder, withLabels } from './layout.ts'

/** The work grows with the square of it: 400 edges take a second. */
const routed_edges_max = 400
const routed_boxes_max = 300

export async function routedOf({ boxes, edges }: Graph): Promise<Layout | undefined> {
  if (edges.length > routed_edges_max || boxes.length > routed_boxes_max) return undefined
  const middles = boxes.flatMap(({ drawn_at }) => drawn_at ?? [])
  if (middles.length < boxes.length) return undefined
  const rects = middles.map(boxAt)
  if (rects.some((a, at) => rects.slice(at + 1).some((b) => overlap(a, b)))) return undefined
  loaded ??= loadAvoid()
  const avoid = await loaded
  if (avoid === undefined) return undefined
  for (const apart_px of aparts_px) {
    const routes = pointsOf(avoid, middles, edges, apart_px).map((points) => ({ points }))
    const layout = { middles, routes }
    if (!runsUnder(layout)) return withLabels(edges, layout)
  }
  return undefined
}

/** How far edges keep from boxes; the second is tried where boxes are close to each other. */
const aparts_px = [16, 4]

/**
 * Ends of edges: the middle of any side; an edge back to its own box turns around a corner of it.
 */
const [any_side, loop_out, loop_back] = [1, 2, 3] as const

let loaded: Promise<Avoid | undefined> | undefined

async function loadAvoid(): Promise<Avoid | undefined> {
  const library = await import('libavoid-js').catch(() => undefined)
  await library?.AvoidLib.load()
  return library?.AvoidLib.getInstance()
}

function pointsOf(
  avoid: Avoid,
  middles: readonly Point[],
  edges: readonly GraphEdge[],
  apart_px: number,
): Point[][] {
  const router = new avoid.Router(avoid.OrthogonalRouting)
  router.setRoutingParameter(avoid.shapeBufferDistance, apart_px)
  router.setRoutingParameter(avoid.idealNudgingDistance, Math.min(apart_px, 12))
  router.setRoutingParameter(avoid.segmentPenalty, 50)
  router.setRoutingOption(avoid.nudgeOrthogonalSegmentsConnectedToShapes, true)
  router.setRoutingOption(avoid.nudgeOrthogonalTouchingColinearSegments, true)
  const pins = [
    [any_side, 0.5, 0, avoid.ConnDirUp],
    [any_side, 0.5, 1, avoid.ConnDirDown],
    [any_side, 0, 0.5, avoid.ConnDirLeft],
    [any_side, 1, 0.5, avoid.ConnDirRight],
    [loop_out, 1, 0.25, avoid.ConnDirRight],
    [loop_back, 0.9, 0, avoid.ConnDirUp],
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
  const connectors = edges.map(({ from, to }) => {
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
