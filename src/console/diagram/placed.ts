/**
 * Makes a drawing of a layout, and the layout of a plain grid for what is too large to be laid out.
 * Loads no library.
 */
import type { Drawing, Point } from './drawing.ts'
import type { Graph } from './graph.ts'
import { box_px, type Layout, type Route, tenth } from './layout.ts'
import { label_height_px, labelWidth } from './text.ts'

/** What of the whole graph is in `part`, with the upper left corner of the whole at 0, 0. */
export function placedOf(
  part: Graph,
  graph: Graph,
  { middles, routes }: Layout,
  places: Drawing['places'],
): Drawing {
  const { width, height } = box_px
  const extent = extentOf(graph, { middles, routes })
  const shifted = ({ x, y }: Point): Point => ({
    x: tenth(x - extent.left),
    y: tenth(y - extent.top),
  })
  const box_at = new Map(graph.boxes.map(({ node_id }, at) => [node_id, at]))
  const edgeKey = (of: Graph, { from, to, kind, label }: Graph['edges'][number]): string =>
    JSON.stringify([of.boxes[from]?.node_id, of.boxes[to]?.node_id, kind, label])
  const edge_at = new Map(graph.edges.map((edge, at) => [edgeKey(graph, edge), at]))
  return {
    places,
    boxes: part.boxes.map(({ drawn_at: _drawn_at, ...box }) => {
      const { x, y } = middles[box_at.get(box.node_id) as number] as Point
      return { ...box, ...shifted({ x: x - width / 2, y: y - height / 2 }), ...box_px }
    }),
    edges: part.edges.map((edge) => {
      const { points, label_at } = routes[edge_at.get(edgeKey(part, edge)) as number] as Route
      return {
        from_node_id: part.boxes[edge.from]?.node_id ?? '',
        to_node_id: part.boxes[edge.to]?.node_id ?? '',
        ...{ kind: edge.kind, label: edge.label, points: points.map(shifted) },
        ...(label_at === undefined ? {} : { label_at: shifted(label_at) }),
      }
    }),
    width: Math.ceil(extent.right - extent.left),
    height: Math.ceil(extent.bottom - extent.top),
  }
}

function extentOf(
  { edges }: Graph,
  { middles, routes }: Layout,
): { left: number; top: number; right: number; bottom: number } {
  const extent = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity }
  const take = ({ x, y }: Point, half_x: number, half_y: number): void => {
    extent.left = Math.min(extent.left, x - half_x)
    extent.top = Math.min(extent.top, y - half_y)
    extent.right = Math.max(extent.right, x + half_x)
    extent.bottom = Math.max(extent.bottom, y + half_y)
  }
  for (const middle of middles) take(middle, box_px.width / 2, box_px.height / 2)
  for (const [at, { points, label_at }] of routes.entries()) {
    for (const point of points) take(point, 0, 0)
    if (label_at === undefined) continue
    take(label_at, labelWidth(edges[at]?.label ?? '') / 2, label_height_px / 2)
  }
  return middles.length === 0 ? { left: 0, top: 0, right: 0, bottom: 0 } : extent
}

const gap_px = 90
const lanes = 15

export function gridOf({ boxes, edges }: Graph): Layout {
  const columns = Math.ceil(Math.sqrt(boxes.length))
  const [wide, tall] = [box_px.width + gap_px, box_px.height + gap_px]
  const middles = boxes.map((_box, at) => ({
    x: (at % columns) * wide,
    y: Math.floor(at / columns) * tall,
  }))
  const routes = edges.map(({ from, to, label }, at): Route => {
    const [a, b] = [middles[from] as Point, middles[to] as Point]
    // Edges of one gap are spread over its lanes.
    const lane_px = ((at % lanes) - (lanes - 1) / 2) * (gap_px / (lanes + 1))
    const below_y = a.y + tall / 2 + lane_px
    const above_y = b.y - tall / 2 + lane_px
    const beside_x = b.x - wide / 2 + lane_px
    const points = [
      { x: a.x + lane_px, y: a.y + box_px.height / 2 },
      { x: a.x + lane_px, y: below_y },
      { x: beside_x, y: below_y },
      { x: beside_x, y: above_y },
      { x: b.x + lane_px, y: above_y },
      { x: b.x + lane_px, y: b.y - box_px.height / 2 },
    ]
    return label === '' ? { points } : { points, label_at: { x: a.x + lane_px, y: below_y } }
  })
  return { middles, routes }
}
