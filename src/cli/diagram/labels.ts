/**
 * Places labels: each label takes the first of its candidate points at which it covers no box and
 * no other label, else the first candidate. A grid of squares keeps each lookup cheap.
 */
import type { Point } from './graph.ts'
import { box_px } from './layout.ts'

export const label_chars_max = 34
const label_px = { char: 6.2, around: 8, height: 16 } as const

/** The estimated width of a label in pixels. */
export function labelWidth(label: string): number {
  return label_px.around + label_px.char * Math.min(label.length, label_chars_max)
}

interface Rect {
  readonly x: number
  readonly y: number
  readonly half_x: number
  readonly half_y: number
}

const square_px = 100

export function newLabelPlacer(boxes: readonly Point[]): {
  take(places: readonly Point[], width: number): Point
} {
  const squares = new Map<string, Rect[]>()

  function squaresOf({ x, y, half_x, half_y }: Rect): string[] {
    const found: string[] = []
    const first = (at: number): number => Math.floor(at / square_px)
    for (let column = first(x - half_x); column <= first(x + half_x); column++) {
      for (let row = first(y - half_y); row <= first(y + half_y); row++) {
        found.push(`${column} ${row}`)
      }
    }
    return found
  }

  function add(rect: Rect): void {
    for (const square of squaresOf(rect)) {
      const rects = squares.get(square)
      if (rects === undefined) squares.set(square, [rect])
      else rects.push(rect)
    }
  }

  function isFree(rect: Rect): boolean {
    return squaresOf(rect).every((square) =>
      (squares.get(square) ?? []).every(
        ({ x, y, half_x, half_y }) =>
          Math.abs(x - rect.x) >= half_x + rect.half_x ||
          Math.abs(y - rect.y) >= half_y + rect.half_y,
      ),
    )
  }

  for (const { x, y } of boxes) {
    add({ x, y, half_x: box_px.width / 2, half_y: box_px.height / 2 })
  }
  return {
    take(places, width) {
      const rects = places.map(({ x, y }) => ({
        ...{ x, y, half_x: width / 2 },
        half_y: label_px.height / 2,
      }))
      const [first = { x: 0, y: 0, half_x: 0, half_y: 0 }] = rects
      const rect = rects.find(isFree) ?? first
      if (width > label_px.around) add(rect)
      return { x: rect.x, y: rect.y }
    },
  }
}
