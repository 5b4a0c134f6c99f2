/**
 * Compiling a process: the graph of a valid definition, the text of every mistake and warning, and
 * that no input makes the compiler throw.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { docOfText } from '../src/codec/json.ts'
import { limitsWith } from '../src/core/limits.ts'
import type { JsonObject } from '../src/core/model.ts'
import { compileProcess } from '../src/process/compile-process.ts'
import { steps_max } from '../src/process/definition-limits.ts'
import { compiledText, contextOf, now_ms, unreadableContext } from './support/logic-context.ts'
import { pick } from './support/pick.ts'
import { runs } from './support/short-run.ts'

const by_handler = '(a handler in a program that embeds the engine can run it)'

const limits = limitsWith()
const examples = new URL('../src/examples/', import.meta.url)
const example_files = readdirSync(examples).filter((file) => file.endsWith('.conv.json'))

test('there are examples', () => assert.ok(example_files.length >= 3))

/** The processes of the examples: a file holds one, or a list. */
const originals = example_files.flatMap((file): [file: string, text: string][] => {
  const read: unknown = JSON.parse(readFileSync(new URL(file, examples), 'utf8'))
  return [read].flat().map((definition) => [file, JSON.stringify(definition)])
})

for (const [at, [file, text]] of originals.entries()) {
  test(`${file} (${at}) compiles with no mistakes and no warnings`, () => {
    const { graph, mistakes, warnings } = compiledText(text)
    assert.deepEqual({ mistakes, warnings }, { mistakes: [], warnings: [] })
    assert.ok(graph?.nodes.has(graph.start_id))
  })
}

const to_end = [{ type: 'go', to_node_id: 'end' }]
const end = { id: 'end', obj_type: 2, title: 'End' }

/** start → middle → end, with `middle` as given. */
function processWith(middle: object, head: object = {}): JsonObject {
  const nodes = [
    {
      id: 'start',
      obj_type: 1,
      title: 'Start',
      condition: { logics: [{ type: 'go', to_node_id: 'mid' }] },
    },
    { id: 'mid', obj_type: 0, title: 'Middle', ...middle },
    end,
  ]
  return {
    obj_type: 1,
    obj_id: 1234,
    title: 'T',
    conv_type: 'process',
    status: 'active',
    ...head,
    scheme: { nodes },
  } as JsonObject
}

const mid = (says: string): string => `nodes[1] "Middle": ${says}`

const good = processWith({ condition: { logics: to_end } })

test('a valid definition compiles to its graph', () => {
  const { graph, mistakes } = compileProcess(
    processWith(
      {
        obj_type: 3,
        condition: {
          logics: [{ type: 'api_callback' }, ...to_end],
          semaphors: [{ type: 'time', value: 60, dimension: 'min', to_node_id: 'end' }],
        },
      },
      { unknown: 1 },
    ),
    limits,
  )
  assert.deepEqual(mistakes, [])
  assert.equal(graph?.conv_id, '1234')
  assert.equal(graph.title, 'T')
  assert.equal(graph.status, 'active')
  assert.equal(graph.start_id, 'start')
  const middle = graph.nodes.get('mid')
  assert.equal(middle?.kind, 'escalation')
  assert.equal(middle.title, 'Middle')
  assert.deepEqual(pick(middle.logics, 'type', 'waits_for'), [
    ['api_callback', 'callback'],
    ['go', undefined],
  ])
  assert.deepEqual(middle.time_semaphors[0]?.due(unreadableContext()), { due_ms: now_ms + 60_000 })
})

const start = (id: string) => ({ id, obj_type: 1, condition: { logics: to_end } })
const nodes = (list: unknown): JsonObject => ({ ...good, scheme: { nodes: list } }) as JsonObject
const logics = (...list: unknown[]): JsonObject =>
  processWith({ condition: { logics: [...list, ...to_end] } })
const timer = (semaphor: object): JsonObject =>
  processWith({
    condition: { logics: to_end, semaphors: [{ type: 'time', to_node_id: 'end', ...semaphor }] },
  })

