/**
 * The functions of templates: the examples of every row of the table, and what functions refuse.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringifyJson } from '../src/codec/json.ts'
import { utc, zoneOf } from '../src/process/functions/calendar.ts'
import { functionTable } from '../src/process/functions/table.ts'
import { expanded, mistakeOf } from './support/logic-context.ts'

for (const row of functionTable) {
  for (const { text, data = {}, gives } of row.examples) {
    test(`${row.name}: ${text}`, () => {
      assert.equal(expanded(text, data), stringifyJson(gives))
      assert.equal(Array.isArray(gives) ? 'array' : typeof gives, row.result)
    })
  }
  test(`${row.name} has an example for each of its syntaxes`, () => {
    assert.ok(row.examples.length >= row.syntax.length)
  })
}

const values: [text: string, data: string, gives: string][] = [
  ['$.math( 1 + 2 * 3 )', '{}', '7'],
  ['$.math((1+2)*3)', '{}', '9'],
  ['$.math(--1 - -1)', '{}', '2'],
  ['$.math(-0)', '{}', '0'],
  ['$.math(1e2+.5)', '{}', '100.5'],
  ['$.math({{a.b[1]}}/4)', '{"a":{"b":[1,"10"]}}', '2.5'],
  ['$.math({{a}}+1)', '{"a":1.10}', '2.1'],
  ['$.math({{a}}*{{a}})', '{"a":12345678901234567890}', '1.5241578753238834e+38'],
  ['$.math({{a}}+1)', '{}', 'fails: $.math: {{a}} is missing'],
  ['$.math({{a}}+1)', '{"a":"1+2"}', 'fails: $.math: {{a}} is no number'],
  ['$.math({{a}}+1)', '{"a":1e400}', 'fails: $.math: {{a}} is no number'],
  ['$.math({{a}}+1)', '{"a":null}', 'fails: $.math: {{a}} is no number'],
  ['$.math(1/{{a}})', '{"a":0}', 'fails: $.math: division by zero'],
  ['$.math(1e308*10)', '{}', 'fails: the result is no finite number'],
  ['sum $.math(1+1)!', '{}', '"sum 2!"'],
  ['$.random({{n}})', '{"n":"4"}', '3'],
  ['$.random({{n}})', '{"n":1.5}', 'fails: {{n}} is no whole number'],
  ['$.random({{n}})', '{}', 'fails: {{n}} is no whole number'],
  ['$.random(5,{{n}})', '{"n":4}', 'fails: $.random: from 5 to 4 is no range'],
  ['$.random($.math(2*3))', '{}', '4'],
  ['$.date(%y-%m-%d+1-%h:%i:%s)', '{}', '"2024-03-01-12:30:15"'],
  ['$.date(%y-%m+12-%d)', '{}', '"2025-02-28"'],
  ['$.date(%y-01-01)', '{}', '"2024-01-01"'],
  ['$.date(%y%m%d%h%i%s)', '{}', '"20240229123015"'],
  ['$.date(%d-1.%m)', '{}', '"28.02"'],
  ['$.date(%h-13 %d)', '{}', '"23 28"'],
  ['$.date({{text}} %y)', '{"text":"%y $.math(1+1) {{n}}"}', '"%y $.math(1+1) {{n}} 2024"'],
  ['$.date(%d+{{n}})', '{"n":"x"}', 'fails: {{n}} is no whole number'],
  ['$.date(%y+{{n}})', '{"n":9000}', 'fails: %y+{{n}} goes beyond the calendar'],
  ['$.date(%d+{{n}})', '{"n":9007199254740991}', 'fails: %d+{{n}} goes beyond the calendar'],
  [
    "$.date(%d+{{n}}).tz('Asia/Tokyo')",
    '{"n":-9007199254740991}',
    'fails: %d+{{n}} goes beyond the calendar',
  ],
  ["$.date(%h:%i).tz('Asia/Kolkata')", '{}', '"18:00"'],
  ['$.date(%h:%i).tz("America/New_York")', '{}', '"07:30"'],
  ["$.unixtime().tz('Europe/Kiev')", '{}', '1709209815'],
  ['$.unixtime( )', '{}', '1709209815'],
  ['$.unixtime(%y-%m-%d)', '{}', '1709164800'],
  ['$.unixtime($.date(%y-%m-%d 00:00:00))', '{}', '1709164800'],
  ['$.unixtime({{t}})', '{"t":"2024-02-30"}', 'fails: $.unixtime: 2024-02-30 is no date'],
  ['$.unixtime({{t}})', '{"t":"soon"}', 'fails: $.unixtime: soon is no date'],
  ['$.unixtime({{t}})', '{}', 'fails: $.unixtime:  is no date'],
  ['$.md5_hex()', '{}', '"d41d8cd98f00b204e9800998ecf8427e"'],
  ['$.md5_hex({{a}})', '{}', '"d41d8cd98f00b204e9800998ecf8427e"'],
  ['$.sha1_hex(100)', '{}', '"310b86e0b62b828562fc91c7be5380a992b2786a"'],
  ['$.sha1_hex({{n}})', '{"n":100}', '"310b86e0b62b828562fc91c7be5380a992b2786a"'],
  ['$.base64_encode({{a}})', '{"a":{"b":1.10}}', '"eyJiIjoxLjEwfQ=="'],
  ['$.base64_encode(x $.md5(ab))', '{}', '"eCAYfsO0Q2Eiw5HDjC9Aw5wrwpLDsMOrwqA="'],
  ['$.md5_hex($.base64_encode({{a}}))', '{"a":"hello"}', '"0733351879b2fa9bd05c7ca3061529c0"'],
]

for (const [text, data, gives] of values) {
  test(`${text} over ${data}`, () => assert.equal(expanded(text, data), gives))
}

const mistakes: [text: string, mistake: string][] = [
  ['$.math()', 'a number or a template was expected at character 8'],
  ['$.math(1+)', 'a number or a template was expected at character 10'],
  ['$.math(1 2)', '")" was expected at character 10'],
  ['$.math({{a}}{{b}})', '")" was expected at character 13'],
  ['$.math(1e999)', '1e999 is too large at character 8'],
  ['$.random(abc)', 'abc is no whole number at character 10'],
  ['$.random(1,)', 'nothing is no whole number at character 12'],
  ['$.date()', 'a format was expected at character 8'],
  ['$.date(%q)', '"%q" is none of %y %m %d %h %i %s at character 8'],
  ['$.unixtime(%h:%i)', '%h:%i does not show a date at character 12'],
  ["$.date(%y).tz('Europe/Nowhere')", '"Europe/Nowhere" is no time zone at character 11'],
  ['$.date(%y).tz({{zone}})', "a zone in quotes was expected, .tz('Europe/Kyiv') at character 11"],
  [`$.math(${'('.repeat(40)}1${')'.repeat(40)})`, 'nested deeper than 32 at character 40'],
]

for (const [text, mistake] of mistakes) {
  test(`refuses ${text.slice(0, 40)}`, () =>
    assert.ok(mistakeOf(text).endsWith(`: ${mistake}`), mistakeOf(text)))
}

test('a long expression does not nest', () => {
  assert.equal(expanded(`$.math(1${'+1'.repeat(50_000)})`), '50001')
  assert.equal(expanded(`$.math(${'-'.repeat(50_000)}1)`), '1')
})

test('zones convert to wall-clock time and back, at the hour shown twice and the hour skipped', () => {
  const kyiv = zoneOf('Europe/Kyiv') ?? utc
  for (const [instant, shown] of [
    ['2024-03-31T00:59:00Z', '2024-03-31T02:59:00Z'],
    ['2024-03-31T01:00:00Z', '2024-03-31T04:00:00Z'],
    ['2024-10-27T00:30:00Z', '2024-10-27T03:30:00Z'],
    ['2024-10-27T02:00:00Z', '2024-10-27T04:00:00Z'],
  ] as const) {
    assert.equal(kyiv.wallOf(Date.parse(instant)), Date.parse(shown))
    assert.equal(kyiv.instantOf(Date.parse(shown)), Date.parse(instant))
  }
  assert.equal(kyiv.wallOf(Date.parse('2024-10-27T01:30:00Z')), Date.parse('2024-10-27T03:30:00Z'))
  assert.equal(
    kyiv.instantOf(Date.parse('2024-03-31T03:30:00Z')),
    Date.parse('2024-03-31T01:30:00Z'),
  )
  assert.equal(zoneOf('__proto__'), undefined)
})
