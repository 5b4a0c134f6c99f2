/**
 * Draws definitions, in the thread of draw-worker.ts. Where all nodes have places the boxes keep
 * them, and only the edges are computed; else all is laid out. What is too large for either becomes
 * a grid. No edge runs under a box.
 */
import type { Drawing } from './drawing.ts'
import { graphOf, unionOf } from './graph.ts'
import { layeredOf } from './layered.ts'
import { gridOf, placedOf } from './placed.ts'
import { routedOf } from './routed.ts'

export interface DrawJob {
  /** One, or two versions of one process, whose drawings then have common nodes in one place. */
  readonly definition_texts: readonly string[]
  readonly how: 'drawn' | 'laid_out' | 'grid'
}

/** More take too long, or too much memory. */
const laid_out_edges_max = 2_000

export async function draw({ definition_texts, how }: DrawJob): Promise<Drawing[]> {
  const graphs = definition_texts.map(graphOf)
  const [first = { boxes: [], edges: [] }, second] = graphs
  const graph = second === undefined ? first : unionOf(first, second)
  const drawn = how === 'drawn' ? await routedOf(graph) : undefined
  const is_small = graph.edges.length <= laid_out_edges_max
  const layout = drawn ?? (how !== 'grid' && is_small ? await layeredOf(graph) : gridOf(graph))
  return graphs.map((part) => placedOf(part, graph, layout, drawn ? 'drawn' : 'laid_out'))
}