type Mistaken = [definition: unknown, mistakes: string[]]

/** Of the process itself. */
const head = (members: object, ...says: string[]): Mistaken => [{ ...good, ...members }, says]
const param = (given: unknown, says: string): Mistaken =>
  head({ params: [given] }, `params[0]: ${says}`)
const middle = (members: object, ...says: string[]): Mistaken => [processWith(members), says]
const logic = (given: unknown, says: string): Mistaken => [logics(given), [mid(says)]]
const semaphor = (given: object, says: string): Mistaken => [timer(given), [mid(says)]]
const time = (given: object, says: string): Mistaken =>
  semaphor(given, `semaphors[0] time: ${says}`)

const no_start = 'scheme: there is no start (a node with obj_type 1)'
const lost_middle = 'nodes[0] "Start": to_node_id "mid" is no node'
const mistakes: Mistaken[] = [
  head({ obj_type: 0 }, 'process: obj_type is 0, 1 was expected'),
  head({ conv_type: 'folder' }, 'process: conv_type "folder" is neither "process" nor "state"'),
  head({ title: 5 }, 'process: title is 5, a text was expected'),
  head({ status: 1 }, 'process: status 1 is neither "active" nor "paused"'),
  ...[1.5, '', 'a\nb'].map((obj_id) => {
    const expected = 'a whole number or a text of 1 to 64 characters was expected'
    return head({ obj_id }, `process: obj_id is ${JSON.stringify(obj_id)}, ${expected}`)
  }),
  head({ scheme: [] }, 'scheme: nodes was expected to be an array', no_start),
  [nodes([end]), [no_start]],
  [nodes([{ id: 's', obj_type: 1 }]), ['nodes[0] "s": the start leads nowhere']],
  [nodes([start('s'), end, end]), ['nodes[2] "End": id "end" is that of nodes[1] too']],
  [
    nodes([start('s'), start('t'), end]),
    ['scheme: one start was expected, there are 2: nodes[0] "s", nodes[1] "t"'],
  ],
  middle({ id: 'other' }, lost_middle),
  ...['', '𝒳'.repeat(65)].map((id) =>
    middle({ id }, mid(`id is "${id}", a text of 1 to 64 characters was expected`), lost_middle),
  ),
  middle({ obj_type: 5 }, mid('obj_type is 5, one of 0 1 2 3 4 was expected')),
  middle({ obj_type: '05' }, mid('obj_type is "05", one of 0 1 2 3 4 was expected')),
  middle(
    { obj_type: { toString: 1, valueOf: 1 } },
    mid('obj_type is an object, one of 0 1 2 3 4 was expected'),
  ),
  middle({ title: [] }, 'nodes[1] "mid": title is an array, a text was expected'),
  middle({ condition: 1 }, mid('condition is 1, an object was expected')),
  middle({ condition: { logics: {} } }, mid('logics is an object, an array was expected')),
  middle({ options: '{"save' }, mid('options is "{\\"save", an object was expected')),
  logic(null, 'logics[0] is null, an object was expected'),
  logic({ type: 'go' }, 'to_node_id nothing is no node'),
  logic({ type: 'set_param', err_node_id: 'x' }, 'err_node_id "x" is no node'),
  ...['git_call', 'db_call', 'api_form'].map((type) =>
    logic({ type }, `logics[0] type "${type}" is not run here ${by_handler}`),
  ),
  ...['x', 'toString', 'API_COPY'].map((type) =>
    logic({ type }, `logics[0] type "${type}" is no logic of this release`),
  ),
  logic(
    { type: 'go_if_const', to_node_id: 'end', conditions: {} },
    'logics[0] go_if_const: conditions is an object, an array was expected',
  ),
  semaphor({ type: 'count', value: 5, esc_node_id: 'x' }, 'esc_node_id "x" is no node'),
  ...[0, -1, 1.5, 'x', '', null].map((value) => {
    const says = `semaphors[0] count: value ${JSON.stringify(value)} is no number of tasks`
    return semaphor({ type: 'count', value, esc_node_id: 'end' }, says)
  }),
  semaphor({ type: 'size', value: 5 }, 'semaphors[0] type "size" is neither "time" nor "count"'),
  semaphor({ value: 5, to_node_id: 'x' }, 'to_node_id "x" is no node'),
  time({}, 'value nothing is neither seconds nor a template'),
  time({ value: -1 }, 'value -1 is no number of seconds from 0'),
  time({ value: '1.5' }, 'value "1.5" is neither seconds nor a template'),
  time({ value: '{{a' }, 'value "{{a" is neither seconds nor a template'),
  head({ params: { a: 1 } }, 'params: is an object, an array was expected'),
  param(1, 'is 1, an object was expected'),
  param({ name: '' }, 'name is "", a text was expected'),
  param(
    { name: 'a', type: 'date' },
    '"a" type "date" is none of string number boolean array object',
  ),
  param({ name: 'a', flags: 'input' }, 'flags is "input", an array was expected'),
  param(
    { name: 'a', regex: '(' },
    '"a" regex "(": the pattern cannot be run: missing ")" of the group at character 1',
  ),
]

