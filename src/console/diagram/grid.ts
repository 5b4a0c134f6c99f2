/**
 * A plain grid, in the order of the definition, for what is too large to be laid out: each edge
 * leads through the lanes between rows and columns, so under no box. Linear in boxes and edges.
 */
import type { Point } from './drawing.ts'
import type { Graph } from './graph.ts'
import { box_px, type Layout, type Route } from './layout.ts'

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
