/**
 * A layout in layers from the start downwards, by ELK: it orders the boxes, routes the edges at
 * right angles and keeps room for their labels. ELK never leads an edge under a box.
 */
import ELK, { type ElkLabel, type ElkNode, type ElkShape } from 'elkjs'
import type { Point } from './drawing.ts'
import type { Graph } from './graph.ts'
import { box_px, type Layout, withLabels } from './layout.ts'
import { label_height_px, labelWidth } from './text.ts'

const options = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.spacing.nodeNode': '46',
  'elk.spacing.edgeNode': '22',
  'elk.spacing.edgeEdge': '12',
  'elk.layered.spacing.nodeNodeBetweenLayers': '46',
  'elk.layered.spacing.edgeNodeBetweenLayers': '22',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '12',
  // Only edges that close a cycle lead up.
  'elk.layered.cycleBreaking.strategy': 'DEPTH_FIRST',
}

/** Above so many edges a layout in seconds is worth more than few crossings. */
const careful_edges_max = 300
const quick_options = {
  'elk.layered.thoroughness': '1',
  'elk.layered.nodePlacement.strategy': 'SIMPLE',
  'elk.layered.crossingMinimization.greedySwitch.type': 'OFF',
}

const elk = new ELK.default()

export async function layeredOf({ boxes, edges }: Graph): Promise<Layout> {
  const is_careful = edges.length <= careful_edges_max
  const graph: ElkNode = {
    id: 'graph',
    layoutOptions: { ...options, ...(is_careful ? {} : quick_options) },
    children: boxes.map(({ kind }, at) => ({
      ...{ id: `${at}`, ...box_px },
      layoutOptions: kind === 'start' ? { 'elk.layered.layering.layerConstraint': 'FIRST' } : {},
    })),
    edges: edges.map(({ from, to, label }, at) => ({
      ...{ id: `edge ${at}`, sources: [`${from}`], targets: [`${to}`] },
      labels: label === '' || !is_careful ? [] : [labelOf(label)],
    })),
  }
  const out: ElkNode = await elk.layout(graph)
  const layout = {
    middles: (out.children ?? []).map(middleOf),
    routes: (out.edges ?? []).map(({ sections = [], labels = [] }) => {
      const points = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
        startPoint,
        ...bendPoints,
        endPoint,
      ])
      const [label] = labels
      return label === undefined ? { points } : { points, label_at: middleOf(label) }
    }),
  }
  return is_careful ? layout : withLabels(edges, layout)
}

function middleOf({ x = 0, y = 0, width = 0, height = 0 }: ElkShape): Point {
  return { x: x + width / 2, y: y + height / 2 }
}

/** On its edge, in room that ELK keeps for it. */
function labelOf(text: string): ElkLabel {
  const layoutOptions = { 'elk.edgeLabels.inline': 'true', 'elk.edgeLabels.placement': 'CENTER' }
  return { text, width: labelWidth(text), height: label_height_px, layoutOptions }
}