for (const [definition, expected] of mistakes) {
  test(`reports: ${expected.join(' | ').slice(0, 90)}`, () => {
    const compiled = compileProcess(definition as JsonObject, limits)
    assert.deepEqual(compiled.mistakes, expected)
    assert.equal(compiled.graph, undefined)
  })
}

test('too many nodes are refused without parsing them', () => {
  const many = Array.from({ length: 10_001 }, (_, at) => ({ id: `n${at}`, obj_type: 2 }))
  assert.equal(
    compileProcess(nodes(many), limits).mistakes[0],
    'scheme: 10001 nodes are more than 10000',
  )
})

const warnings: [definition: JsonObject, warnings: string[]][] = [
  [good, []],
  [{ ...good, obj_type: '1', params: {}, status: '', conv_type: null }, []],
  [{ ...good, obj_type: null, params: null }, []],
  [processWith({ obj_type: '0', condition: { logics: to_end } }), []],
  ...['deleted', 'toString'].map((status): [JsonObject, string[]] => [
    { ...good, status },
    [`process: status "${status}" is neither "active" nor "paused": it is stored as paused`],
  ]),
  ...[undefined, null, ''].map((esc_node_id): [JsonObject, string[]] => [
    timer({ type: 'count', value: 5, esc_node_id }),
    [mid('semaphors[0] count: has no esc_node_id and does nothing')],
  ]),
  [
    logics({ type: 'set_param', extra: { a: 1 }, extra_type: { a: 'integer' } }),
    [
      mid('logics[0] set_param: extra_type["a"] "integer" is none of ') +
        'string number boolean array object: nothing is converted',
    ],
  ],
  [logics({ type: 'api_callback' }), [mid('waits for a callback without a time limit')]],
  [
    processWith({}),
    [
      mid('a task that no logic sends on rests here without a time limit'),
      'nodes[2] "End": nothing leads here from the start',
    ],
  ],
  ...[undefined, 'sec', '', 'min', 'day'].map((dimension): [JsonObject, string[]] => [
    timer({ value: 86400, dimension }),
    [],
  ]),
  [
    timer({ value: '1', dimension: 'day' }),
    [
      mid('semaphors[0] time: value "1" counts seconds, ') +
        'dimension "day" is only how editors show it',
    ],
  ],
  [
    nodes([start('s'), end, { id: 'lost', obj_type: 2 }]),
    ['nodes[2] "lost": nothing leads here from the start'],
  ],
  ...[[], null, undefined].map((conditions): [JsonObject, string[]] => [
    logics({ type: 'go_if_const', to_node_id: 'end', conditions }),
    [mid('logics[0] go_if_const: has no conditions and always moves on')],
  ]),
]

/** start → mid → end, with the logic in a node `lost` that the given parts of `mid` may lead to. */
function lostWith(
  logic: object,
  mid: { logics?: object[]; semaphors?: object[] } = {},
): JsonObject {
  const { logics: more = [], semaphors = [] } = mid
  return nodes([
    { id: 's', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'mid' }] } },
    { id: 'mid', obj_type: 0, condition: { logics: [...more, ...to_end], semaphors } },
    end,
    { id: 'lost', obj_type: 0, condition: { logics: [logic, ...to_end] } },
  ])
}

