/**
 * The positions of the boxes. They are taken from the definition if it gives every node one, and no
 * two boxes overlap there. Otherwise the layout is layered: the layer of a box is its longest path
 * from the start without cycles, an arrow over several layers gets a point in each, and each layer
 * is ordered and shifted so that arrows are short. Linear in the arrows, times a fixed number of
 * rounds.
 */
import type { Box, Picture, Point } from './graph.ts'

export const box_px = { width: 190, height: 58 } as const
const gap_px = { x: 46, y: 74, crossing: 26 } as const
/** The most points of long arrows; further ones are left out. */
const crossings_max = 20_000

export interface Layout {
  /** The center of each box. */
  readonly boxes: readonly Point[]
  /** For each arrow, its points in the layers that it crosses, from its start on. */
  readonly bends: readonly (readonly Point[])[]
}

export function layoutOf(picture: Picture): Layout {
  const drawn = givenPositions(picture.boxes)
  return drawn === undefined
    ? layeredLayout(picture)
    : { boxes: drawn, bends: picture.arrows.map(() => []) }
}

/** The positions in the definition; undefined where a box has none, or two would overlap. */
function givenPositions(boxes: readonly Box[]): Point[] | undefined {
  const { width, height } = box_px
  const taken = new Set<string>()
  const places: Point[] = []
  for (const { drawn_at } of boxes) {
    if (drawn_at === undefined) return undefined
    const [column, row] = [Math.round(drawn_at.x / width), Math.round(drawn_at.y / height)]
    if (taken.has(`${column} ${row}`)) return undefined
    taken.add(`${column} ${row}`)
    places.push(drawn_at)
  }
  return places
}

/** A box, or the point at which a long arrow crosses a layer. */
interface LayoutNode {
  readonly layer: number
  readonly half_px: number
  readonly up: LayoutNode[]
  readonly down: LayoutNode[]
  rank: number
  x: number
}

function layeredLayout({ boxes, arrows }: Picture): Layout {
  const layers_of = layersOf(boxes, arrows)
  const layers: LayoutNode[][] = []
  const add = (layer: number, half_px: number): LayoutNode => {
    const node: LayoutNode = { layer, half_px, up: [], down: [], rank: 0, x: 0 }
    layers[layer] ??= []
    const row = layers[layer] as LayoutNode[]
    node.rank = row.length
    row.push(node)
    return node
  }
  const nodes = boxes.map((_box, at) => add(layers_of[at] as number, box_px.width / 2))
  let crossings = 0
  const bends = arrows.map(({ from, to }): LayoutNode[] => {
    const [start, end] = [nodes[from] as LayoutNode, nodes[to] as LayoutNode]
    const [top, bottom] = start.layer <= end.layer ? [start, end] : [end, start]
    const between: LayoutNode[] = []
    let last = top
    for (let layer = top.layer + 1; layer < bottom.layer; layer++) {
      if (crossings++ > crossings_max) break
      const node = add(layer, 0)
      join(last, node)
      between.push(node)
      last = node
    }
    if (top !== bottom) join(last, bottom)
    return top === start ? between : between.reverse()
  })
  const rows = Array.from(layers, (row) => row ?? [])
  orderLayers(rows)
  spreadLayers(rows)
  const { height } = box_px
  const middle = ({ x, layer }: LayoutNode): Point => ({ x, y: layer * (height + gap_px.y) })
  return { boxes: nodes.map(middle), bends: bends.map((one) => one.map(middle)) }
}

function join(above: LayoutNode, below: LayoutNode): void {
  above.down.push(below)
  below.up.push(above)
}

