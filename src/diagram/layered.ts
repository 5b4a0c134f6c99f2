/**
 * A layout in layers from the start downwards, by ELK: it orders the boxes, routes the ways at
 * right angles and keeps room for their labels. ELK never leads a way under a box.
 */
import ELK, { type ElkNode } from 'elkjs'
import type { Graph } from './graph.ts'
import { box_px, type Layout } from './layout.ts'
import { label_height_px, labelWidth } from './text.ts'

const options = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.edgeLabels.inline': 'true',
  'elk.spacing.nodeNode': '46',
  'elk.spacing.edgeNode': '22',
  'elk.spacing.edgeEdge': '12',
  'elk.layered.spacing.nodeNodeBetweenLayers': '46',
  'elk.layered.spacing.edgeNodeBetweenLayers': '22',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '12',
  // Only ways that close a cycle lead up.
  'elk.layered.cycleBreaking.strategy': 'DEPTH_FIRST',
}

/** Above so many ways a layout in seconds is worth more than few crossings. */
const careful_ways_max = 1_000
const quick_options = {
  'elk.layered.thoroughness': '1',
  'elk.layered.nodePlacement.strategy': 'SIMPLE',
  'elk.layered.crossingMinimization.greedySwitch.type': 'OFF',
}

export async function layeredOf({ boxes, ways }: Graph): Promise<Layout> {
  const elk = new ELK.default()
  const graph: ElkNode = {
    id: 'graph',
    layoutOptions: { ...options, ...(ways.length > careful_ways_max ? quick_options : {}) },
    children: boxes.map(({ kind }, at) => ({
      ...{ id: `${at}`, ...box_px },
      layoutOptions: kind === 'start' ? { 'elk.layered.layering.layerConstraint': 'FIRST' } : {},
    })),
    edges: ways.map(({ from, to, label }, at) => ({
      ...{ id: `way ${at}`, sources: [`${from}`], targets: [`${to}`] },
      labels: label === '' ? [] : [{ width: labelWidth(label), height: label_height_px }],
    })),
  }
  const out: ElkNode = await elk.layout(graph)
  return {
    middles: (out.children ?? []).map(({ x = 0, y = 0 }) => ({
      x: x + box_px.width / 2,
      y: y + box_px.height / 2,
    })),
    routes: (out.edges ?? []).map(({ sections = [], labels = [] }) => {
      const points = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
        startPoint,
        ...bendPoints,
        endPoint,
      ])
      const [label] = labels
      if (label === undefined) return { points }
      const { x = 0, y = 0, width = 0, height = 0 } = label
      return { points, label_at: { x: x + width / 2, y: y + height / 2 } }
    }),
  }
}
