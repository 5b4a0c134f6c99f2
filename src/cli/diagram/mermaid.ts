/**
 * A process as a Mermaid flowchart: a box per node with its task count, an arrow per edge. Nodes
 * are numbered, because their ids may be any text.
 */
import type { ProcessDetails } from '../../engine/process-api.ts'

type Node = ProcessDetails['nodes'][number]

const shapes: Readonly<Record<Node['kind'], readonly [open: string, close: string]>> = {
  start: ['([', '])'],
  logic: ['[', ']'],
  escalation: ['{{', '}}'],
  end: ['(((', ')))'],
}

export function mermaidOf(process: Pick<ProcessDetails, 'nodes'>): string {
  const numbers = new Map(process.nodes.map((node, at) => [node.id, `n${at}`]))
  const lines = ['flowchart TD']
  for (const node of process.nodes) {
    const [open, close] = shapes[node.kind]
    lines.push(`  ${numbers.get(node.id)}${open}"${labelOf(node)}"${close}`)
  }
  for (const node of process.nodes) {
    for (const to of node.to) {
      const target = numbers.get(to)
      if (target !== undefined) lines.push(`  ${numbers.get(node.id)} --> ${target}`)
    }
  }
  return `${lines.join('\n')}\n`
}

function labelOf(node: Node): string {
  const title = escaped(node.title === '' ? node.id : node.title)
  if (node.tasks === 0) return title
  return `${title}<br/>${node.tasks} ${node.tasks === 1 ? 'task' : 'tasks'}`
}

/** Characters that could be markup become Mermaid's `#number;` escapes. */
function escaped(text: string): string {
  return text.replace(/[^\p{L}\p{N} .,:!?/()+-]/gu, (char) => `#${char.codePointAt(0)};`)
}
