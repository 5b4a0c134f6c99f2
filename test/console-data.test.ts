/**
 * What the operator's page makes of data without a document: exact JSON, the rows of its tree, what
 * a reader has changed, filters of what is searched for, and the commands to copy, which a shell
 * and Node run here.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { parseJson, stringifyJson } from '../src/codec/json.ts'
import { commandsOf } from '../src/console/page/task/commands.ts'
import {
  changesOf,
  differing,
  type Path,
  valueAt,
  withValueAt,
} from '../src/console/page/task/data-changes.ts'
import { pathText, rowsOf } from '../src/console/page/task/data-rows.ts'
import {
  type ExactObject,
  exactText,
  indentedText,
  parseExact,
  parseObject,
} from '../src/console/page/task/exact-json.ts'
import {
  happenings,
  helpOf,
  inShort,
  type Sentence,
  whyOf,
} from '../src/console/page/task/words.ts'
import { empty_search, filterOf, searchOf, valueKind } from '../src/console/page/tasks/search.ts'
import type { HistoryWhy, Status } from '../src/core/model.ts'
import { received } from '../src/task-operations/searches.ts'
import { pick } from './support/pick.ts'

function objectOf(text: string): ExactObject {
  const read = parseObject(text)
  assert.ok('value' in read, text)
  return read.value
}

const long_line = 'x"<script>\u202e'.repeat(12_000)

// Texts that come back as they are.
for (const text of [
  '{"a":12345678901234567890,"b":1.10,"c":1e400,"d":-0,"e":0.1E+2}',
  '{"__proto__":1,"10":2,"2":{"constructor":null}}',
  '[true,false,null,"",[],{}]',
  JSON.stringify({ html: '<img src=x onerror=alert(1)>', rtl: '\u202eabc', line: long_line }),
  '['.repeat(1_000) + ']'.repeat(1_000),
]) {
  test(`exact: ${text.slice(0, 60)}`, () => {
    const read = parseExact(text)
    assert.ok('value' in read)
    assert.equal(exactText(read.value), text)
    assert.equal(
      stringifyJson(parseJson(text, { nesting_max: 1_000, values_max: 10_000 })),
      text.startsWith('{"__') ? '{"2":{"constructor":null},"10":2,"__proto__":1}' : text,
    )
    const again = parseExact(indentedText(read.value))
    assert.ok('value' in again && exactText(again.value) === text)
  })
}

// prettier-ignore
const mistaken: readonly (readonly [string, string])[] = [
  ['', 'line 1, column 1: the text ends too early'],
  ['{"a":01}', 'line 1, column 6: a value was expected'],
  ['{"a": NaN}', 'line 1, column 7: a value was expected'],
  ['{"a":1 "b":2}', 'line 1, column 8: "," or "}" was expected'],
  ['{"a":1,\n "b"}', 'line 2, column 5: ":" was expected'],
  ['{a:1}', 'line 1, column 2: a name in quotes was expected'],
  ['[1,]', 'line 1, column 4: a value was expected'],
  ['{"a":"b', 'line 1, column 6: a text does not end'],
  ['{"a":"b\nc"}', 'line 1, column 6: a text has a bad escape, or a line break that should be \\n'],
  ['{} x', 'line 1, column 4: nothing may follow the value'],
  ['['.repeat(1_001), 'line 1, column 1001: nested deeper than 1000'],
]

for (const [text, expected] of mistaken) {
  test(`mistake: ${text.slice(0, 20)}`, () => {
    const read = parseExact(text)
    assert.equal('mistake' in read && read.mistake, expected)
  })
}

test('data is an object', () => {
  assert.deepEqual(parseObject('[1]'), { mistake: 'Data is an object: {"name": value}.', at: 0 })
})

/** [before, after, what is sent, parts of the problems] */
const changes: readonly (readonly [string, string, string, ...RegExp[]])[] = [
  ['{"a":1,"b":2}', '{"a":1,"b":2}', '{}'],
  ['{"a":1,"b":2}', '{"b":2,"a":1}', '{}'],
  ['{"a":1.10}', '{"a":1.1}', '{"a":1.1}'],
  ['{"a":1}', '{"a":1,"b":12345678901234567890}', '{"b":12345678901234567890}'],
  ['{"o":{"x":1,"y":1.0},"b":2}', '{"o":{"x":2,"y":1.0},"b":2}', '{"o":{"x":2,"y":1.0}}'],
  ['{"a":1,"b":2}', '{"a":3}', '{"a":3}', /"b" cannot be removed.*null/],
  ['{"pin":"***","a":1}', '{"pin":"***","a":2}', '{"a":2}'],
  ['{"pin":"***"}', '{"pin":"1234"}', '{"pin":"1234"}'],
  ['{"o":{"pin":"***","x":1}}', '{"o":{"pin":"***","x":2}}', '{"o":{"pin":"***","x":2}}', /hidden/],
  ['{"o":[{"pin":"***"},1]}', '{"o":[2,{"pin":"***"}]}', '{"o":[2,{"pin":"***"}]}', /hidden/],
  ['{"note":"*** urgent ***"}', '{"note":"*** late ***"}', '{"note":"*** late ***"}'],
  ['{"a":1}', '{"a":"***"}', '{"a":"***"}'],
  [
    '{"__conveyor_api_return_description__":"no ***"}',
    '{"__conveyor_api_return_description__":"yes ***"}',
    '{"__conveyor_api_return_description__":"yes ***"}',
    /hidden/,
  ],
]