const erl = { type: 'api_code', lang: 'erl', src: '-module(node).' }
/** [a logic that is not run here, the text that says so] */
const not_run: [logic: object, text: string][] = [
  [{ type: 'git_call' }, `type "git_call" is not run here ${by_handler}`],
  [{ type: 'db_call', err_node_id: 'mid' }, `type "db_call" is not run here ${by_handler}`],
  [{ type: 'api_form' }, `type "api_form" is not run here ${by_handler}`],
  [{ type: 'api_git' }, `type "api_git" is not run here ${by_handler}`],
  [{ type: 'x' }, 'type "x" is no logic of this release'],
  [erl, `api_code: lang "erl" is not run here, only "js" is ${by_handler}`],
]

for (const [logic, text] of not_run) {
  test(`${JSON.stringify(logic)} is a mistake where a task can reach it, else a warning`, () => {
    const place = `nodes[3] "lost"`
    const compiled = compileProcess(lostWith(logic), limits)
    assert.deepEqual(compiled.mistakes, [])
    assert.deepEqual(compiled.warnings, [
      `${place}: logics[0] ${text}, and a task that is moved here fails`,
      `${place}: nothing leads here from the start`,
    ])
    const { type } = logic as { type: string }
    assert.deepEqual(compiled.graph?.missing_handlers, type === 'x' ? [] : [type])
    const edges: Parameters<typeof lostWith>[1][] = [
      { logics: [{ type: 'go', to_node_id: 'lost' }] },
      { logics: [{ type: 'go_if_const', to_node_id: 'lost', conditions: [] }] },
      { logics: [{ type: 'set_param', err_node_id: 'lost' }] },
      { semaphors: [{ type: 'time', value: 60, to_node_id: 'lost' }] },
      { semaphors: [{ type: 'count', value: 60, esc_node_id: 'lost' }] },
    ]
    for (const edge of edges) {
      const reached = compileProcess(lostWith(logic, edge), limits)
      assert.deepEqual(reached.mistakes, [`${place}: logics[0] ${text}`], JSON.stringify(edge))
    }
  })
}

/** [a node with a mistake, the text that says so] */
const broken: [node: object, text: string][] = [
  [{ condition: { logics: [{ type: 'go', to_node_id: null }] } }, 'to_node_id null is no node'],
  [{ condition: { logics: [{ type: 'go' }] } }, 'to_node_id nothing is no node'],
  [{ condition: { logics: [{ type: 'go', to_node_id: 'x' }] } }, 'to_node_id "x" is no node'],
  [{ condition: { logics: {} } }, 'logics is an object, an array was expected'],
  [
    { condition: { logics: to_end, semaphors: [{ type: 'time', to_node_id: 'end' }] } },
    'semaphors[0] time: value nothing is neither seconds nor a template',
  ],
  [{ condition: 5 }, 'condition is 5, an object was expected'],
  [
    { condition: { logics: [{ type: 'api_copy' }] } },
    'logics[0] api_copy: conv_id is nothing, the id of a process was expected',
  ],
]

for (const [node, text] of broken) {
  test(`${JSON.stringify(node)} is a mistake where a task can reach it, else a warning`, () => {
    const withLast = (to: string) =>
      nodes([
        { id: 's', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: to }] } },
        end,
        { id: 'last', obj_type: 0, ...node },
      ])
    const { graph, mistakes: named, warnings: told } = compileProcess(withLast('end'), limits)
    const place = 'nodes[2] "last"'
    assert.deepEqual(named, [])
    assert.ok(told.includes(`${place}: ${text}, and a task that is moved here fails`), `${told}`)
    const { logics = [], time_semaphors } = graph?.nodes.get('last') ?? {}
    assert.deepEqual(time_semaphors, [])
    const command = logics[0]?.run(unreadableContext())
    assert.deepEqual(command?.command === 'fail' && command.tag, 'bad_definition')
    assert.deepEqual(compileProcess(withLast('last'), limits).mistakes, [`${place}: ${text}`])
  })
}

