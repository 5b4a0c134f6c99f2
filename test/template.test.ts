/**
 * Templates: their values, how values are inserted, what is refused, and that no text makes them
 * throw.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { TargetProcess } from '../src/process/logic.ts'
import { expansionOf } from '../src/process/templates/parser.ts'
import { compileTemplate } from '../src/process/templates/template.ts'
import { anyCharacter } from './support/any-text.ts'
import {
  contextOf,
  expanded,
  mistakeOf,
  notes,
  unreadableContext,
} from './support/logic-context.ts'
import { runs } from './support/short-run.ts'

const values: [text: string, data: string, gives: string][] = [
  ['plain', '{}', '"plain"'],
  ['', '{}', '""'],
  ['{{a}}', '{"a":1.10}', '1.10'],
  ['{{a}}', '{"a":12345678901234567890}', '12345678901234567890'],
  ['{{a}}', '{"a":{"b":[1,null]}}', '{"b":[1,null]}'],
  ['{{a}}', '{"a":null}', 'null'],
  ['{{a}}', '{}', 'absent'],
  ['{{ a }}', '{"a":1}', '1'],
  ['{{first name}}', '{"first name":"Ann"}', '"Ann"'],
  ['{{ім’я}}', '{"ім’я":"Оля"}', '"Оля"'],
  ['{{a.b[0].c}}', '{"a":{"b":[{"c":true}]}}', 'true'],
  ['{{a[0][1]}}', '{"a":[[1,2]]}', '2'],
  ['{{a[x]}}', '{"a":{"x":"y"}}', '"y"'],
  ['{{a[{{n}}]}}', '{"a":[5,6],"n":1}', '6'],
  ['{{a[$.math({{n}}-1)].x}}', '{"a":[{"x":7}],"n":1}', '7'],
  ['{{a[{{n}}]}}', '{"a":{"x.y":1},"n":"x.y"}', '1'],
  ['{{a[{{n}}]}}', '{"a":[1]}', 'absent'],
  ['{{a[-1]}}', '{"a":[1]}', 'absent'],
  ['{{a.length}}', '{"a":[1]}', 'absent'],
  ['{{a.length}}', '{"a":"text"}', 'absent'],
  ['{{a\\.b}}', '{"a.b":1,"a":{"b":2}}', '1'],
  ["{{t\\'x}}", '{"t\'x":1}', '1'],
  ['{{a\\[0\\]}}', '{"a[0]":1,"a":[2]}', '1'],
  ['{{a.token}}', '{"a":1.10}', 'absent'],
  ['{{__proto__}}', '{}', 'absent'],
  ['{{__proto__.x}}', '{"__proto__":{"x":1}}', '1'],
  ['{{constructor}}', '{}', 'absent'],
  ['{{a.toString}}', '{"a":{}}', 'absent'],
  ['{{root.ref}}', '{"root":{"ref":"mine"}}', '"order-1"'],
  ['{{root.end_time}}', '{}', 'absent'],
  ['{{root.mine}}', '{"root":{"mine":1}}', '1'],
  ['{{root}}', '{"root":1}', '1'],
  ['{{node}} {{conv.x}}', '{"node":1,"conv":{"x":2}}', '"1 2"'],
  ['<{{a}}>', '{"a":1.10}', '"<1.10>"'],
  ['<{{a}}>', '{"a":"x"}', '"<x>"'],
  ['<{{a}}>', '{"a":[1.0,"x",{}]}', '"<[1.0,\\"x\\",{}]>"'],
  ['<{{a}}{{b}}>', '{"a":true,"b":null}', '"<truenull>"'],
  ['<{{a}}>', '{}', '"<>"'],
  ['{{a}}{{a}}', '{"a":1}', '"11"'],
  [' {{a}}', '{"a":1}', '" 1"'],
  ['{{a}}', '{"a":"{{b}} $.math(1+1)","b":2}', '"{{b}} $.math(1+1)"'],
  ['x{{a}}', '{"a":"{{b}}","b":2}', '"x{{b}}"'],
  ['{ } }} $ $. $.50 $.a.b {', '{}', '"{ } }} $ $. $.50 $.a.b {"'],
  ['{{{a}}}', '{"a":1}', '"{1}"'],
]

for (const [text, data, gives] of values) {
  test(`${text} over ${data}`, () => assert.equal(expanded(text, data), gives))
}

// What only looks like a template is text as it stands, and the first of a text is warned of.
const lookalikes: [text: string, warning: string][] = [
  ['{{', 'a name was expected at character 3'],
  ['{{a', '"}}" was expected at character 4'],
  ['{{}}', 'a name was expected at character 3'],
  ['{{ }}', 'a name was expected at character 4'],
  ['{{a..b}}', 'a name was expected at character 5'],
  ["No order. {{t'key}}", 'a quote was not expected in a name at character 14'],
  ['{{a."b"}}', 'a quote was not expected in a name at character 5'],
  ['{{.a}}', 'a name was expected at character 3'],
  ['{{a[}}', '"]" was expected at character 7'],
  ['{{a[]}}', 'an index was expected at character 6'],
  ['{{a]}}', '"]" was not expected in a name at character 4'],
  ['{{a[0]b}}', '"b" was not expected in a name at character 7'],
  ['{{a\\{{', 'a name cannot come from a template at character 5'],
  ['{{node[66a1]}}', 'node[…] is followed by ".count" or the name of a sum at character 13'],
  ['{{node[66a1].a.b}}', 'node[…] is followed by ".count" or the name of a sum at character 13'],
  ['{{conv[1]}}', 'conv[…] is followed by ".ref[…]" or ".node[…]" at character 10'],
  ['{{conv[1].node}}', 'conv[…] is followed by ".ref[…]" or ".node[…]" at character 10'],
  ['{{conv[1].ref[]}}', 'an index was expected at character 16'],
  ['{{env_var[@key}}', '"]" was expected at character 17'],
  ['$.md6(x)', '"$.md6" is no function of this release at character 1'],
  ['cost: $.fold(1)', '"$.fold" is no function of this release at character 7'],
  ['$.md5(x', '")" was expected at character 8'],
  ['$.math((1)', '")" was expected at character 11'],
  ['$.md5({{)', '"}}" was expected at character 10'],
  ['cost $.math( x', 'a number or a template was expected at character 14'],
  ['cost $.math( x and (y)', 'a number or a template was expected at character 14'],
  ['$.random(a, $.date(b', 'a is no whole number at character 10'],
  ['$.map(a', '"fun" was expected at character 7'],
  ['$.math(1+$.map(x', '"fun" was expected at character 16'],
  [`$.math(${'('.repeat(40)}1`, 'nested deeper than 32 at character 40'],
  ['{{{a}', '"}}" was expected at character 6'],
]

for (const [text, warning] of lookalikes) {
  test(`${text} is text`, () => {
    const report = notes()
    const template = compileTemplate(text, report, 'here')
    assert.deepEqual([template.constant, report.mistakes], [text, []])
    assert.deepEqual(report.warnings, [`here: ${JSON.stringify(text)} is text there: ${warning}`])
  })
}

test('the templates beside such text are templates, and one warning is enough', () => {
  for (const [text, gives] of [
    ['{{a{{b}}}}', '{{a2}}'],
    ['{{}} {{b}} {{a', '{{}} 2 {{a'],
    ['{{{{b}}}}', '{{2}}'],
    ['$.none({{b}}) $.math({{b}}+1)', '$.none(2) 3'],
    ['{{a[{{b}}', '{{a[2'],
    ['$.math( x {{b}} $.math({{b}}+1) $.date( x', '$.math( x 2 3 $.date( x'],
  ] as const) {
    const report = notes()
    const value = compileTemplate(text, report, 'here').value(expansionOf(contextOf({ b: 2 })))
    assert.equal(value, gives)
    assert.equal(report.warnings.length, text === '{{{{b}}}}' ? 0 : 1)
  }
})

const mistakes: [text: string, mistake: string][] = [
  ['{{a['.repeat(40), 'nested deeper than 32 at character 67'],
  ['\ud800', 'a lone surrogate stands in the text at character 1'],
]

for (const [text, mistake] of mistakes) {
  test(`refuses ${text.slice(0, 30).toWellFormed()}`, () => {
    assert.ok(mistakeOf(text).endsWith(`: ${mistake}`), mistakeOf(text))
  })
}

const beyond = {
  canRead: ({ conv_id }: TargetProcess) => conv_id !== 'denied',
  taskData: ({ conv_id, is_from_template }: TargetProcess, ref: string) => {
    if (conv_id === 'none' || ref === 'none') return undefined
    return { conv_id, is_from_template, ref, list: [{ x: 1 }] }
  },
  nodeCount: (node_id: string, conv?: TargetProcess) =>
    conv?.conv_id === 'none' ? undefined : node_id.length + Number(conv?.conv_id ?? 0),
  nodeSum: (node_id: string, name: string, conv?: TargetProcess) =>
    name === 'total' ? node_id.length / 2 + Number(conv?.conv_id ?? 0) : undefined,
  callbackUrl: (node_id: string, conv?: TargetProcess) => `${conv?.conv_id ?? 'own'}/${node_id}`,
  variable: (name: string) =>
    ({ url: 'http', keys: { a: ['b'] }, text: '{"a":{"b":[1.10]}}' })[name],
}

const reached: [text: string, data: string, gives: string][] = [
  ['{{node[66a1].count}}', '{}', '4'],
  ['{{node[{{id}}].count}}', '{"id":"ab"}', '2'],
  ['{{node[{{id}}].count}}', '{}', 'absent'],
  ['{{node[66a1].total}}', '{}', '2'],
  ['{{node[66a1].none}}', '{}', 'absent'],
  ['{{ node[66a1].count }}', '{}', '4'],
  ['$.math({{node[66a1].count}}+1)', '{}', '5'],
  ['{{node[66a1].public_callback_corezoid}}', '{}', '"own/66a1"'],
  ['{{conv[7].node[66a1].count}}', '{}', '11'],
  ['{{conv[{{c}}].node[{{n}}].count}}', '{"c":7,"n":"ab"}', '9'],
  ['{{conv[{{c}}].node[ab].count}}', '{}', 'absent'],
  ['{{conv[none].node[ab].count}}', '{}', 'absent'],
  ['{{conv[7].node[{{n}}].count}}', '{}', 'absent'],
  ['{{conv[7].node[{{n}}].count}}', `{"n":"${'x'.repeat(256)}"}`, 'absent'],
  ['{{conv[7].node[ab].total}}', '{}', '8'],
  ['{{conv[7].node[ab].none}}', '{}', 'absent'],
  ['{{conv[denied].node[ab].none}}', '{}', 'fails: User: -, Conv_id: denied'],
  ['x {{conv[{{c}}].ref[r].a}}', '{"c":"denied"}', 'fails: User: -, Conv_id: denied'],
  ['{{conv[7].node[ab].public_callback_corezoid}}', '{}', '"7/ab"'],
  ['{{conv[12].ref[a].conv_id}}', '{}', '"12"'],
  ['{{conv[12].ref[a].is_from_template}}', '{}', 'false'],
  ['{{conv[{{c}}].ref[a].is_from_template}}', '{"c":12}', 'true'],
  ['{{conv[@{{c}}].ref[a].conv_id}}', '{"c":"users"}', '"@users"'],
  ['{{conv[@users].ref[{{r}}].ref}}', '{"r":7}', '"7"'],
  ['{{conv[12].ref[a-{{r}}].ref}}', '{"r":7}', '"a-7"'],
  ['{{conv[12].ref[a].list[0].x}}', '{}', '1'],
  [
    '{{conv[1].ref[a]}}',
    '{}',
    '{"conv_id":"1","is_from_template":false,"ref":"a","list":[{"x":1}]}',
  ],
  ['{{conv[1].ref[none].x}}', '{}', 'absent'],
  ['{{conv[{{c}}].ref[a].x}}', '{}', 'absent'],
  ['{{conv[{{c}}].ref[a].ref}}', `{"c":"${'x'.repeat(256)}"}`, 'absent'],
  ['{{conv[1].ref[{{r}}].ref}}', `{"r":"${'x'.repeat(256)}"}`, 'absent'],
  ['<{{conv[1].ref[none].x}}>', '{}', '"<>"'],
  ['{{env_var[@url]}}', '{}', '"http"'],
  ['{{env_var[url]}}', '{}', '"http"'],
  ['{{env_var[@keys].a[0]}}', '{}', '"b"'],
  ['{{env_var[@keys].c}}', '{}', 'absent'],
  ['{{env_var[@{{n}}]}}', '{"n":"url"}', '"http"'],
  ['{{env_var[@none].a}}', '{}', 'absent'],
  ['{{env_var[@text].a.b[0]}}', '{}', '1.10'],
  ['{{env_var[@text]}}', '{}', '"{\\"a\\":{\\"b\\":[1.10]}}"'],
  ['{{env_var[@url].a}}', '{}', 'absent'],
]

for (const [text, data, gives] of reached) {
  test(`${text.slice(0, 60)} over ${data.slice(0, 40)}`, () => {
    assert.equal(expanded(text, data, beyond), gives)
  })
}

test('a process named in a template is reported, one that a template gives is not', () => {
  const report = notes()
  compileTemplate(
    '{{conv[12].ref[a].x}} {{conv[{{c}}].ref[a]}} {{conv[@b].ref[1]}}',
    report,
    'text',
  )
  assert.deepEqual(report.target_conv_ids, ['12', '@b'])
})

test('an unknown field of root is a warning', () => {
  const report = notes()
  compileTemplate('{{root.taskid}}', report, 'text')
  assert.equal(report.mistakes.length, 0)
  assert.equal(report.warnings.length, 1)
})

test('a text without templates is constant and reads nothing', () => {
  const template = compileTemplate('as it is', notes(), 'text')
  assert.equal(template.constant, 'as it is')
  const run = expansionOf(unreadableContext())
  assert.equal(template.value(run), 'as it is')
})

test('an expansion stops before it exceeds the size of a task', () => {
  const template = compileTemplate('{{a}}'.repeat(100_000), notes(), 'text')
  const run = expansionOf(contextOf({ a: 'x'.repeat(60_000) }))
  assert.equal(template.value(run), undefined)
  assert.equal(run.failure?.why, 'overflow')
})

test('an index built from templates stops there too', () => {
  const template = compileTemplate(`{{a[${'{{b}}'.repeat(100_000)}]}}`, notes(), 'text')
  const run = expansionOf(contextOf({ a: {}, b: 'x'.repeat(60_000) }))
  assert.equal(template.value(run), undefined)
  assert.equal(run.failure?.why, 'overflow')
})

const piece = fc.constantFrom(
  ...[
    '{{',
    '}}',
    '{',
    '}',
    '[',
    ']',
    '(',
    ')',
    '$.',
    '$.math(',
    '$.random(',
    '$.date(',
    '%y',
    '%d+1',
  ],
  ...[
    '$.unixtime(',
    ".tz('UTC')",
    'a',
    '.',
    '\\',
    ' ',
    '1',
    '+',
    '-',
    '/',
    ',',
    'root',
    'node',
    "'",
    '𝒳',
  ],
)
const template_text = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join('')),
)

test('no text makes compiling or running throw', () => {
  fc.assert(
    fc.property(
      template_text,
      fc.object({ key: fc.constantFrom('a', 'root', '1') }),
      (text, data) => {
        const template = compileTemplate(text, notes(), 'text')
        const run = expansionOf(contextOf(JSON.stringify(data).toWellFormed()))
        template.value(run)
        template.text(run)
      },
    ),
    { numRuns: runs(3_000) },
  )
})

test('a lone template gives the value as it is, whatever it contains', () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const text = JSON.stringify(value)
      if (!text.isWellFormed() || text.includes('\\ud')) return
      assert.equal(expanded('{{a}}', `{"a":${text}}`), expanded('{{b.c}}', `{"b":{"c":${text}}}`))
    }),
    { numRuns: runs(500) },
  )
})

test('very long texts are parsed in linear time', { timeout: 20_000 }, () => {
  const count = 50_000
  for (const text of [
    ...['{', '{{a}}', '$.', '$.math(1)', '}}', '\\', '{{a', '{{', '{{a]', '$.x(', '\\{{'],
    ...['{{a\\.', '{{a[{{b}}', '{{a}} {{b.'],
    ...['$.math(', '$.math( x', '$.map(%', '$.map("', '$.random(a,', '$.date(%y', '(', '$.math(x)'],
    ...['$.date(%y+', "$.date(%y).tz('", '$.math((', '$.md5($.math('],
  ].map((part) => part.repeat(count))) {
    compileTemplate(text, notes(), 'text')
  }
  assert.equal(mistakeOf(`{{${'a.'.repeat(count)}a}}`), '')
})
