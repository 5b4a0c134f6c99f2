/**
 * A process as an SVG file: a box per node, shaped by its kind, with its task count in a badge, and
 * an arrow per edge with the logic that leads along it (solid for go, dashed for errors, dotted for
 * times and counts). The file has no script and no link; definition text enters it escaped.
 */
import { type Box, type Drawn, type Picture, type Point, pictureOf } from './graph.ts'
import { label_chars_max, labelWidth } from './labels.ts'
import { box_px, layoutOf } from './layout.ts'
import { type Route, round, routesOf } from './route.ts'

const margin_px = 48
const head_px = 56
const { width, height } = box_px

const style = [
  'text{font:13px system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1f2933}',
  '.head{font-size:18px;font-weight:600}.sub{font-size:11px;fill:#7b8794}',
  '.node{stroke-width:1.5}.start{fill:#e3f9e5;stroke:#3f9142}.logic{fill:#fff;stroke:#627d98}',
  '.escalation{fill:#fff3c4;stroke:#cb6e17}.end{fill:#eef2f7;stroke:#52606d}',
  '.inner{fill:none;stroke:#9aa5b1;stroke-width:1}',
  '.way{fill:none;stroke:#829ab1;stroke-width:1.5}.way.error{stroke:#d64545;stroke-dasharray:6 4}',
  '.way.time{stroke:#cb6e17;stroke-dasharray:1.5 4;stroke-linecap:round;stroke-width:2}',
  '.label{font-size:11px;fill:#486581}.under{fill:#fff;fill-opacity:.92}',
  '.label.error{fill:#ba2525}.label.time{fill:#a45a11}',
  '.badge{fill:#2680c2}.count{font-size:11px;font-weight:600;fill:#fff}',
].join('')

const way_colors = { go: '#829ab1', error: '#d64545', time: '#cb6e17' } as const