test('a handler of the embedder lifts the refusal, but not that of an unknown type', () => {
  for (const [logic, text] of not_run) {
    const reached = lostWith(logic, { logics: [{ type: 'go', to_node_id: 'lost' }] })
    const { mistakes: named } = compileProcess(reached, limits, () => true)
    assert.deepEqual(named, text.endsWith('release') ? [`nodes[3] "lost": logics[0] ${text}`] : [])
  }
})

test('nodes that only unreachable nodes lead to are not reached', () => {
  const lost = lostWith({ type: 'git_call', err_node_id: 'lost' }) as {
    scheme: { nodes: object[] }
  }
  const condition = { logics: [{ type: 'go', to_node_id: 'lost' }] }
  lost.scheme.nodes.push({ id: 'before', obj_type: 0, condition })
  assert.deepEqual(compileProcess(lost as unknown as JsonObject, limits).mistakes, [])
})

for (const [definition, expected] of warnings) {
  test(`warns: ${expected.join(' | ')}`, () => {
    const compiled = compileProcess(definition, limits)
    assert.deepEqual(compiled.mistakes, [])
    assert.deepEqual(compiled.warnings, expected)
  })
}

const api = { type: 'api', url: 'https://example.com' }
const callback = { type: 'api_callback' }
const goTo = (to_node_id: string) => ({ type: 'go', to_node_id })
const asks = { type: 'go_if_const', to_node_id: 'wait', conditions: [] }
const delay = { type: 'time', value: 30, to_node_id: 'wait' }

// [logics of `mid`, semaphors of `mid`, logics of `wait`, the node with the api, if it is warned of]
const waits: [mid: object[], semaphors: object[], wait: object[], api_node: string | undefined][] =
  [
    [[api, goTo('wait')], [], [callback, goTo('end')], 'nodes[1] "Mid"'],
    [[api, callback, goTo('wait')], [], [goTo('end')], 'nodes[1] "Mid"'],
    [[api], [delay], [{ type: 'set_param' }, callback, goTo('end')], 'nodes[1] "Mid"'],
    [[goTo('wait')], [], [api, callback, goTo('wait')], 'nodes[2] "Wait"'],
    [[api, goTo('wait')], [], [asks, callback, goTo('end')], undefined],
    [[api, asks, goTo('end')], [], [callback, goTo('end')], undefined],
    [[callback, api, goTo('wait')], [], [goTo('end')], undefined],
    [[goTo('wait')], [], [callback, goTo('end')], undefined],
  ]

for (const [mid, semaphors, wait, api_node] of waits) {
  test(`a callback that may come early: ${JSON.stringify([mid, semaphors, wait])}`, () => {
    const definition = processWith({ title: 'Mid', condition: { logics: mid, semaphors } })
    const { nodes } = definition.scheme as { nodes: JsonObject[] }
    const place_of_wait = { id: 'wait', obj_type: 0, title: 'Wait', condition: { logics: wait } }
    nodes.splice(2, 0, place_of_wait as never)
    const early = compileProcess(definition, limits).warnings.filter((one) => /between/.test(one))
    const place = mid.includes(callback) ? 'nodes[1] "Mid"' : 'nodes[2] "Wait"'
    const why = `what comes between the api of ${api_node} and this wait does not end it`
    const expected = api_node && `${place}: ${why}, and no condition asks for it`
    assert.deepEqual(early, expected === undefined ? [] : [expected])
  })
}