/** The longest path from a start, over the arrows that close no cycle. */
function layersOf(boxes: readonly Box[], arrows: Picture['arrows']): number[] {
  const ways: number[][] = boxes.map(() => [])
  for (const { from, to } of arrows) if (from !== to) ways[from]?.push(to)
  const state: ('new' | 'open' | 'done')[] = boxes.map(() => 'new')
  const forward: number[][] = boxes.map(() => [])
  const finished: number[] = []
  const starts = boxes.flatMap(({ kind }, at) => (kind === 'start' ? [at] : []))
  for (const root of [...starts, ...boxes.keys()]) {
    if (state[root] !== 'new') continue
    const trail = [{ at: root, next: 0 }]
    state[root] = 'open'
    for (let top = trail.at(-1); top !== undefined; top = trail.at(-1)) {
      const to = ways[top.at]?.[top.next++]
      if (to === undefined) {
        state[top.at] = 'done'
        finished.push(top.at)
        trail.pop()
      } else if (state[to] !== 'open') {
        forward[top.at]?.push(to)
        if (state[to] === 'new') {
          state[to] = 'open'
          trail.push({ at: to, next: 0 })
        }
      }
    }
  }
  const layers: number[] = boxes.map(() => 0)
  for (const at of finished.reverse()) {
    for (const to of forward[at] ?? []) {
      layers[to] = Math.max(layers[to] as number, (layers[at] as number) + 1)
    }
  }
  return layers
}

const rounds = 8

/** Orders each layer by the mean rank of its neighbours, downwards and upwards in turn. */
function orderLayers(layers: readonly LayoutNode[][]): void {
  for (let round = 0; round < rounds; round++) {
    const down = round % 2 === 0
    for (const row of down ? layers : layers.toReversed()) {
      const wanted = new Map(
        row.map((node) => [node, mean(down ? node.up : node.down, 'rank') ?? node.rank]),
      )
      row.sort((a, b) => (wanted.get(a) as number) - (wanted.get(b) as number))
      for (const [rank, node] of row.entries()) node.rank = rank
    }
  }
}

/** Moves each node towards its neighbours as far as the order of its layer allows. */
function spreadLayers(layers: readonly LayoutNode[][]): void {
  for (const row of layers) placeRow(row, 'none')
  for (let round = 0; round < rounds; round++) {
    const down = round % 2 === 0
    for (const row of down ? layers : layers.toReversed()) placeRow(row, down ? 'up' : 'down')
  }
  for (const row of layers) placeRow(row, 'both')
}

function placeRow(row: readonly LayoutNode[], towards: 'none' | 'up' | 'down' | 'both'): void {
  const offsets: number[] = []
  let offset = 0
  for (const [at, node] of row.entries()) {
    const before = row[at - 1]
    if (before !== undefined) offset += before.half_px + node.half_px + gapOf(before, node)
    offsets.push(offset)
  }
  const wanted = row.map((node, at) => {
    if (towards === 'none') return -offset / 2
    const joined = towards === 'both' ? [...node.up, ...node.down] : node[towards]
    return (mean(joined, 'x') ?? node.x) - (offsets[at] as number)
  })
  for (const [at, x] of nearestAscending(wanted).entries()) {
    const node = row[at] as LayoutNode
    node.x = x + (offsets[at] as number)
  }
}

function gapOf(a: LayoutNode, b: LayoutNode): number {
  return a.half_px === 0 || b.half_px === 0 ? gap_px.crossing : gap_px.x
}

function mean(nodes: readonly LayoutNode[], of: 'rank' | 'x'): number | undefined {
  if (nodes.length === 0) return undefined
  return nodes.reduce((sum, node) => sum + node[of], 0) / nodes.length
}

/** The nearest ascending list (isotonic regression): descending runs share their mean. */
function nearestAscending(wanted: readonly number[]): number[] {
  const blocks: { sum: number; count: number }[] = []
  for (const value of wanted) {
    let block = { sum: value, count: 1 }
    for (let last = blocks.at(-1); last !== undefined; last = blocks.at(-1)) {
      if (last.sum / last.count <= block.sum / block.count) break
      block = { sum: block.sum + last.sum, count: block.count + last.count }
      blocks.pop()
    }
    blocks.push(block)
  }
  return blocks.flatMap(({ sum, count }) => Array<number>(count).fill(sum / count))
}
