/**
 * Drawings of processes: they have every node and every edge with what it says, no boxes overlap, no
 * edge runs under a box, the text of a definition cannot become markup, and what is too large, hangs
 * or dies becomes a plain grid.
 */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { draw } from '../src/console/diagram/draw.ts'
import type { Drawing, Edge, Point } from '../src/console/diagram/drawing.ts'
import { type DrawingSettings, type Drawn, newDrawings } from '../src/console/diagram/drawings.ts'
import { graphOf } from '../src/console/diagram/graph.ts'
import { mermaidOf } from '../src/console/diagram/mermaid.ts'
import { type Pictured, svgOf } from '../src/console/diagram/svg.ts'
import { fakeClock } from './support/fake-clock.ts'
import { pick } from './support/pick.ts'
import { go } from './support/processes.ts'
import { runs } from './support/short-run.ts'

interface NodeGiven {
  readonly id: string
  readonly obj_type: number
  readonly title?: string
  readonly x?: unknown
  readonly y?: unknown
  readonly condition?: { readonly logics?: object[]; readonly semaphors?: object[] }
}

const textOf = (nodes: readonly object[]): string => JSON.stringify({ scheme: { nodes } })

async function drawn(
  nodes: readonly object[],
  how: 'drawn' | 'laid_out' | 'grid' = 'drawn',
): Promise<Drawing> {
  const [drawing] = await draw({ definition_texts: [textOf(nodes)], how })
  return drawing as Drawing
}

const kinds = ['logic', 'start', 'end', 'escalation'] as const

function pictured(nodes: readonly NodeGiven[], more: Partial<Pictured> = {}): Pictured {
  const counts = { processing: 0, delayed: 0, failed: 0, processed: 0, canceled: 0 }
  return {
    ...{ conv_id: '1', title: 'Drawn', status: 'active', tasks: 0 },
    nodes: nodes.map(({ id, obj_type, title = '' }) => ({
      ...{ id, title, kind: kinds[obj_type] as (typeof kinds)[number], tasks: 0 },
      ...{ by_status: counts, to: [], waits_for: [] },
    })),
    ...more,
  }
}

/** What no drawing may have: boxes on each other, edges under boxes, places that are no numbers. */
function faultsOf({ boxes, edges, width, height }: Drawing): string[] {
  const faults: string[] = []
  const inside = ({ x, y }: Point): boolean => x >= 0 && y >= 0 && x <= width && y <= height
  for (const [at, a] of boxes.entries()) {
    if (!inside(a) || !inside({ x: a.x + a.width, y: a.y + a.height })) faults.push(a.node_id)
    for (const b of boxes.slice(at + 1)) {
      const apart = Math.abs(a.x - b.x) >= a.width || Math.abs(a.y - b.y) >= a.height
      if (!apart) faults.push(`${a.node_id} is on ${b.node_id}`)
    }
  }
  for (const { from_node_id, to_node_id, label, label_at, points } of edges) {
    const name = `${from_node_id} to ${to_node_id}`
    if (points.length < 2 || !points.every(inside)) faults.push(`${name} is nowhere`)
    if ((label === '') !== (label_at === undefined)) faults.push(`${name} has no place for words`)
    const on = points.slice(1).some((b, at) => {
      const { x, y } = label_at ?? b
      const a = points[at] as Point
      const beside = x < Math.min(a.x, b.x) - 1 || x > Math.max(a.x, b.x) + 1
      return !beside && y >= Math.min(a.y, b.y) - 1 && y <= Math.max(a.y, b.y) + 1
    })
    if (!on && from_node_id !== to_node_id) faults.push(`${name} has its words elsewhere`)
    for (const [at, b] of points.slice(1).entries()) {
      const a = points[at] as Point
      for (const { node_id, x, y, width: wide, height: tall } of boxes) {
        const beside = Math.max(a.x, b.x) <= x + 0.6 || Math.min(a.x, b.x) >= x + wide - 0.6
        const over = Math.max(a.y, b.y) <= y + 0.6 || Math.min(a.y, b.y) >= y + tall - 0.6
        if (!beside && !over) faults.push(`${name} runs under ${node_id}`)
      }
    }
  }
  return faults
}

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
  test(`draws a process called ${JSON.stringify(title.slice(0, 30))}`, async () => {
    const condition = {
      logics: [
        { type: title, to_node_id: 'b', err_node_id: 'b' },
        { type: 'go_if_const', to_node_id: 'a', param: title, fun: 'eq', const: title },
        go('b'),
      ],
      semaphors: [{ type: 'time', value: title, to_node_id: 'b' }],
    }
    const given = [
      { id: 'a', obj_type: 1, title, condition },
      { id: 'b', obj_type: 2, title },
    ]
    const svg = svgOf(pictured(given, { title, conv_id: title }), await drawn(given))
    for (const name of elementsOf(svg)) assert.ok(allowed.has(name), name)
    assert.doesNotMatch(svg, /[\u202e\u0000\u001b]/)
    assert.ok(svg.length < 15_000)
    const mermaid = mermaidOf({ ...pictured(given), definition_text: textOf(given) })
    const form = /^ {2}n\d(([([]+)"[^"<>]*"[)\]]+|( (-->|--x|-\.->)(\|"[^"<>]*"\|)? n\d))$/
    for (const line of mermaid.trim().split('\n').slice(1)) assert.match(line, form)
  })
}