test('a state process, its count semaphors and the processes it targets', () => {
  const { graph, mistakes: named } = compileProcess(
    processWith(
      {
        condition: {
          logics: [
            { type: 'api_copy', conv_id: 7, mode: 'create', data: { a: '{{conv[@b].ref[1].x}}' } },
            { type: 'api_copy', conv_id: '{{c}}', mode: 'create' },
            ...to_end,
          ],
          semaphors: [{ type: 'count', value: '200', esc_node_id: 'end' }],
        },
      },
      { conv_type: 'state' },
    ),
    limits,
  )
  assert.deepEqual(named, [])
  assert.equal(graph?.kind, 'state')
  assert.deepEqual(graph.target_conv_ids.toSorted(), ['7', '@b'])
  const semaphor = { value: 200, esc_node_id: 'end' }
  assert.deepEqual(graph.nodes.get('mid')?.count_semaphors, [semaphor])
})

test('logics and semaphors of an end node are not read', () => {
  const { graph } = compileProcess(
    processWith({ obj_type: 2, condition: { logics: [{ type: 'x' }], semaphors: 5 } }),
    limits,
  )
  assert.deepEqual(graph?.nodes.get('mid')?.logics, [])
})

test('options may be text or an object', () => {
  for (const [options, save_task] of [
    ['{"save_task":true}', true],
    [{ save_task: true }, true],
    ['{"save_task":false}', false],
    ['', false],
    [null, false],
    [[], false],
    [undefined, false],
  ] as const) {
    const { graph } = compileProcess(processWith({ obj_type: 2, options }), limits)
    assert.equal(graph?.nodes.get('mid')?.save_task, save_task, JSON.stringify(options))
  }
})

test('any text may be an id', () => {
  const text = `{"scheme":{"nodes":[
    {"id":"__proto__","obj_type":1,
     "condition":{"logics":[{"type":"go","to_node_id":"constructor"}]}},
    {"id":"constructor","obj_type":2}]}}`
  const { graph, mistakes: named } = compiledText(text)
  assert.deepEqual(named, [])
  assert.equal(graph?.start_id, '__proto__')
  assert.equal(graph.conv_id, undefined)
  assert.equal(compiledText(text.replace('"constructor"}]', '"toString"}]')).mistakes.length, 1)
  const numbered = text.replace('{', '{"obj_id":12345678901234567890,')
  assert.equal(compiledText(numbered).graph?.conv_id, '12345678901234567890')
})

for (const [status, expected] of [
  ['active', 'active'],
  ['actived', 'active'],
  ['paused', 'paused'],
  ['inactive', 'paused'],
  ['blocked', 'paused'],
  ['deleted', 'paused'],
  [null, 'active'],
] as const) {
  test(`status ${status} is ${expected}`, () => {
    assert.equal(compileProcess({ ...good, status }, limits).graph?.status, expected)
  })
}

const due_times: [value: unknown, data: string, due_ms: number | string][] = [
  [86400, '{}', now_ms + 86_400_000],
  ['30', '{}', now_ms + 30_000],
  [0, '{}', now_ms],
  [1.5, '{}', now_ms + 1_500],
  ['{{at}}', '{"at":1800000000}', 1_800_000_000_000],
  ['{{at}}', '{"at":"1800000000.5"}', 1_800_000_000_500],
  ['{{at}}', '{"at":5}', 5_000],
  ['{{at}}', '{"at":-5}', 0],
  ['$.unixtime(%y-%m-%d+1 09:00:00)', '{}', Date.UTC(2024, 2, 1, 9)],
  ['$.math($.unixtime()+{{n}})', '{"n":10}', Math.floor(now_ms / 1_000) * 1_000 + 10_000],
  ['{{at}}', '{}', 'time semaphor: Value: missing, Try convert to: Unix time'],
  ['{{at}}', '{"at":"soon"}', 'time semaphor: Value: soon, Try convert to: Unix time'],
  ['{{at}}', '{"at":1e300}', 'time semaphor: Value: 1e300, Try convert to: Unix time'],
  ['$.math({{at}}+1)', '{}', 'time semaphor: $.math: {{at}} is missing'],
]

for (const [value, data, expected] of due_times) {
  test(`a semaphor of ${JSON.stringify(value)} over ${data}`, () => {
    const { graph, mistakes: named } = compileProcess(timer({ value, dimension: 'day' }), limits)
    assert.deepEqual(named, [])
    const due = graph?.nodes.get('mid')?.time_semaphors[0]?.due(contextOf(data))
    const wanted =
      typeof expected === 'number'
        ? { due_ms: expected }
        : { tag: 'semaphor_wrong_convert_param', description: expected }
    assert.deepEqual(due, wanted)
  })
}