for (const [before, after, text, ...problems] of changes) {
  test(`changed from ${before} to ${after}`, () => {
    const found = changesOf(objectOf(before), objectOf(after))
    assert.equal(found.text, text)
    assert.equal(found.problems.length, problems.length, found.problems.join('\n'))
    for (const [at, problem] of problems.entries()) assert.match(found.problems[at] ?? '', problem)
  })
}

test('what somebody else has changed meanwhile is told where it would be overwritten', () => {
  const [before, now] = [objectOf('{"a":1,"b":1,"c":1}'), objectOf('{"a":2,"b":2,"c":1}')]
  const { text, overwrites } = changesOf(before, objectOf('{"a":9,"b":1,"c":9}'), now)
  assert.equal(text, '{"a":9,"c":9}')
  assert.deepEqual(overwrites, ['a'])
  assert.deepEqual(differing(before, now), ['a', 'b'])
})

/** [data, path, what is put there, the data after that] */
const puts: readonly (readonly [string, Path, string | undefined, string])[] = [
  ['{"a":{"b":[1,2]}}', ['a', 'b', 1], '1.10', '{"a":{"b":[1,1.10]}}'],
  ['{"a":{"b":[1,2]}}', ['a', 'b', 0], undefined, '{"a":{"b":[2]}}'],
  ['{"a":{"b":1,"c":2}}', ['a', 'b'], undefined, '{"a":{"c":2}}'],
  ['{"a":1}', ['__proto__'], '{}', '{"a":1,"__proto__":{}}'],
  ['{"a":[]}', ['a', 0], 'null', '{"a":[null]}'],
]

for (const [data, path, put, expected] of puts) {
  test(`${data} with ${put} at ${pathText(path)}`, () => {
    const before = objectOf(data)
    const read = put === undefined ? undefined : parseExact(put)
    const value = read !== undefined && 'value' in read ? read.value : undefined
    const after = withValueAt(before, path, value)
    assert.equal(exactText(after), expected)
    assert.equal(exactText(before), data)
    if (value !== undefined) assert.deepEqual(valueAt(after, path), value)
  })
}

const nothing = { open: new Map<string, boolean>(), lengths: new Map<string, number>(), search: '' }

/** [data, how it is looked at, the paths of its rows] */
const trees: readonly (readonly [string, Partial<typeof nothing>, string])[] = [
  ['{"a":1,"b":{"c":2}}', {}, 'a b b.c'],
  ['{"a":1,"b":{"c":2}}', { open: new Map([['/b', false]]) }, 'a b'],
  ['{"a":1,"b":{"c":2,"d":"Xyz"}}', { search: 'xY' }, 'b b.d'],
  ['{"a":1,"b":{"c":2,"d":"Xyz"}}', { search: 'none' }, ''],
  ['{"a.b":[{"c":1.10}]}', { search: '1.10' }, 'a\\.b a\\.b[0] a\\.b[0].c'],
  [`{"a":[${'1,'.repeat(30)}1]}`, {}, 'a'],
]

for (const [data, shown, expected] of trees) {
  test(`rows of ${data.slice(0, 40)} ${JSON.stringify(shown)}`, () => {
    const rows = rowsOf(objectOf(data), { ...nothing, ...shown })
    assert.equal(rows.map(({ path }) => pathText(path)).join(' '), expected)
  })
}

test('rows of what is deep or long are bounded', () => {
  const deep = objectOf(`${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}`)
  assert.equal(rowsOf(deep, nothing).length, 3)
  const opened = new Map(rowsOf(deep, { ...nothing, search: 'a' }).map(({ key }) => [key, true]))
  assert.equal(rowsOf(deep, { ...nothing, open: opened }).length, 1_000)
  const long = objectOf(`{"a":[${'1,'.repeat(60_000)}1]}`)
  const rows = rowsOf(long, { ...nothing, open: new Map([['/a', true]]) })
  assert.equal(rows.length, 102)
  assert.equal(rows.at(-1)?.more, 59_901)
  assert.ok(rowsOf(long, { ...nothing, search: '1' }).length <= 502)
})