export function svgOf(process: Drawn): string {
  const picture = pictureOf(process)
  const layout = layoutOf(picture)
  const routes = routesOf(picture.arrows, layout)
  const { left, top, right, bottom } = extentOf(layout.boxes, routes)
  const wide = Math.max(right - left, 360)
  const tall = bottom - top
  const size = `width="${wide}" height="${tall}"`
  const { conv_id, title, status, tasks } = process
  const about = `process ${conv_id}, ${status}, ${counted(tasks)}`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="${left} ${top} ${wide} ${tall}">`,
    `<title>${escaped(title, 200)}</title>`,
    `<style>${style}</style>`,
    `<defs>${Object.entries(way_colors).map(headOf).join('')}</defs>`,
    `<rect x="${left}" y="${top}" ${size} fill="#fff"/>`,
    `<text class="head" x="${left + 24}" y="${top + 34}">${escaped(title, 80)}</text>`,
    `<text class="sub" x="${left + 24}" y="${top + 52}">${escaped(about, 160)}</text>`,
    ...waysOf(picture, routes),
    ...picture.boxes.map((box, at) => boxOf(box, layout.boxes[at] as Point)),
    ...labelsOf(picture, routes),
    '</svg>',
    '',
  ].join('\n')
}

function extentOf(
  boxes: readonly Point[],
  routes: readonly Route[],
): { left: number; top: number; right: number; bottom: number } {
  const extent = { left: 0, top: 0, right: 0, bottom: 0 }
  const first = boxes[0] ?? { x: 0, y: 0 }
  Object.assign(extent, { left: first.x, right: first.x, top: first.y, bottom: first.y })
  const take = ({ x, y }: Point, half_x: number, half_y: number): void => {
    extent.left = Math.min(extent.left, x - half_x)
    extent.right = Math.max(extent.right, x + half_x)
    extent.top = Math.min(extent.top, y - half_y)
    extent.bottom = Math.max(extent.bottom, y + half_y)
  }
  for (const box of boxes) take(box, width / 2, height / 2)
  for (const { label_at } of routes) take(label_at, 60, 10)
  return {
    left: Math.floor(extent.left - margin_px),
    top: Math.floor(extent.top - margin_px - head_px),
    right: Math.ceil(extent.right + margin_px),
    bottom: Math.ceil(extent.bottom + margin_px),
  }
}

function headOf([way, color]: readonly [string, string]): string {
  const frame = 'viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8"'
  const units = 'markerUnits="userSpaceOnUse" orient="auto"'
  const tip = `<path d="M0 0L8 4L0 8z" fill="${color}"/>`
  return `<marker id="to-${way}" ${frame} ${units}>${tip}</marker>`
}

function waysOf({ arrows }: Picture, routes: readonly Route[]): string[] {
  return arrows.map(({ way }, at) => {
    const { path } = routes[at] as Route
    return `<path class="way ${way}" d="${path}" marker-end="url(#to-${way})"/>`
  })
}

function labelsOf({ arrows }: Picture, routes: readonly Route[]): string[] {
  return arrows.flatMap(({ label, way }, at) => {
    if (label === '') return []
    const { label_at } = routes[at] as Route
    const { x, y } = label_at
    const wide = labelWidth(label)
    const under = rectOf('under', x - wide / 2, y - 8, round(wide), 16, 3)
    return [under + textAt(`label ${way}`, x, y + 4, label, label_chars_max)]
  })
}

function boxOf({ title, kind, tasks, does }: Box, middle: Point): string {
  const { x, y } = middle
  const lines = linesOf(title)
  const rows = lines.length + (does === '' ? 0 : 1)
  const first_y = y + 4.5 - (rows - 1) * 8
  const texts = lines.map((line, at) => textAt('', x, first_y + at * 16, line, line_chars))
  if (does !== '') texts.push(textAt('sub', x, first_y + lines.length * 16, does, 32))
  const badge = tasks === 0 ? '' : badgeOf(tasks, x + width / 2 - 10, y - height / 2)
  const name = `<title>${escaped(`${title}: ${counted(tasks)}`, 200)}</title>`
  return `<g>${name}${shapeOf(kind, middle)}${texts.join('')}${badge}</g>`
}

/** A start is a pill, an end a pill with two outlines, an escalation a hexagon. */
function shapeOf(kind: Box['kind'], { x, y }: Point): string {
  const [left, top] = [x - width / 2, y - height / 2]
  if (kind === 'escalation') {
    const [right, bottom] = [left + width, top + height]
    const tips = [
      [left + 18, top],
      [right - 18, top],
      [right, y],
      [right - 18, bottom],
      [left + 18, bottom],
      [left, y],
    ]
    const points = tips.map(([px = 0, py = 0]) => `${round(px)},${round(py)}`).join(' ')
    return `<polygon class="node escalation" points="${points}"/>`
  }
  const radius = kind === 'logic' ? 8 : height / 2
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
  return `<rect class="${name}" x="${round(x)}" y="${round(y)}" ${size}/>`
}

function badgeOf(tasks: number, x: number, y: number): string {
  const text = String(tasks)
  const wide = Math.max(22, 12 + text.length * 7)
  return rectOf('badge', x - wide / 2, y - 11, wide, 22, 11) + textAt('count', x, y + 4, text, 20)
}

function textAt(name: string, x: number, y: number, text: string, chars_max: number): string {
  const of = name === '' ? '' : ` class="${name}"`
  const at = `x="${round(x)}" y="${round(y)}" text-anchor="middle"`
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

function counted(tasks: number): string {
  return `${tasks} ${tasks === 1 ? 'task' : 'tasks'}`
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
  const chars = [...text.slice(0, 4 * chars_max).toWellFormed()]
  const cut =
    chars.length > chars_max ? `${chars.slice(0, chars_max - 1).join('')}…` : chars.join('')
  return cut
    .replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu, ' ')
    .replace(/[&<>"']/g, (char) => escapes[char] as string)
}