const condition = (param: string, fun: string, constant: unknown, cast?: string): object => ({
  ...{ type: 'go_if_const', to_node_id: 'x' },
  conditions: [{ param, fun, const: constant, ...(cast === undefined ? {} : { cast }) }],
})
const both = [
  { param: 'a', fun: 'eq', const: '1', cast: 'number' },
  { param: '{{b.c}}', fun: 'not_eq', const: '{{d}}' },
]

/** [logics, semaphors, the edges from the node and what they say] */
type Says = readonly [logics: object[], semaphors: object[], edges: readonly string[]]
const says: readonly Says[] = [
  [[go('x')], [], ['go ']],
  [[condition('amount', 'more', '1000', 'number')], [], ['go amount > 1000']],
  [[condition('status', 'eq', 'paid')], [], ['go status = "paid"']],
  [[condition('status', 'eq', undefined)], [], ['go status = ""']],
  [[condition('n', 'less_or_eq', 1.5, 'number')], [], ['go n ≤ 1.5']],
  [[condition('ok', 'not_eq', 'true', 'boolean')], [], ['go ok ≠ true']],
  [[condition('id', 'regexp', '^[A-Z]+')], [], ['go id ~ ^[A-Z]+']],
  [[condition('list', 'eq', '[1,2]', 'array')], [], ['go list = [1,2]']],
  [[condition('a', 'like', 'b')], [], ['go a like "b"']],
  [
    [{ type: 'go_if_const', to_node_id: 'x', param: 'a', fun: 'eq', const: 'b', cast: 'string' }],
    [],
    ['go a = "b"'],
  ],
  [[{ type: 'go_if_const', to_node_id: 'x', conditions: both }], [], ['go a = 1 and b.c ≠ d']],
  [[{ type: 'go_if_const', to_node_id: 'x', conditions: [] }], [], ['go always']],
  [[condition('a', 'eq', 'b'), go('y')], [], ['go a = "b"', 'go else']],
  [[condition('a', 'eq', 'b'), condition('c', 'eq', 'd')], [], ['go a = "b" or c = "d"']],
  [[go('nowhere')], [], []],
  ...(
    [
      ['api', 'call fails'],
      ['api_code', 'code fails'],
      ['api_rpc', 'called task fails'],
      ['api_copy', 'create fails'],
      ['api_rpc_reply', 'reply fails'],
      ['api_callback', 'handler fails'],
      ['db_call', 'query fails'],
      ['git_call', 'handler fails'],
      ['set_param', 'set fails'],
      ['constructor', 'constructor fails'],
    ] as const
  ).map(([type, text]): Says => [[{ type, err_node_id: 'x' }], [], [`error ${text}`]]),
  [[{ type: 'api_copy', mode: 'modify', err_node_id: 'x' }], [], ['error modify fails']],
  [[], [{ type: 'time', value: 259_200, to_node_id: 'x' }], ['time after 3 days']],
  [[], [{ type: 'time', value: '90', to_node_id: 'x' }], ['time after 90 seconds']],
  [[], [{ type: 'time', value: 1, to_node_id: 'x' }], ['time after 1 second']],
  [[], [{ type: 'time', value: '{{due}}', to_node_id: 'x' }], ['time at {{due}}']],
  [[], [{ type: 'count', value: 100, esc_node_id: 'x' }], ['time over 100 tasks']],
  [
    [],
    [
      { type: 'time', value: 60, to_node_id: 'x' },
      { type: 'count', value: '1', esc_node_id: 'x' },
    ],
    ['time after 1 minute or over 1 task'],
  ],
]