/** [conditions, the JSON of the filter] */
const wheres: readonly (readonly [readonly (readonly [string, string, string])[], string])[] = [
  [[['order.amount', 'gt', '100']], '{"order.amount":{"gt":100}}'],
  [[['n', 'eq', '12345678901234567890']], '{"n":{"eq":12345678901234567890}}'],
  [
    [
      ['n', 'gte', '1.10'],
      ['n', 'lt', '1e400'],
    ],
    '{"n":{"gte":1.10,"lt":1e400}}',
  ],
  [
    [
      ['paid', 'eq', 'true'],
      ['name', 'ne', 'Ada'],
    ],
    '{"paid":{"eq":true},"name":{"ne":"Ada"}}',
  ],
  [[['code', 'eq', '"007"']], '{"code":{"eq":"007"}}'],
  [[['code', 'eq', '007']], '{"code":{"eq":"007"}}'],
  [
    [
      ['list[].id', 'exists', ''],
      ['b', 'missing', 'x'],
    ],
    '{"list[].id":{"exists":true},"b":{"exists":false}}',
  ],
  [[['', 'eq', '']], ''],
]

for (const [rows, expected] of wheres) {
  test(`where ${expected}`, () => {
    const where = rows.map(([path, comparison, value]) => ({ path, comparison, value }))
    const search = searchOf({ where, conv_id: '7', nonsense: 1, status: 5 })
    const { filter, mistakes } = filterOf(search)
    assert.deepEqual(mistakes, [])
    assert.equal(filter?.where_text ?? '', expected)
    assert.equal(filter?.status, 'live')
    // As the server takes it.
    if (filter !== undefined) received(filter)
  })
}

test('a search that cannot be meant says where', () => {
  const twice = { path: 'a', comparison: 'gt', value: '1' } as const
  const { filter, mistakes } = filterOf({
    ...empty_search,
    where: [twice, twice, { path: '', comparison: 'eq', value: '1' }],
  })
  assert.equal(filter, undefined)
  assert.deepEqual(pick(mistakes, 'condition'), [1, 2])
  assert.deepEqual(['1.0', 'x', '"1"', 'null', '[1]'].map(valueKind), [
    'number',
    'text',
    'text',
    'null',
    'JSON',
  ])
})

/** [task, in a table, on its page] */
const waits: readonly (readonly [Parameters<typeof whyOf>[0], string, RegExp])[] = [
  [
    { status: 'delayed', wait: { for: 'callback', due_ms: 5 } },
    'callback, timer @5',
    /^It waits for a callback\. If nothing comes, its timer fires @5\.$/,
  ],
  [
    { status: 'delayed', wait: { for: 'timer', due_ms: 5 } },
    'timer @5',
    /^It waits for its timer, which fires @5\.$/,
  ],
  [
    { status: 'delayed', wait: { for: 'reply', obj_id: 'f0' } },
    'the reply of task f0',
    /the reply of the task f0, which/,
  ],
  [
    { status: 'delayed', wait: { for: 'handler', handler: 'charge', has_handler: false } },
    'handler charge (none is registered)',
    /“charge”, which this server does not have\. Start a program/,
  ],
  [
    {
      status: 'delayed',
      wait: {
        for: 'handler',
        handler: 'charge',
        attempt: 2,
        next_ms: 9,
        last_error: { tag: 'handler_error', description: 'down' },
      },
    },
    'handler charge, attempt 2, next try @9',
    /Attempt 2 comes @9\. The last attempt failed: handler_error – down$/,
  ],
  [
    { status: 'delayed', wait: { for: 'call', host: 'pay.test', is_paused: true } },
    'its process is paused, call to pay.test',
    /^Its process is paused.* the answer of pay\.test/,
  ],
  [
    { status: 'delayed', wait: { for: 'nothing' } },
    'nothing: it stays here until it is moved',
    /until it is moved/,
  ],
  [{ status: 'processing' }, '', /It runs/],
  [{ status: 'processed' }, '', /has ended/],
  [{ status: 'canceled' }, '', /canceled/],
  [
    { status: 'failed', status_details: { tag: 'loop', description: 'd' } },
    'loop',
    /^It failed: loop – d It went round/,
  ],
]

function said(sentence: Sentence): string {
  return sentence
    .map((part) =>
      typeof part === 'string' ? part : 'at_ms' in part ? `@${part.at_ms}` : part.obj_id,
    )
    .join('')
}