const input = ['input']
const params = [
  { name: 'amount', type: 'number', flags: ['required', 'input'] },
  { name: 'code', type: 'string', flags: input, regex: '^[A-Z]+$', regex_error_text: 'capitals' },
  { name: 'n', type: 'number', flags: input, regex: '^[0-9]+$', regex_error_text: '' },
  { name: 'list', type: 'array', flags: input },
  { name: 'map', type: 'object', flags: input },
  { name: 'yes', type: 'boolean', flags: input },
  { name: 'any', flags: input },
  { name: 'out', type: 'number', flags: ['required', 'output'] },
]

const checks: [data: string, param: string | undefined, error?: string][] = [
  ['{"amount":1.10}', undefined],
  ['{"amount":1,"code":"AB","n":7,"list":[],"map":{},"yes":false,"any":null}', undefined],
  ['{}', 'amount', 'is required'],
  ['{"amount":"1"}', 'amount', 'is not of type number'],
  ['{"amount":null}', 'amount', 'is not of type number'],
  ['{"amount":1,"code":"ab"}', 'code', 'capitals'],
  ['{"amount":1,"code":1}', 'code', 'is not of type string'],
  ['{"amount":1,"n":1.0}', 'n', 'the value does not match the pattern'],
  ['{"amount":1,"list":{}}', 'list', 'is not of type array'],
  ['{"amount":1,"list":"","map":""}', undefined],
  ['{"amount":1,"list":null,"map":null}', undefined],
  ['{"amount":1,"yes":""}', 'yes', 'is not of type boolean'],
  ['{"amount":1,"code":null}', 'code', 'is not of type string'],
  ['{"amount":1,"map":1.0}', 'map', 'is not of type object'],
  ['{"amount":1,"yes":"true"}', 'yes', 'is not of type boolean'],
]

for (const [data, param, error] of checks) {
  test(`params of ${data}`, () => {
    const { graph } = compileProcess({ ...good, params } as JsonObject, limits)
    const mistake = graph?.checkParams(docOfText(data), { left: steps_max })
    assert.deepEqual(mistake, param === undefined ? undefined : { param, error })
  })
}

// [name, type, data, error]: of a required parameter.
const paths: [name: string, type: string, data: string, error?: string][] = [
  ['user.name', 'string', '{"user":{"name":"n"}}'],
  ['user.name', 'string', '{"user":{"name":1}}', 'is not of type string'],
  ['user.name', 'string', '{"user":{},"user.name":"n"}', 'is required'],
  ['user.name', 'string', '{"user":"n"}', 'is required'],
  ['list[0].id', 'number', '{"list":[{"id":1.10}]}'],
  ['list[0].id', 'number', '{"list":[]}', 'is required'],
  ['list[1]', 'number', '{"list":[1,"2"]}', 'is not of type number'],
  ['a\\.b', 'string', '{"a.b":"x"}'],
  ['a\\.b', 'string', '{"a":{"b":"x"}}', 'is required'],
  ['phone\\[0\\]', 'string', '{"phone[0]":"x"}'],
  ['list[].pan', 'string', '{"list":[{"pan":"1"},{"pan":"2"}]}'],
  ['list[].pan', 'string', '{"list":[{"pan":"1"},{}]}', 'is required'],
  ['list[].pan', 'string', '{"list":[{"pan":"1"},{"pan":2}]}', 'is not of type string'],
  ['list[].pan', 'string', '{"list":[]}'],
  ['list[].pan', 'string', '{"list":{"pan":"1"}}', 'is required'],
  ['list[].pan', 'string', '{}', 'is required'],
  ['l[][].x[]', 'number', '{"l":[[{"x":[1,2]}],[]]}'],
  ['l[][].x[]', 'number', '{"l":[[{"x":[1,""]}]]}', 'is not of type number'],
  ['user.__proto__', 'object', '{"user":{}}', 'is required'],
  ['user.toString', 'string', '{"user":{}}', 'is required'],
  ['toString', 'string', '{}', 'is required'],
  ['list', 'array', '{"list":""}', 'is not of type array'],
  ['list', 'array', '{"list":null}', 'is not of type array'],
  // What is no path is one name.
  ...['a..b', '.a', 'a.', '[0]', 'a[0', 'a[0]b', 'a]', 'a]b.c', 'a\\b'].flatMap(
    (name): [string, string, string, string?][] => [
      [name, 'string', JSON.stringify({ [name]: 'x' })],
      [name, 'string', '{"a":{"b":"x","":"x"}}', 'is required'],
    ],
  ),
]