for (const [logics, semaphors, expected] of says) {
  test(`edges of ${JSON.stringify([...logics, ...semaphors])} say ${expected}`, () => {
    const nodes = [
      { id: 's', obj_type: 1, condition: { logics, semaphors } },
      { id: 'x' },
      { id: 'y' },
    ]
    const { edges } = graphOf(textOf(nodes))
    assert.deepEqual(
      edges.map(({ kind, label }) => `${kind} ${label}`),
      expected,
    )
  })
}

test('a picture has every node with its shape, its tasks and its edges', async () => {
  const given = [
    { id: 's', obj_type: 1, title: 'Begin', condition: { logics: [go('w')] } },
    {
      id: 'w',
      obj_type: 0,
      title: 'Wait',
      condition: {
        logics: [
          { type: 'api_callback' },
          { ...condition('paid', 'eq', 'x'.repeat(80)), to_node_id: 'e' },
          { type: 'api_copy', err_node_id: 'x' },
          go('w'),
        ],
        semaphors: [{ type: 'time', value: 86_400, to_node_id: 'x' }],
      },
    },
    { id: 'x', obj_type: 3, title: 'Trouble', condition: { logics: [go('e')] } },
    { id: 'e', obj_type: 2, title: '' },
  ]
  const drawing = await drawn(given)
  assert.deepEqual(pick(drawing.boxes, 'title', 'kind', 'does'), [
    ['Begin', 'start', ''],
    ['Wait', 'logic', 'callback, create a task, timer'],
    ['Trouble', 'escalation', ''],
    ['e', 'end', ''],
  ])
  const ends = ({ from_node_id, to_node_id, kind, label }: Edge): string =>
    `${from_node_id} ${to_node_id} ${kind} ${label}`
  assert.deepEqual(drawing.edges.map(ends), [
    's w go ',
    `w e go paid = "${'x'.repeat(80)}"`,
    'w x error create fails',
    'w w go else',
    'w x time after 1 day',
    'x e go ',
  ])
  const process = pictured(given, { tasks: 1_234 })
  const nodes = process.nodes.map((node) => ({ ...node, tasks: node.id === 'w' ? 1_234 : 0 }))
  const svg = svgOf({ ...process, nodes }, drawing)
  elementsOf(svg)
  for (const text of [
    ...['>Begin<', '>1234<', '>after 1 day<', 'process 1, active, 1234 tasks'],
    ...[`>paid = &quot;${'x'.repeat(25)}…<`, `<title>paid = &quot;${'x'.repeat(80)}&quot;<`],
  ]) {
    assert.ok(svg.includes(text), text)
  }
  assert.equal(svg.match(/class="edge /g)?.length, drawing.edges.length)
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
  const where = there ? 'there' : 'in layers'
  test(`nodes at ${x} ${y} and ${other_x} ${other_y} are drawn ${where}`, async () => {
    const given = [
      { id: 'a', obj_type: 1, x, y, condition: { logics: [go('b')] } },
      { id: 'b', obj_type: 2, x: other_x, y: other_y },
    ]
    for (const how of ['drawn', 'laid_out'] as const) {
      const drawing = await drawn(given, how)
      const [a, b] = drawing.boxes as readonly Point[] as readonly [Point, Point]
      const apart = [b.x - a.x, b.y - a.y]
      assert.equal(drawing.places, there ? how : 'laid_out')
      if (there && how === 'drawn')
        assert.deepEqual(apart, [+`${other_x}` - +`${x}`, +`${other_y}` - +`${y}`])
      else assert.equal(apart[0], 0)
      assert.deepEqual(faultsOf(drawing), [])
    }
  })
}

test('a place is read whatever its digits are', () => {
  const text = '{"scheme":{"nodes":[{"id":"a","x":600.0,"y":1.00000000000000000001}]}}'
  assert.deepEqual(graphOf(text).boxes[0]?.drawn_at, { x: 600, y: 1 })
})

test('the layers lead down from the start, and only edges that close a cycle lead up', async () => {
  const given = [
    { id: 'last', obj_type: 2 },
    { id: 'loop', obj_type: 0, condition: { logics: [go('work')] } },
    { id: 'work', obj_type: 0, condition: { logics: [go('loop'), go('last')] } },
    { id: 'start', obj_type: 1, condition: { logics: [go('work'), go('last')] } },
  ]
  const { boxes } = await drawn(given)
  const [last, loop, work, start] = boxes.map(({ y }) => y) as [number, number, number, number]
  assert.ok(start < work && work < loop && loop <= last)
})

const graph = fc.integer({ min: 1, max: 25 }).chain((count) =>
  fc
    .tuple(
      fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1), fc.nat(2)), { maxLength: 60 }),
      fc.shuffledSubarray([...Array(count + 10).keys()], { minLength: count, maxLength: count }),
    )
    .map(([edges, cells]) =>
      Array.from({ length: count }, (_, at) => {
        const leads = (kind: number) => edges.filter(([from, , of]) => from === at && of === kind)
        return {
          ...{ id: `n${at}`, obj_type: at === 0 ? 1 : 0 },
          ...{
            x: ((cells[at] as number) % 6) * 230,
            y: Math.floor((cells[at] as number) / 6) * 110,
          },
          condition: {
            logics: [
              ...leads(0).map(([, to]) => ({
                ...condition('amount', 'eq', to),
                to_node_id: `n${to}`,
              })),
              ...leads(1).map(([, to]) => ({ type: 'api', err_node_id: `n${to}` })),
            ],
            semaphors: leads(2).map(([, to]) => ({
              type: 'time',
              value: 60,
              to_node_id: `n${to}`,
            })),
          },
        }
      }),
    ),
)

