/**
 * A process as an SVG file: a box per node, shaped by its kind, with its task count in a badge, and
 * an arrow per edge with when it is taken (solid for go, dashed for errors, dotted for times and
 * counts). The file has no script and no link; definition text enters it escaped.
 */
import type { ProcessDetails } from '../../engine/api/process-api.ts'
import type { Box, Drawing, Edge } from './drawing.ts'
import { tenth } from './layout.ts'
import { cut, label_chars_max, label_height_px, labelWidth, tasksText } from './text.ts'

const margin_px = 48
const head_px = 56

const style = [
  'text{font:13px system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1f2933}',
  '.head{font-size:18px;font-weight:600}.sub{font-size:11px;fill:#7b8794}',
  '.node{stroke-width:1.5}.start{fill:#e3f9e5;stroke:#3f9142}.logic{fill:#fff;stroke:#627d98}',
  '.escalation{fill:#fff3c4;stroke:#cb6e17}.end{fill:#eef2f7;stroke:#52606d}',
  '.inner{fill:none;stroke:#9aa5b1;stroke-width:1}',
  '.edge{fill:none;stroke:#829ab1;stroke-width:1.5}',
  '.edge.error{stroke:#d64545;stroke-dasharray:6 4}',
  '.edge.time{stroke:#cb6e17;stroke-dasharray:1.5 4;stroke-linecap:round;stroke-width:2}',
  '.label{font-size:11px;fill:#486581}.under{fill:#fff;fill-opacity:.92}',
  '.label.error{fill:#ba2525}.label.time{fill:#a45a11}',
  '.badge{fill:#2680c2}.count{font-size:11px;font-weight:600;fill:#fff}',
].join('')

const edge_colors = { go: '#829ab1', error: '#d64545', time: '#cb6e17' } as const

/** What a file shows of a process beside its drawing. */
export type Pictured = Pick<ProcessDetails, 'conv_id' | 'title' | 'status' | 'tasks' | 'nodes'>

export function svgOf(process: Pictured, { boxes, edges, ...drawing }: Drawing): string {
  const { conv_id, title, status, tasks } = process
  const [left, top] = [-margin_px, -margin_px - head_px]
  const wide = Math.max(drawing.width + 2 * margin_px, 360)
  const tall = drawing.height + 2 * margin_px + head_px
  const size = `width="${wide}" height="${tall}"`
  const about = `process ${conv_id}, ${status}, ${tasksText(tasks)}`
  const counts = new Map(process.nodes.map((node) => [node.id, node.tasks]))
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="${left} ${top} ${wide} ${tall}">`,
    `<title>${escaped(title, 200)}</title>`,
    `<style>${style}</style>`,
    `<defs>${Object.entries(edge_colors).map(headOf).join('')}</defs>`,
    `<rect x="${left}" y="${top}" ${size} fill="#fff"/>`,
    `<text class="head" x="${left + 24}" y="${top + 34}">${escaped(title, 80)}</text>`,
    `<text class="sub" x="${left + 24}" y="${top + 52}">${escaped(about, 160)}</text>`,
    ...edges.map(edgeOf),
    ...boxes.map((box) => boxOf(box, counts.get(box.node_id) ?? 0)),
    ...edges.flatMap(labelOf),
    '</svg>',
    '',
  ].join('\n')
}

function headOf([edge, color]: readonly [string, string]): string {
  const frame = 'viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8"'
  const units = 'markerUnits="userSpaceOnUse" orient="auto"'
  const tip = `<path d="M0 0L8 4L0 8z" fill="${color}"/>`
  return `<marker id="to-${edge}" ${frame} ${units}>${tip}</marker>`
}

function edgeOf({ kind, points }: Edge): string {
  const path = points.map(({ x, y }) => `${x} ${y}`).join('L')
  return `<path class="edge ${kind}" d="M${path}" marker-end="url(#to-${kind})"/>`
}

function labelOf({ kind, label, label_at }: Edge): string[] {
  if (label_at === undefined) return []
  const { x, y } = label_at
  const wide = labelWidth(label)
  const tall = label_height_px
  const under = rectOf('under', x - wide / 2, y - tall / 2, tenth(wide), tall, 3)
  const text = textAt(`label ${kind}`, x, y + 4, label, label_chars_max)
  return [`<g><title>${escaped(label, label.length)}</title>${under}${text}</g>`]
}

function boxOf(box: Box, tasks: number): string {
  const { title, does } = box
  const x = box.x + box.width / 2
  const y = box.y + box.height / 2
  const lines = linesOf(title)
  const rows = lines.length + (does === '' ? 0 : 1)
  const first_y = y + 4.5 - (rows - 1) * 8
  const texts = lines.map((line, at) => textAt('', x, first_y + at * 16, line, line_chars))
  if (does !== '') texts.push(textAt('sub', x, first_y + lines.length * 16, does, 32))
  const badge = tasks === 0 ? '' : badgeOf(tasks, box.x + box.width - 10, box.y)
  const name = `<title>${escaped(`${title}: ${tasksText(tasks)}`, 220)}</title>`
  return `<g>${name}${shapeOf(box)}${texts.join('')}${badge}</g>`
}

/** Edges end on the straight sides of a box: its corners are no rounder than that allows. */
const tip_px = 10

/** A start is a pill, an end a pill with two outlines, an escalation a hexagon. */
function shapeOf({ kind, x: left, y: top, width, height }: Box): string {
  if (kind === 'escalation') {
    const [right, bottom] = [left + width, top + height]
    const tips = [
      [left + tip_px, top],
      [right - tip_px, top],
      [right, top + height / 2],
      [right - tip_px, bottom],
      [left + tip_px, bottom],
      [left, top + height / 2],
    ]
    const points = tips.map(([px = 0, py = 0]) => `${tenth(px)},${tenth(py)}`).join(' ')
    return `<polygon class="node escalation" points="${points}"/>`
  }
  const radius = kind === 'logic' ? 8 : 20
  const outer = rectOf(`node ${kind}`, left, top, width, height, radius)
  if (kind !== 'end') return outer
  return outer + rectOf('inner', left + 4, top + 4, width - 8, height - 8, radius - 4)
}

function rectOf(
  name: string,
  x: number,
  y: number,
  wide: number,
  tall: number,
  radius: number,
): string {
  const size = `width="${wide}" height="${tall}" rx="${radius}"`
  return `<rect class="${name}" x="${tenth(x)}" y="${tenth(y)}" ${size}/>`
}

function badgeOf(tasks: number, x: number, y: number): string {
  const text = String(tasks)
  const wide = Math.max(22, 12 + text.length * 7)
  return rectOf('badge', x - wide / 2, y - 11, wide, 22, 11) + textAt('count', x, y + 4, text, 20)
}

function textAt(name: string, x: number, y: number, text: string, chars_max: number): string {
  const of = name === '' ? '' : ` class="${name}"`
  const at = `x="${tenth(x)}" y="${tenth(y)}" text-anchor="middle"`
  return `<text${of} ${at}>${escaped(text, chars_max)}</text>`
}

const line_chars = 24

/** One line, or two, broken at a space if possible. */
function linesOf(title: string): string[] {
  if (title.length <= line_chars) return [title]
  const space = title.lastIndexOf(' ', line_chars)
  const end = space > line_chars / 3 ? space : line_chars
  return [title.slice(0, end), title.slice(end).trim()]
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text for XML, cut to length, without characters that XML forbids or that change direction. */
function escaped(text: string, chars_max: number): string {
  return cut(text.toWellFormed(), chars_max)
    .replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu, ' ')
    .replace(/[&<>"']/g, (char) => escapes[char] as string)
}