for (const [name, type, data, error] of paths) {
  test(`the parameter ${name} as ${type} in ${data}`, () => {
    const must = { name, type, flags: ['required', 'input'] }
    const { graph } = compileProcess({ ...good, params: [must] } as JsonObject, limits)
    const mistake = graph?.checkParams(docOfText(data), { left: steps_max })
    assert.deepEqual(mistake, error === undefined ? undefined : { param: name, error })
  })
}

test('a parameter of each element has its pattern, is left out where it may be, and is bounded', () => {
  const given = { name: 'l[].n', type: 'string', flags: ['input'], regex: '^[0-9]$' }
  const { graph } = compileProcess({ ...good, params: [given] } as JsonObject, limits)
  const errorIn = (data: string, left = steps_max) =>
    graph?.checkParams(docOfText(data), { left })?.error
  assert.equal(errorIn('{"l":[{"n":"1"},{}]}'), undefined)
  assert.equal(errorIn('{"l":"x"}'), undefined)
  assert.equal(errorIn('{"l":[{"n":"1"},{"n":"x"}]}'), 'the value does not match the pattern')
  assert.match(errorIn('{"l":[0,0,0]}', 2) ?? '', /more than 1000000 steps/)
})

const word = fc.constantFrom(
  ...'start mid end __proto__ {{a}} {{ $.math( go set_param go_if_const [ time 0'.split(' '),
  '',
)
const members =
  'id obj_type title condition logics semaphors type to_node_id extra extra_type nodes scheme ' +
  'params conditions param fun cast const value options flags regex __proto__'
const key = fc.constantFrom(...members.split(' '))

const anything: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    word,
    fc.integer({ min: -2, max: 4 }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
})).value
test('no JSON object makes compiling throw', () => {
  fc.assert(
    fc.property(fc.dictionary(key, anything), (definition) => {
      const { graph, mistakes: named } = compileProcess(definition as JsonObject, limits)
      assert.equal(graph === undefined, named.length > 0)
    }),
    { numRuns: runs(2_000) },
  )
})

/** Every place in a value, for mutations. */
function placesOf(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [path]
  return [
    path,
    ...Object.entries(value).flatMap(([name, member]) => placesOf(member, [...path, name])),
  ]
}

function replaced(value: unknown, path: readonly (string | number)[], by: unknown): unknown {
  const [name, ...rest] = path
  if (name === undefined) return by
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) }
  Object.assign(copy, { [name]: replaced((value as Record<string, unknown>)[name], rest, by) })
  return copy
}

test('no change to a valid definition makes compiling or running throw', () => {
  fc.assert(
    fc.property(fc.constantFrom(...originals), fc.nat(), anything, ([, text], at, by) => {
      const original: unknown = JSON.parse(text)
      const places = placesOf(original).slice(1)
      const changed = replaced(original, places[at % places.length] ?? [], by)
      const { graph, mistakes: named } = compileProcess(changed as JsonObject, limits)
      assert.equal(graph === undefined, named.length > 0)
      for (const node of graph?.nodes.values() ?? []) {
        for (const logic of node.logics) logic.run(contextOf({ amount: 1, attempts: 'x' }))
        for (const semaphor of node.time_semaphors) semaphor.due(contextOf({}))
      }
    }),
    { numRuns: runs(1_500) },
  )
})