test('no edge of any graph runs under a box, and no boxes overlap', async () => {
  await fc.assert(
    fc.asyncProperty(graph, fc.constantFrom('drawn', 'laid_out', 'grid'), async (given, how) => {
      const drawing = await drawn(given, how)
      assert.deepEqual(faultsOf(drawing), [])
      assert.doesNotMatch(svgOf(pictured(given), drawing), /NaN|Infinity|undefined/)
    }),
    { numRuns: runs(25) },
  )
})

/** Every definition of the folder, wherever it is in its files. */
function definitionsIn(folder: string): [name: string, nodes: NodeGiven[]][] {
  const found: [string, NodeGiven[]][] = []
  const look = (name: string, value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const nodes = (value as { scheme?: { nodes?: unknown } }).scheme?.nodes
    if (Array.isArray(nodes)) found.push([name, nodes as NodeGiven[]])
    else for (const [key, member] of Object.entries(value)) look(`${name} ${key}`, member)
  }
  const url = new URL(`../${folder}/`, import.meta.url)
  for (const file of readdirSync(url, { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.json')) look(file, JSON.parse(readFileSync(new URL(file, url), 'utf8')))
  }
  return found
}

/** [folder, how its definitions are drawn] */
const folders = [
  ['src/examples', ['drawn', 'laid_out']],
  ['test/vectors', ['drawn']],
] as const

for (const [folder, edges] of folders) {
  test(`no edge of a definition of ${folder} runs under a box`, async () => {
    const found = new Map(definitionsIn(folder).map((one) => [textOf(one[1]), one]))
    for (const [name, nodes] of found.values()) {
      for (const how of edges) {
        const drawing = await drawn(nodes, how)
        assert.deepEqual(faultsOf(drawing), [], name)
        if (folder === 'src/examples') assert.equal(drawing.places, how, name)
      }
    }
    assert.ok(found.size >= 10, `${found.size} definitions`)
  })
}

const version = (hash: string, nodes: readonly object[] = [{ id: 's', obj_type: 1 }]): Drawn => ({
  ...{ conv_id: '1', hash, definition_text: textOf(nodes) },
})

/** In place of a thread that draws: it answers at once with an empty drawing, hangs or dies. */
const scripts = {
  answers: `const { parentPort, workerData } = require('node:worker_threads')
    const places = workerData.how
    parentPort.postMessage([{ places, boxes: [], edges: [], width: 0, height: 0 }])`,
  hangs: 'setInterval(() => {}, 1e6)',
  dies: 'process.exit(1)',
  throws: `throw new Error('broken')`,
  fills: `const all = []; for (;;) all.push(new Array(1e5).fill(all.length))`,
} as const

function stage(threads: readonly (keyof typeof scripts)[], more: Partial<DrawingSettings> = {}) {
  const clock = fakeClock(0)
  let started = 0
  const start = () => {
    const name = threads[started++] ?? 'answers'
    if (name === 'hangs') setImmediate(() => clock.advance(10_000))
    return { script: scripts[name], options: { eval: true } }
  }
  const drawings = newDrawings({ clock, start, ...more })
  return { drawings, started: () => started }
}

/** [what the threads do, what becomes of the drawing] */
const threads: [(keyof typeof scripts)[], string][] = [
  [['answers'], 'drawn'],
  [['hangs'], 'grid'],
  [['dies'], 'grid'],
  [['throws'], 'grid'],
  [['fills'], 'grid'],
  [['dies', 'throws'], 'Error: broken'],
]

for (const [given, expected] of threads) {
  test(`a thread that ${given.join(', then one that ')} gives ${expected}`, async () => {
    const { drawings, started } = stage(given, { heap_mb: 16 })
    const found = await drawings.drawingOf(version('a')).then(({ places }) => places, String)
    assert.equal(found, expected)
    assert.equal(started(), expected === 'drawn' ? 1 : 2)
    // What failed is not kept, and the next thread is a new one.
    if (expected.startsWith('Error')) await drawings.drawingOf(version('a'))
    assert.equal((await drawings.drawingOf(version('b'))).places, 'drawn')
    await drawings.close()
  })
}

test('a version is drawn once, for all that want it, and the oldest drawings are forgotten', async () => {
  const { drawings, started } = stage([], { kept_parts_max: 2 })
  const steps: [string, boolean, threads: number][] = [
    ['a', false, 1],
    ['a', false, 1],
    ['a', true, 2],
    ['a', false, 2],
    ['b', false, 3],
    ['a', false, 3],
    ['a', true, 4],
    ['b', false, 5],
  ]
  for (const [hash, laid_out, expected] of steps) {
    const options = { laid_out }
    await Promise.all([1, 2].map(() => drawings.drawingOf(version(hash), options)))
    assert.equal(started(), expected, hash)
  }
  await drawings.close()
})

test('who does not wait for a drawing has its boxes in a grid until it is there', async () => {
  const { drawings } = stage([])
  const nodes = [
    { id: 's', obj_type: 1, condition: { logics: [go('e')] } },
    { id: 'e', obj_type: 2 },
  ]
  for (const [ms, expected] of [
    [0, true],
    [Infinity, false],
    [0, false],
  ] as const) {
    const { drawing, is_drawing } = await drawings.drawingWithin(ms, version('a', nodes))
    assert.deepEqual([is_drawing, is_drawing ? drawing.boxes.length : 2], [expected, 2])
  }
  await drawings.close()
})

test('too many that wait are refused, and a closed one draws nothing', async () => {
  const { drawings } = stage(['hangs'], { waiting_max: 2, clock: fakeClock(0) })
  const wanted = ['a', 'b', 'c', 'a'].map((hash) =>
    drawings.drawingOf(version(hash)).then(
      () => 'drawn',
      ({ code }) => code,
    ),
  )
  assert.equal(await wanted[2], 'overloaded')
  await drawings.close()
  const closed = 'shutting_down'
  assert.deepEqual(await Promise.all(wanted), [closed, closed, 'overloaded', closed])
  await assert.rejects(drawings.drawingOf(version('d')), { code: closed })
})

test('2,000 nodes with 10,000 edges come as a grid, and the event loop goes on', async () => {
  const nodes = Array.from({ length: 2_000 }, (_, at) => ({
    ...{ id: `n${at}`, obj_type: at === 0 ? 1 : 0, x: at, y: 0 },
    condition: { logics: [1, 2, 3, 4, 5].map((step) => go(`n${(at * step * 7 + step) % 2_000}`)) },
  }))
  const drawings = newDrawings()
  let turns = 0
  const turn = setInterval(() => turns++, 1)
  const drawing = await drawings.drawingOf(version('a', nodes)).finally(() => clearInterval(turn))
  const small = [{ id: 's', obj_type: 1, condition: { logics: [go('s')] } }]
  const both = await drawings.comparedOf(version('b'), version('c', small))
  assert.deepEqual([both.from.edges.length, both.to.edges.length], [0, 1])
  await drawings.close()
  const edges = new Set(
    nodes.flatMap(({ id, condition }) => condition.logics.map((edge) => id + edge.to_node_id)),
  )
  assert.deepEqual([drawing.boxes.length, drawing.edges.length], [2_000, edges.size])
  assert.equal(new Set(drawing.boxes.map(({ y }) => y)).size, 45)
  assert.ok(turns > 5, `${turns} turns`)
})

/** [places of two versions: node, x, y; how both are drawn] */
type Placed = readonly (readonly [id: string, x?: number, y?: number])[]
const [a, b] = [
  ['a', 0, 0],
  ['b', 0, 200],
] as const
const versions: readonly (readonly [from: Placed, to: Placed, Drawing['places']])[] = [
  [[a, b], [a, ['b', 300, 200]], 'drawn'],
  [[a, b], [a, ['c', 300, 200]], 'drawn'],
  [[a, b], [a, ['c', 0, 200]], 'laid_out'],
  [[a, ['b']], [a, ['c', 0, 200]], 'laid_out'],
  [[], [a], 'drawn'],
]

for (const [from, to, places] of versions) {
  test(`versions with ${JSON.stringify([from, to])} are ${places} side by side`, async () => {
    const texts = [from, to].map((nodes, newer) =>
      textOf(
        nodes.map(([id, x, y], at) => {
          const wanted = {
            ...condition('n', 'more', newer, 'number'),
            to_node_id: nodes.at(-1)?.[0],
          }
          return { id, x, y, obj_type: at === 0 ? 1 : 0, condition: { logics: [wanted] } }
        }),
      ),
    )
    const both = await draw({ definition_texts: texts, how: 'drawn' })
    const [older, newer] = both as [Drawing, Drawing]
    for (const [at, drawing] of both.entries()) {
      assert.equal(drawing.places, places)
      assert.deepEqual(
        pick(drawing.boxes, 'node_id'),
        [from, to][at]?.map(([id]) => id),
      )
      assert.deepEqual(
        new Set(drawing.edges.map(({ label }) => label)),
        new Set(drawing.boxes.length > 0 ? [`n > "${at}"`.replaceAll('"', '')] : []),
      )
      assert.deepEqual(faultsOf(drawing), [])
    }
    assert.deepEqual([older.width, older.height], [newer.width, newer.height])
    for (const { node_id, x, y } of newer.boxes) {
      const same = older.boxes.find((box) => box.node_id === node_id)
      if (same !== undefined) assert.deepEqual([same.x, same.y], [x, y])
    }
  })
}
