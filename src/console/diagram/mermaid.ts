/**
 * A process as a Mermaid flowchart: a box per node with its task count, an arrow per edge with what
 * it says. Nodes are numbered, because their ids may be any text.
 */
import type { ProcessDetails } from '../../engine/api/process-api.ts'
import type { Box, Edge } from './drawing.ts'
import { graphOf } from './graph.ts'
import { cut, label_chars_max, tasksText } from './text.ts'

const shapes: Readonly<Record<Box['kind'], readonly [open: string, close: string]>> = {
  start: ['([', '])'],
  logic: ['[', ']'],
  escalation: ['{{', '}}'],
  end: ['(((', ')))'],
}

const arrows: Readonly<Record<Edge['kind'], string>> = { go: '-->', error: '--x', time: '-.->' }

export function mermaidOf(process: Pick<ProcessDetails, 'nodes' | 'definition_text'>): string {
  const { boxes, edges } = graphOf(process.definition_text)
  const counts = new Map(process.nodes.map(({ id, tasks }) => [id, tasks]))
  const lines = ['flowchart TD']
  for (const [at, { node_id, title, kind }] of boxes.entries()) {
    const [open, close] = shapes[kind]
    const tasks = counts.get(node_id) ?? 0
    const count = tasks === 0 ? '' : `<br/>${tasksText(tasks)}`
    lines.push(`  n${at}${open}"${escaped(title)}${count}"${close}`)
  }
  for (const { from, to, kind, label } of edges) {
    const says = label === '' ? '' : `|"${escaped(cut(label, label_chars_max))}"|`
    lines.push(`  n${from} ${arrows[kind]}${says} n${to}`)
  }
  return `${lines.join('\n')}\n`
}

/** Characters that could be markup become Mermaid's `#number;` escapes. */
function escaped(text: string): string {
  return text.replace(/[^\p{L}\p{N} .,:!?/()+-]/gu, (char) => `#${char.codePointAt(0)};`)
}