for (const [task, short, long] of waits) {
  test(`why: ${task.status} ${JSON.stringify(task.wait ?? {})}`, () => {
    assert.equal(said(inShort(task)), short)
    assert.match(whyOf(task).map(said).join(' '), long)
  })
}

/** [status, history, which is the end or goes on, and how long it stayed where it came to] */
const histories: readonly (readonly [Status, string, string])[] = [
  ['delayed', 'a 0 create, b 5 go', 'a 5, b +'],
  ['failed', 'a 0 create, b 5 go, b 9 handler, b 9 fail', 'a 5, b +, b, b +'],
  ['processed', 'a 0 create, b 5 go, b 8 callback, c 8 go', 'a 5, b 3, b, c end'],
  ['canceled', 'a 0 create, b 5 go, b 9 cancel', 'a 5, b 4, b end'],
  ['delayed', 'a 0 create, b 1 go, a 3 go', 'a 1, b 2, a +'],
  ['delayed', '', ''],
]

for (const [status, text, expected] of histories) {
  test(`history: ${status} ${text}`, () => {
    const entries = text.split(', ').flatMap((entry) => {
      const [node_id = '', at_ms, why] = entry.split(' ')
      return node_id === '' ? [] : [{ node_id, at_ms: Number(at_ms), why: why as HistoryWhy }]
    })
    const told = happenings(entries, status).map(
      ({ node_id, stayed_ms = '', is_end, is_present }) =>
        `${node_id} ${stayed_ms}${is_end ? 'end' : ''}${is_present ? '+' : ''}`.trim(),
    )
    assert.equal(told.join(', '), expected)
  })
}

test('each tag has something that helps', () => {
  for (const tag of ['handler_timeout', 'api_fatal_error', 'of_a_process'])
    assert.match(helpOf(tag), /\.$/)
})

const tricky = `{"a":1.10,"b":"it's $HOME \`id\` \\" \\\\ \u202e é <b>"}`
const target = { conv_id: "o'er $(id)", obj_id: '0123456789abcdef01234567' }
const modify = { ...target, data_text: tricky, node_id: 'n', is_sync: true }

/** What the commands pass on, with programs of the shell that print what they get. */
function run(script: string): string {
  const fakes = `
openssl() { cat > /dev/null; echo 'SHA1(stdin)= 5f'; }
curl() { cat; echo; printf '%s\\n' "$@" | tail -1; }
grpcurl() { cat; echo; printf '%s\\n' "$@" | tail -1; }
`
  const { stdout, stderr } = spawnSync('bash', ['-c', `SECRET=s3cret\n${fakes}${script}`], {
    encoding: 'utf8',
  })
  assert.equal(stderr, '')
  return stdout
}

test('the commands to copy send what the page would', () => {
  const [curl, node, grpcurl] = commandsOf(modify, { http: 'http://h:1/base' })
  const [body = '', url] = run(curl?.text ?? '').split('\n')
  assert.match(url ?? '', /^http:\/\/h:1\/base\/api\/1\/json\/USER\/\d+\/5f$/)
  const sent = parseExact(body)
  assert.ok('value' in sent)
  const op = valueAt(sent.value, ['ops', 0]) as ExactObject
  assert.equal(op.get('conv_id'), target.conv_id)
  assert.equal(op.get('is_sync'), true)
  assert.equal(exactText(op.get('data') ?? null), tricky)

  const [message = '', rpc] = run(grpcurl?.text ?? '').split('\n')
  assert.equal(rpc, 'conveyor.v1.TaskService/ModifyTask')
  const { data_json, ...rest } = JSON.parse(message)
  assert.equal(exactText(objectOf(Buffer.from(data_json, 'base64').toString())), tricky)
  assert.deepEqual(rest, { ...target, is_sync: true, node_id: 'n' })

  const [, call = ''] = /await client\.(modify\([\s\S]*\))\)\n/.exec(node?.text ?? '') ?? []
  const made: unknown = new Function('modify', 'rawJson', `return ${call}`)(
    (input: unknown) => input,
    (text: string) => text,
  )
  assert.deepEqual(made, { ...target, is_sync: true, node_id: 'n', data: tricky })
})

test('no command has the secret, or characters that are not seen', () => {
  for (const servers of [{}, { http: 'http://h:1' }, { grpc: 'h:2' }]) {
    for (const { name, text } of [...commandsOf(modify, servers), ...commandsOf(target, servers)]) {
      assert.doesNotMatch(text, /\p{Cf}/u, name)
      assert.doesNotMatch(text, /s3cret/, name)
    }
  }
  const shown = run(
    commandsOf(target, {})
      .map(({ text, name }) => (name === 'Node' ? '' : text))
      .join(''),
  )
  assert.match(shown, /"type":"show"/)
  assert.match(shown, /GetTask/)
})
