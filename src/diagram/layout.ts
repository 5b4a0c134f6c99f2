/**
 * Where the boxes and ways of a graph stand, and what stands on what: boxes on boxes, ways under
 * boxes, labels on either.
 */
import type { Point } from './drawing.ts'

export const box_px = { width: 190, height: 58 } as const

export interface Layout {
  /** Of each box. */
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

export const halves = { half_x: box_px.width / 2, half_y: box_px.height / 2 } as const

export function overlap(a: Rect, b: Rect): boolean {
  return Math.abs(a.x - b.x) < a.half_x + b.half_x && Math.abs(a.y - b.y) < a.half_y + b.half_y
}

/** The rectangle between two corners. */
function rectBetween(a: Point, b: Point): Rect {
  return {
    ...{ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 },
    ...{ half_x: Math.abs(a.x - b.x) / 2, half_y: Math.abs(a.y - b.y) / 2 },
  }
}

/** A way may touch the edge of a box, as its ends do. */
const touch_px = 0.5

/** How many ways run under a box, at right angles or not at all. */
export function waysUnder({ middles, routes }: Layout): number {
  const boxes = middles.map(({ x, y }) => ({
    ...{ x, y, half_x: halves.half_x - touch_px, half_y: halves.half_y - touch_px },
  }))
  return routes.filter(({ points }) =>
    points.slice(1).some((point, at) => {
      const part = rectBetween(points[at] as Point, point)
      return boxes.some((box) => overlap(box, part))
    }),
  ).length
}
