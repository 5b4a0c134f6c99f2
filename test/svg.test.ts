/**
 * Diagrams of processes: they have every node and every edge, boxes do not overlap, and the text of
 * a definition cannot become markup.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Drawn, pictureOf } from '../src/cli/diagram/graph.ts'
import { box_px, layoutOf } from '../src/cli/diagram/layout.ts'
import { svgOf } from '../src/cli/diagram/svg.ts'
import { runs } from './support/short-run.ts'

interface NodeGiven {
  readonly id: string
  readonly obj_type: number
  readonly title?: string
  readonly x?: unknown
  readonly y?: unknown
  readonly condition?: { readonly logics?: object[]; readonly semaphors?: object[] }
}

const kinds = ['logic', 'start', 'end', 'escalation'] as const

function drawn(nodes: readonly NodeGiven[], more: Partial<Drawn> = {}): Drawn {
  return {
    conv_id: '1',
    title: 'Drawn',
    status: 'active',
    tasks: 0,
    nodes: nodes.map(({ id, obj_type, title = '' }) => ({
      id,
      title,
      kind: kinds[obj_type] as (typeof kinds)[number],
      tasks: 0,
      by_status: { processing: 0, delayed: 0, failed: 0, processed: 0, canceled: 0 },
      to: [],
      waits_for: [],
    })),
    definition_text: JSON.stringify({ scheme: { nodes } }),
    ...more,
  }
}

const go = (to_node_id: string) => ({ type: 'go', to_node_id })

/** Names of elements and attributes, in order; throws where the text is no well-formed XML. */
function elementsOf(svg: string): string[] {
  const names: string[] = []
  const open: string[] = []
  const body = svg.replace(/^<\?xml [^?]*\?>/, '')
  const tag = /<(\/?)([a-z]+)((?: [a-zA-Z-]+="[^"<]*")*)(\/?)>|([^<]+)/gy
  let at = 0
  for (let found = tag.exec(body); found !== null; found = tag.exec(body)) {
    const [whole, closes, name = '', attributes = '', alone, text] = found
    at += whole.length
    if (text !== undefined) assert.doesNotMatch(text, /&(?!(amp|lt|gt|quot|#39);)|\p{Co}/u)
    else if (closes) assert.equal(open.pop(), name)
    else {
      names.push(name, ...[...attributes.matchAll(/ ([a-zA-Z-]+)=/g)].map((one) => String(one[1])))
      if (!alone) open.push(name)
    }
  }
  assert.equal(at, body.length, `no XML at ${body.slice(at, at + 40)}`)
  assert.deepEqual(open, [])
  return names
}

const allowed = new Set([
  ...['svg', 'title', 'style', 'defs', 'marker', 'path', 'rect', 'polygon', 'text', 'g'],
  ...['xmlns', 'width', 'height', 'viewBox', 'id', 'refX', 'refY', 'markerWidth', 'markerHeight'],
  ...['markerUnits', 'orient', 'd', 'fill', 'class', 'x', 'y', 'rx', 'points', 'text-anchor'],
  'marker-end',
])

const hostile = [
  '</text><script>alert(1)</script>',
  '"><image href="http://x/"/>',
  "' onload='alert(1)",
  '&#60;script&#62; &amp; &',
  ']]><!-- <![CDATA[',
  '\u0000\u0008\u001b[31m\u202egnp\ufffe',
  'x'.repeat(10_000),
  '👩‍👩‍👧‍👦'.repeat(50),
]

for (const title of hostile) {
  test(`draws a process called ${JSON.stringify(title.slice(0, 30))}`, () => {
    const condition = {
      logics: [{ type: title, to_node_id: 'b', err_node_id: 'b' }, go('b')],
      semaphors: [{ type: 'time', value: title, to_node_id: 'b' }],
    }
    const given = [
      { id: 'a', obj_type: 1, title, condition },
      { id: 'b', obj_type: 2, title },
    ]
    const svg = svgOf(drawn(given, { title, conv_id: title }))
    for (const name of elementsOf(svg)) assert.ok(allowed.has(name), name)
    assert.doesNotMatch(svg, /[\u202e\u0000\u001b]/)
    assert.ok(svg.length < 10_000)
  })
}

test('a diagram has every node with its shape, its tasks and its edges', () => {
  const given = [
    { id: 's', obj_type: 1, title: 'Begin', condition: { logics: [go('w')] } },
    {
      id: 'w',
      obj_type: 0,
      title: 'Wait',
      condition: {
        logics: [
          { type: 'api_callback' },
          { type: 'go_if_const', to_node_id: 'e' },
          { type: 'api_copy', err_node_id: 'x' },
          go('w'),
        ],
        semaphors: [
          { type: 'time', value: 86_400, to_node_id: 'x' },
          { type: 'time', value: '90', to_node_id: 'e' },
          { type: 'count', value: 5, esc_node_id: 'x' },
        ],
      },
    },
    { id: 'x', obj_type: 3, title: 'Trouble', condition: { logics: [go('e')] } },
    { id: 'e', obj_type: 2, title: '' },
  ]
  const process = drawn(given)
  const nodes = process.nodes.map((node) => ({ ...node, tasks: node.id === 'w' ? 1_234 : 0 }))
  const { boxes, arrows } = pictureOf({ ...process, nodes })
  assert.deepEqual(
    boxes.map(({ title, kind, does }) => [title, kind, does]),
    [
      ['Begin', 'start', ''],
      ['Wait', 'logic', 'api_callback, api_copy'],
      ['Trouble', 'escalation', ''],
      ['e', 'end', ''],
    ],
  )
  assert.deepEqual(
    arrows.map(({ from, to, label, way }) => [from, to, label, way]),
    [
      [0, 1, '', 'go'],
      [1, 3, 'go_if_const', 'go'],
      [1, 2, 'api_copy error', 'error'],
      [1, 1, '', 'go'],
      [1, 2, 'after 1 day, 5 tasks', 'time'],
      [1, 3, 'after 90 seconds', 'time'],
      [2, 3, '', 'go'],
    ],
  )
  const svg = svgOf({ ...process, nodes, tasks: 1_234 })
  elementsOf(svg)
  for (const text of [
    '>Begin<',
    '>1234<',
    '>after 1 day, 5 tasks<',
    'process 1, active, 1234 tasks',
  ]) {
    assert.ok(svg.includes(text), text)
  }
  assert.equal(svg.match(/class="way /g)?.length, arrows.length)
})

// [places of two nodes, whether they are drawn there]
const places: [x: unknown, y: unknown, other_x: unknown, other_y: unknown, there: boolean][] = [
  [0, 0, 300, 200, true],
  [-500, 0, 0, 1_000, true],
  [0, 0, undefined, 0, false],
  [0, 0, '300', 200, false],
  [0, 0, 1e300, 200, false],
  [100, 100, 110, 100, false],
]

for (const [x, y, other_x, other_y, there] of places) {
  test(`nodes at ${x} ${y} and ${other_x} ${other_y} are drawn ${there ? 'there' : 'in layers'}`, () => {
    const given = [
      { id: 'a', obj_type: 1, x, y, condition: { logics: [go('b')] } },
      { id: 'b', obj_type: 2, x: other_x, y: other_y },
    ]
    const { boxes } = layoutOf(pictureOf(drawn(given)))
    const expected = [
      { x, y },
      { x: other_x, y: other_y },
    ]
    if (there) assert.deepEqual(boxes, expected)
    else assert.equal(boxes[0]?.x, boxes[1]?.x)
  })
}

test('the layers lead down from the start, and only edges that close a cycle lead up', () => {
  const given = [
    { id: 'last', obj_type: 2 },
    { id: 'loop', obj_type: 0, condition: { logics: [go('work')] } },
    { id: 'work', obj_type: 0, condition: { logics: [go('loop'), go('last')] } },
    { id: 'start', obj_type: 1, condition: { logics: [go('work'), go('last')] } },
  ]
  const { boxes, bends } = layoutOf(pictureOf(drawn(given)))
  const [last, loop, work, start] = boxes.map(({ y }) => y) as [number, number, number, number]
  assert.ok(start < work && work < loop && loop <= last)
  assert.deepEqual(
    bends.map((one) => one.length),
    [0, 0, 0, 0, 1],
  )
})

const graph = fc.integer({ min: 1, max: 25 }).chain((count) =>
  fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), { maxLength: 60 }).map((ways) =>
    Array.from({ length: count }, (_, at) => ({
      id: `n${at}`,
      obj_type: at === 0 ? 1 : 0,
      condition: {
        logics: ways.filter(([from]) => from === at).map(([, to]) => go(`n${to}`)),
      },
    })),
  ),
)

test('boxes of any graph do not overlap, and every coordinate is a number', () => {
  fc.assert(
    fc.property(graph, (given) => {
      const process = drawn(given)
      const { boxes, bends } = layoutOf(pictureOf(process))
      for (const { x, y } of [...boxes, ...bends.flat()]) assert.ok(Number.isFinite(x + y))
      for (const [at, a] of boxes.entries()) {
        for (const b of boxes.slice(at + 1)) {
          const apart = Math.abs(a.x - b.x) >= box_px.width || Math.abs(a.y - b.y) >= box_px.height
          assert.ok(apart, `${JSON.stringify(a)} ${JSON.stringify(b)}`)
        }
      }
      assert.doesNotMatch(svgOf(process), /NaN|Infinity|undefined/)
    }),
    { numRuns: runs(200) },
  )
})

test('the largest process is drawn', () => {
  const given = Array.from({ length: 10_000 }, (_, at) => ({
    id: `n${at}`,
    obj_type: at === 0 ? 1 : 0,
    condition: { logics: [go(`n${(at * 7 + 1) % 10_000}`), go(`n${(at * 31) % 10_000}`)] },
  }))
  assert.equal(svgOf(drawn(given)).match(/class="node /g)?.length, 10_000)
})

const examples = new URL('../src/examples/', import.meta.url)

for (const file of readdirSync(examples)) {
  test(`the example ${file} has nodes that do not overlap`, () => {
    const text = readFileSync(new URL(file, examples), 'utf8')
    const all = JSON.parse(text) as
      | { scheme: { nodes: NodeGiven[] } }
      | { scheme: { nodes: NodeGiven[] } }[]
    for (const { scheme } of Array.isArray(all) ? all : [all]) {
      const picture = pictureOf(drawn(scheme.nodes))
      const expected = scheme.nodes.map(({ x, y }) => ({ x, y }))
      assert.deepEqual(layoutOf(picture).boxes, expected)
    }
  })
}
