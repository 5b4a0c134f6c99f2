/**
 * Where the boxes and edges of a graph stand, and what stands on what: boxes on boxes, edges under
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

export function boxAt({ x, y }: Point): Rect {
  return { x, y, half_x: box_px.width / 2, half_y: box_px.height / 2 }
}

export function overlap(a: Rect, b: Rect): boolean {
  return Math.abs(a.x - b.x) < a.half_x + b.half_x && Math.abs(a.y - b.y) < a.half_y + b.half_y
}

/** A straight part of an edge. */
export type Part = readonly [from: Point, to: Point]

export function partsOf(points: readonly Point[]): Part[] {
  return points.slice(1).map((to, at) => [points[at] as Point, to])
}

/** The rectangle between two corners. */
export function rectBetween(a: Point, b: Point): Rect {
  return {
    ...{ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 },
    ...{ half_x: Math.abs(a.x - b.x) / 2, half_y: Math.abs(a.y - b.y) / 2 },
  }
}

/** To a tenth of a pixel, which keeps pictures short. */
export function tenth(px: number): number {
  return Math.round(px * 10) / 10
}

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
